/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * BBR version 1: Cardwell, Cheng, Gunn, Yeganeh, Jacobson, "BBR: Congestion-Based Congestion Control" (2016);
 * draft-cardwell-iccrg-bbr-congestion-control-00, whose names are used, in the integers of Linux (section A14
 * of the algorithm reference); the allowance for aggregated ACKs is that of Linux since 5.1.
 *
 * We differ in:
 *  - no detection of token-bucket policers (Linux's "long-term" bandwidth), which the draft has not either;
 *  - in PROBE_RTT Linux marks the connection as application-limited; here the samples of that flight are
 *    taken as such, which has the same effect on the filter;
 *  - the contract does not tell whether an ACK was delayed, so an expired RTprop takes the next sample;
 *  - the delivery rate counts as at most BBR_BW_MAX, RTprop as at most BBR_RTT_MAX_US.
 */
#ifndef ANABRANCH_BBR_H
#define ANABRANCH_BBR_H

#include "anabranch/cc.h"
#include "anabranch/fixedpoint.h"
#include "anabranch/windowedmax.h"

#define AB_PARAMS_bbr(P)                                                                                     \
	P(rtprop_window_us, AB_UNIT_US, 10000000, 100000, 1000000000, "how long a least RTT holds")          \
	P(probe_rtt_time_us, AB_UNIT_US, 200000, 0, 10000000, "least time of the small window of PROBE_RTT") \
	P(aggregation, AB_UNIT_BOOL, 1, 0, 1, "add to the window what ACKs bring at once beyond the rate")

struct bbr_params {
	AB_PARAMS_bbr(AB_PARAM_FIELD)
};

/* Rates in packets per microsecond << 24, gains << 8. */
#define BBR_BW_SHIFT 24
#define BBR_BW_UNIT  (1u << BBR_BW_SHIFT)
#define BBR_GAIN_ONE 256u
/* 32 packets per microsecond and 16.8 s: their product with the largest gain stays below 2^63. */
#define BBR_BW_MAX     ((1u << 29) - 1)
#define BBR_RTT_MAX_US ((1u << 24) - 1)

#define BBR_HIGH_GAIN          739u /* 2 / ln 2 = 2.885: doubles the rate every round */
#define BBR_DRAIN_GAIN         88u  /* 1 / 2.885 */
#define BBR_CWND_GAIN          512u
#define BBR_CYCLE_LEN          8u
#define BBR_BW_ROUNDS          10u
#define BBR_FULL_BW_ROUNDS     3u
#define BBR_CWND_MIN           4u
#define BBR_CWND_INIT          10u
#define BBR_PACING_SHARE       990000u /* of a million: 1 % below the estimate */
#define BBR_EXTRA_ROUNDS       5u
#define BBR_EXTRA_TIME_MAX_US  100000u
#define BBR_EPOCH_ACKED_MAX    0xfffffu
#define BBR_WINDOW_MAX         (1u << 30)
#define BBR_BURST_BYTES_MAX    65536u
#define BBR_BURST_SEGMENTS_MAX 127u
#define BBR_NOMINAL_RTT_US     1000u

enum bbr_mode { BBR_STARTUP, BBR_DRAIN, BBR_PROBE_BW, BBR_PROBE_RTT };

struct bbr_state {
	struct ab_windowed_max btlbw;
	u64 rtprop_stamp_us;
	u64 probe_rtt_done_us; /* 0: in_flight has not fallen to BBR_CWND_MIN yet */
	u64 next_round_delivered;
	u64 cycle_stamp_us;
	u64 pacing_bytes_per_s;
	u32 rtprop_us; /* 0: no sample yet */
	u32 rounds;
	u32 full_bw;
	u8 mode;
	u8 cycle_index;
	u8 full_bw_rounds;
	u8 full_pipe;
	u8 round_start;
	u8 ca_state; /* at the last ACK */
	u8 conserving;
	u8 restarting; /* from idle */
	u8 seen_rtt;
	u8 probe_rtt_round_done;
	u8 reserved[2];
};

/* What only losses, PROBE_RTT and aggregated ACKs need. */
struct bbr_cold {
	u64 epoch_stamp_us; /* ACKs have been faster than the rate since then */
	u64 limited_until;  /* flights that began before so much was delivered are PROBE_RTT's */
	u32 epoch_acked;
	u32 extra_acked[2]; /* most beyond the rate, in this and the last BBR_EXTRA_ROUNDS rounds */
	u32 prior_cwnd;
	u8 extra_index;
	u8 extra_rounds;
	u8 reserved[6];
};
#define AB_COLD_BYTES_bbr 40
AB_STATIC_ASSERT(sizeof(struct bbr_cold) == AB_COLD_BYTES_bbr, "the cold part is as declared");

/* Formulas. */

/* Rate of `delivered` packets in interval_us > 0. delivered << 24 < 2^56. */
AB_INLINE u32 bbr_rate(u32 delivered, u32 interval_us)
{
	return (u32)ab_min_u64(((u64)delivered << BBR_BW_SHIFT) / interval_us, BBR_BW_MAX);
}

/* gain x bw x rtt in packets, rounded up. bw * rtt < 2^53, times gain < 2^63; the result is below 2^31. */
AB_INLINE u32 bbr_bdp(u32 bw, u32 rtt_us, u32 gain)
{
	u64 packets_q24 = (u64)bw * ab_min_u32(rtt_us, BBR_RTT_MAX_US) * gain >> 8;

	return (u32)((packets_q24 + BBR_BW_UNIT - 1) >> BBR_BW_SHIFT);
}

/* Bytes per second of payload at gain x bw, less the margin. bw * mss * gain < 2^29 * 2^16 * 2^10. */
AB_INLINE u64 bbr_pacing(u32 bw, u32 mss, u32 gain)
{
	return ab_mul_q24((u64)bw * ab_min_u32(mss, 65535) * gain >> 8, BBR_PACING_SHARE);
}

/* Segments of a burst of Linux at a pacing rate: what 1/1024 s lets out. */
AB_INLINE u32 bbr_burst(u64 pacing_bytes_per_s, u32 mss)
{
	u32 bytes = (u32)ab_min_u64(pacing_bytes_per_s >> 10, BBR_BURST_BYTES_MAX);
	u32 least = pacing_bytes_per_s < AB_ONE_SEGMENT_BELOW ? 1 : 2;

	return ab_min_u32(ab_max_u32(bytes / ab_max_u32(mss, 1), least), BBR_BURST_SEGMENTS_MAX);
}

AB_INLINE u32 bbr_pacing_gain(u32 mode, u32 cycle_index)
{
	if (mode == BBR_STARTUP)
		return BBR_HIGH_GAIN;
	if (mode == BBR_DRAIN)
		return BBR_DRAIN_GAIN;
	if (mode == BBR_PROBE_BW && cycle_index == 0)
		return BBR_GAIN_ONE * 5 / 4;
	if (mode == BBR_PROBE_BW && cycle_index == 1)
		return BBR_GAIN_ONE * 3 / 4;
	return BBR_GAIN_ONE;
}

AB_INLINE u32 bbr_cwnd_gain(u32 mode)
{
	if (mode == BBR_PROBE_BW)
		return BBR_CWND_GAIN;
	return mode == BBR_PROBE_RTT ? BBR_GAIN_ONE : BBR_HIGH_GAIN;
}

/* Model. */

AB_INLINE u64 bbr_since(u64 now_us, u64 stamp_us)
{
	return now_us > stamp_us ? now_us - stamp_us : 0;
}

AB_INLINE u32 bbr_bdp_now(const struct bbr_state *s, u32 gain)
{
	return s->rtprop_us ? bbr_bdp(s->btlbw.value[0], s->rtprop_us, gain) : BBR_CWND_INIT;
}

/* Room for bursts at sender and receiver, and for the probe of a small path. All terms are below 2^31. */
AB_INLINE u32 bbr_quantise(const struct bbr_state *s, u32 mss, u32 window)
{
	window += 3 * bbr_burst(s->pacing_bytes_per_s, mss);
	window = (window + 1) & ~1u;
	return s->mode == BBR_PROBE_BW && s->cycle_index == 0 ? window + 2 : window;
}

AB_INLINE u32 bbr_inflight(const struct bbr_state *s, u32 mss, u32 gain)
{
	return bbr_quantise(s, mss, bbr_bdp_now(s, gain));
}

AB_INLINE void bbr_pace(const struct ab_cc *cc, u64 bytes_per_s)
{
	((struct bbr_state *)cc->state)->pacing_bytes_per_s = bytes_per_s;
	cc->out->pacing_bytes_per_s = bytes_per_s;
	cc->out->mask |= AB_OUT_PACING;
}

/* Before there is an estimate: the window per RTT, of a millisecond if that is unknown. */
AB_INLINE void bbr_pace_by_window(const struct ab_cc *cc)
{
	struct bbr_state *s = cc->state;
	const struct ab_view *v = cc->view;
	u32 rtt_us = v->srtt8_us ? ab_max_u32(v->srtt8_us >> 3, 1) : BBR_NOMINAL_RTT_US;

	s->seen_rtt = v->srtt8_us > 0;
	bbr_pace(cc, bbr_pacing(bbr_rate(v->cwnd, rtt_us), v->mss, BBR_HIGH_GAIN));
}

/* Until the pipe is full the rate only rises, for the first samples are low. */
AB_INLINE void bbr_pace_by_model(const struct ab_cc *cc, u32 gain)
{
	struct bbr_state *s = cc->state;
	u64 rate = bbr_pacing(s->btlbw.value[0], cc->view->mss, gain);

	if (!s->seen_rtt && cc->view->srtt8_us)
		bbr_pace_by_window(cc);
	if (s->full_pipe || rate > s->pacing_bytes_per_s)
		bbr_pace(cc, rate);
}

AB_INLINE void bbr_save_cwnd(const struct ab_cc *cc)
{
	const struct bbr_state *s = cc->state;
	struct bbr_cold *c = cc->cold;

	if (s->ca_state < AB_CA_RECOVERY && s->mode != BBR_PROBE_RTT)
		c->prior_cwnd = cc->view->cwnd;
	else
		c->prior_cwnd = ab_max_u32(c->prior_cwnd, cc->view->cwnd);
}

AB_INLINE void bbr_enter_probe_bw(struct bbr_state *s, const struct ab_view *v)
{
	/* Any phase but the draining one; flows that start together should not probe together. */
	u32 start = v->random % (BBR_CYCLE_LEN - 1);

	s->mode = BBR_PROBE_BW;
	s->cycle_index = (u8)(start ? start + 1 : 0);
	s->cycle_stamp_us = v->now_us;
}

AB_INLINE void bbr_update_round(struct bbr_state *s, const struct ab_view *v)
{
	s->round_start = v->rs_prior_delivered >= s->next_round_delivered;
	if (!s->round_start)
		return;
	s->next_round_delivered = v->delivered;
	s->rounds++;
	s->conserving = 0;
}

AB_INLINE int bbr_limited(const struct ab_cc *cc)
{
	const struct bbr_cold *c = cc->cold;

	return cc->view->rs_app_limited || cc->view->rs_prior_delivered < c->limited_until;
}

AB_INLINE void bbr_update_btlbw(const struct ab_cc *cc)
{
	struct bbr_state *s = cc->state;
	u32 bw = bbr_rate(cc->view->rs_delivered, cc->view->rs_interval_us);

	if (!bbr_limited(cc) || bw >= s->btlbw.value[0])
		ab_windowed_max_add(&s->btlbw, BBR_BW_ROUNDS, s->rounds, bw);
}

/* How much more ACKs have brought than the rate would, since they last fell behind it. */
AB_INLINE void bbr_update_aggregation(const struct ab_cc *cc)
{
	struct bbr_state *s = cc->state;
	struct bbr_cold *c = cc->cold;
	const struct ab_view *v = cc->view;
	u32 acked = ab_min_u32(v->acked_sacked, BBR_EPOCH_ACKED_MAX), index = c->extra_index & 1;
	u64 expected;

	if (!acked)
		return;
	if (s->round_start && ++c->extra_rounds >= BBR_EXTRA_ROUNDS) {
		c->extra_rounds = 0;
		index ^= 1;
		c->extra_index = (u8)index;
		c->extra_acked[index] = 0;
	}
	expected = ab_mul_q24(bbr_since(v->now_us, c->epoch_stamp_us), s->btlbw.value[0]);
	if (c->epoch_acked <= expected || c->epoch_acked + acked >= BBR_EPOCH_ACKED_MAX) {
		c->epoch_acked = 0;
		c->epoch_stamp_us = v->now_us;
		expected = 0;
	}
	c->epoch_acked += acked;
	/* expected < epoch_acked here. */
	c->extra_acked[index] =
	    ab_max_u32(c->extra_acked[index], ab_min_u32(c->epoch_acked - (u32)expected, v->cwnd));
}

/* At most what 100 ms bring. */
AB_INLINE u32 bbr_aggregation_room(const struct ab_cc *cc)
{
	const struct bbr_params *p = cc->params;
	const struct bbr_state *s = cc->state;
	const struct bbr_cold *c = cc->cold;
	u32 most = (u32)((u64)s->btlbw.value[0] * BBR_EXTRA_TIME_MAX_US >> BBR_BW_SHIFT);

	if (!p->aggregation || !s->full_pipe)
		return 0;
	return ab_min_u32(ab_max_u32(c->extra_acked[0], c->extra_acked[1]), most);
}

/* A phase lasts an RTprop; the probing one until it has filled the pipe, the draining one until it is empty.
 */
AB_INLINE void bbr_update_cycle(const struct ab_cc *cc)
{
	struct bbr_state *s = cc->state;
	const struct ab_view *v = cc->view;
	u32 gain = bbr_pacing_gain(s->mode, s->cycle_index);
	int over = bbr_since(v->now_us, s->cycle_stamp_us) > s->rtprop_us;

	if (s->mode != BBR_PROBE_BW)
		return;
	if (gain > BBR_GAIN_ONE)
		over = over && (v->rs_losses || v->prior_in_flight >= bbr_inflight(s, v->mss, gain));
	else if (gain < BBR_GAIN_ONE)
		over = over || v->prior_in_flight <= bbr_inflight(s, v->mss, BBR_GAIN_ONE);
	if (over) {
		s->cycle_index = (s->cycle_index + 1) & (BBR_CYCLE_LEN - 1);
		s->cycle_stamp_us = v->now_us;
	}
}

/* Three rounds that bring less than a quarter more: the pipe is full. full_bw < 2^29. */
AB_INLINE void bbr_check_full_pipe(const struct ab_cc *cc)
{
	struct bbr_state *s = cc->state;

	if (s->full_pipe || !s->round_start || bbr_limited(cc))
		return;
	if (s->btlbw.value[0] >= s->full_bw * 5ull / 4) {
		s->full_bw = s->btlbw.value[0];
		s->full_bw_rounds = 0;
		return;
	}
	s->full_pipe = ++s->full_bw_rounds >= BBR_FULL_BW_ROUNDS;
}

AB_INLINE void bbr_check_drain(struct bbr_state *s, const struct ab_view *v)
{
	if (s->mode == BBR_STARTUP && s->full_pipe)
		s->mode = BBR_DRAIN;
	if (s->mode == BBR_DRAIN && v->in_flight <= bbr_inflight(s, v->mss, BBR_GAIN_ONE))
		bbr_enter_probe_bw(s, v);
}

/* Leaves PROBE_RTT if its time is over; the window to go on with. */
AB_INLINE u32 bbr_end_probe_rtt(const struct ab_cc *cc, u32 cwnd)
{
	struct bbr_state *s = cc->state;
	const struct bbr_cold *c = cc->cold;
	const struct ab_view *v = cc->view;

	if (!s->probe_rtt_done_us || v->now_us <= s->probe_rtt_done_us)
		return cwnd;
	s->rtprop_stamp_us = v->now_us;
	if (s->full_pipe)
		bbr_enter_probe_bw(s, v);
	else
		s->mode = BBR_STARTUP;
	return ab_max_u32(cwnd, c->prior_cwnd);
}

AB_INLINE u32 bbr_probe_rtt(const struct ab_cc *cc, u32 cwnd)
{
	const struct bbr_params *p = cc->params;
	struct bbr_state *s = cc->state;
	struct bbr_cold *c = cc->cold;
	const struct ab_view *v = cc->view;

	c->limited_until = v->delivered + v->in_flight + 1;
	if (!s->probe_rtt_done_us && v->in_flight <= BBR_CWND_MIN) {
		s->probe_rtt_done_us = v->now_us + p->probe_rtt_time_us;
		s->probe_rtt_round_done = 0;
		s->next_round_delivered = v->delivered;
	} else if (s->probe_rtt_done_us) {
		s->probe_rtt_round_done |= s->round_start;
		if (s->probe_rtt_round_done)
			return bbr_end_probe_rtt(cc, cwnd);
	}
	return cwnd;
}

/* The window as it is, unless PROBE_RTT ends. */
AB_INLINE u32 bbr_update_rtprop(const struct ab_cc *cc)
{
	const struct bbr_params *p = cc->params;
	struct bbr_state *s = cc->state;
	const struct ab_view *v = cc->view;
	u32 rtt_us = ab_max_u32(v->rtt_us, 1), cwnd = v->cwnd;
	int expired = bbr_since(v->now_us, s->rtprop_stamp_us) > p->rtprop_window_us;

	if (v->rtt_valid && (!s->rtprop_us || rtt_us <= s->rtprop_us || expired)) {
		s->rtprop_us = rtt_us;
		s->rtprop_stamp_us = v->now_us;
	}
	if (expired && !s->restarting && s->mode != BBR_PROBE_RTT) {
		s->mode = BBR_PROBE_RTT;
		bbr_save_cwnd(cc);
		s->probe_rtt_done_us = 0;
	}
	if (s->mode == BBR_PROBE_RTT)
		cwnd = bbr_probe_rtt(cc, cwnd);
	if (v->rs_delivered > 0)
		s->restarting = 0;
	return cwnd;
}

/* The window. */

/* Losses and recoveries: packets are conserved for a round, and the window comes back in the end. */
AB_INLINE u32 bbr_recover(const struct ab_cc *cc, u32 cwnd)
{
	struct bbr_state *s = cc->state;
	const struct bbr_cold *c = cc->cold;
	const struct ab_view *v = cc->view;
	u32 conserved =
	    ab_min_u32(v->in_flight, BBR_WINDOW_MAX) + ab_min_u32(v->acked_sacked, BBR_WINDOW_MAX);

	if (v->rs_losses > 0)
		cwnd = cwnd > v->rs_losses ? cwnd - v->rs_losses : 1;
	if (v->ca_state == AB_CA_RECOVERY && s->ca_state != AB_CA_RECOVERY) {
		s->conserving = 1;
		s->next_round_delivered = v->delivered; /* a round from now */
		cwnd = conserved;
	} else if (s->ca_state >= AB_CA_RECOVERY && v->ca_state < AB_CA_RECOVERY) {
		cwnd = ab_max_u32(cwnd, c->prior_cwnd);
		s->conserving = 0;
	}
	s->ca_state = v->ca_state;
	return s->conserving ? ab_max_u32(cwnd, conserved) : cwnd;
}

/* Towards the target, or beyond all bounds as long as the pipe is not full. */
AB_INLINE u32 bbr_grow(const struct ab_cc *cc, u32 cwnd)
{
	const struct bbr_state *s = cc->state;
	const struct ab_view *v = cc->view;
	u32 acked = ab_min_u32(v->acked_sacked, BBR_WINDOW_MAX);
	u32 bdp = ab_min_u32(bbr_bdp_now(s, bbr_cwnd_gain(s->mode)), BBR_WINDOW_MAX);
	u32 target = bbr_quantise(s, v->mss, bdp + bbr_aggregation_room(cc));

	cwnd = ab_min_u32(cwnd, BBR_WINDOW_MAX);
	if (s->full_pipe)
		cwnd = ab_min_u32(cwnd + acked, target);
	else if (cwnd < target || v->delivered < BBR_CWND_INIT)
		cwnd += acked;
	return ab_max_u32(cwnd, BBR_CWND_MIN);
}

/* Events. */

AB_INLINE void bbr_init(const struct ab_cc *cc)
{
	struct bbr_state *s = cc->state;
	struct bbr_cold *c = cc->cold;
	const struct ab_view *v = cc->view;

	s->next_round_delivered = v->delivered;
	s->rtprop_us = v->min_rtt_us;
	s->rtprop_stamp_us = v->now_us;
	c->epoch_stamp_us = v->now_us;
	bbr_pace_by_window(cc);
}

AB_INLINE void bbr_on_ack(const struct ab_cc *cc)
{
	struct bbr_state *s = cc->state;
	const struct ab_view *v = cc->view;
	u32 cwnd, recovered;

	s->round_start = 0;
	if (v->rs_interval_us) {
		bbr_update_round(s, v);
		bbr_update_btlbw(cc);
		bbr_update_aggregation(cc);
	}
	bbr_update_cycle(cc);
	bbr_check_full_pipe(cc);
	bbr_check_drain(s, v);
	cwnd = bbr_update_rtprop(cc);
	bbr_pace_by_model(cc, bbr_pacing_gain(s->mode, s->cycle_index));
	if (v->acked_sacked) {
		recovered = bbr_recover(cc, cwnd);
		cwnd = s->conserving ? recovered : bbr_grow(cc, recovered);
	}
	if (s->mode == BBR_PROBE_RTT)
		cwnd = ab_min_u32(cwnd, BBR_CWND_MIN);
	ab_set_cwnd(cc, cwnd);
}

/* ssthresh plays no part: it stays. */
AB_INLINE u32 bbr_loss(const struct ab_cc *cc)
{
	bbr_save_cwnd(cc);
	return cc->view->ssthresh;
}

AB_INLINE void bbr_rto(const struct ab_cc *cc)
{
	struct bbr_state *s = cc->state;

	s->ca_state = AB_CA_LOSS;
	s->full_bw = 0;
}

AB_INLINE u32 bbr_undo(const struct ab_cc *cc)
{
	struct bbr_state *s = cc->state;

	s->full_bw = 0;
	s->full_bw_rounds = 0;
	return cc->view->cwnd;
}

AB_INLINE void bbr_idle_restart(const struct ab_cc *cc)
{
	struct bbr_state *s = cc->state;
	struct bbr_cold *c = cc->cold;

	if (!cc->view->app_limited)
		return;
	s->restarting = 1;
	c->epoch_stamp_us = cc->view->now_us;
	c->epoch_acked = 0;
	if (s->mode == BBR_PROBE_BW)
		bbr_pace_by_model(cc, BBR_GAIN_ONE);
	else if (s->mode == BBR_PROBE_RTT)
		ab_set_cwnd(cc, bbr_end_probe_rtt(cc, cc->view->cwnd));
}

#define AB_EVENTS_bbr(E)                                                                                     \
	E(init, bbr_init)                                                                                    \
	E(rtt_sample, ab_ignore)                                                                             \
	E(loss, bbr_loss)                                                                                    \
	E(rto, bbr_rto)                                                                                      \
	E(recovery_exit, ab_ignore)                                                                          \
	E(undo, bbr_undo)                                                                                    \
	E(ecn, ab_ignore)                                                                                    \
	E(ack, ab_ignore)                                                                                    \
	E(rate, bbr_on_ack)                                                                                  \
	E(idle_restart, bbr_idle_restart)                                                                    \
	E(peer_join, ab_ignore)                                                                              \
	E(peer_leave, ab_ignore)                                                                             \
	E(release, ab_ignore)

#endif
