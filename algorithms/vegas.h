/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Vegas (Brakmo, Peterson 1995), once per round trip: with base the smallest RTT of the connection and rtt
 * that of the round, diff = W (rtt - base) / rtt packets are in queues; keep it between alpha and beta.
 *
 *                     ns2 (default)                          linux
 *  rtt of the round   mean of the samples                    minimum; with fewer than 3 samples Reno's step
 *  diff               W (rtt - base) / rtt                   W (rtt - base) / base, truncated
 *  slow start         doubles every other round              doubles every round
 *  leave it           diff > gamma: W - W / 8, ssthresh 2    diff > gamma: W base / rtt + 1
 *  increase           1 / W per packet over the next round   1 at once
 *  fast retransmit    3/4 W                                  1/2 W
 *  timeout            ssthresh W / 2, W = 2                  ssthresh W / 2, W = 1
 *
 * alpha 2 and beta 4 go with linux; the defaults, 1 and 3, are those of ns-2.
 *
 * We differ in:
 *  - W is the window, not the packets in transit, and ns2's diff is not rounded to whole packets (8
 *    fraction bits);
 *  - the fine-grained retransmission timer belongs to recovery, which is the host's;
 *  - a second retransmission of the same packet is no new event, so ns2's reduction to 1/2 does not
 *    occur;
 *  - in congestion avoidance ssthresh follows the window down, so that a decrease is not taken for slow
 *    start;
 *  - a round with no sample decides nothing.
 */
#ifndef ANABRANCH_VEGAS_H
#define ANABRANCH_VEGAS_H

#include "anabranch/cc.h"
#include "anabranch/fixedpoint.h"

enum vegas_variant { VEGAS_NS2 = 0, VEGAS_LINUX = 1 };

#define AB_PARAMS_vegas(P)                                                                                   \
	P(variant, AB_UNIT_CHOICE, VEGAS_NS2, 0, 1, "ns2|linux: which implementation's rules")               \
	P(alpha, AB_UNIT_PACKETS, 1, 1, 1000, "grow below this many queued packets (linux: 2)")              \
	P(beta, AB_UNIT_PACKETS, 3, 1, 1000, "shrink above this many queued packets (linux: 4)")             \
	P(gamma, AB_UNIT_PACKETS, 1, 1, 1000, "leave slow start above this many queued packets")
#define AB_COLD_BYTES_vegas 0

struct vegas_params {
	AB_PARAMS_vegas(AB_PARAM_FIELD)
};

#define VEGAS_CWND_MIN      2
#define VEGAS_CWND_MAX      ((1u << 24) - 1) /* larger windows count as this one in diff */
#define VEGAS_LINUX_SAMPLES 3

struct vegas_state {
	u64 rtt_sum_us; /* of the round */
	u32 rtt_count;
	u32 rtt_min_us;
	u32 base_rtt_us;  /* 0: no sample yet */
	u32 cwnd_at_loss; /* 0: no loss yet */
	u8 grow;          /* ns2: the window grows in this round */
};

/* A window and a threshold being decided. */
struct vegas_window {
	u32 cwnd;
	u32 ssthresh;
};

enum vegas_step { VEGAS_HOLD, VEGAS_UP, VEGAS_DOWN };

/* Queued packets, 8 fraction bits: ((2^24 - 1) << 8) * (2^32 - 1) < 2^64; at most W << 8 < 2^32. rtt > 0. */
AB_INLINE u32 vegas_diff_q8(u32 cwnd, u32 base_us, u32 rtt_us)
{
	u64 queued_us = rtt_us > base_us ? rtt_us - base_us : 0;

	return (u32)(((u64)ab_min_u32(cwnd, VEGAS_CWND_MAX) << 8) * queued_us / rtt_us);
}

/* Queued packets as Linux counts them: whole ones, by the base RTT. base > 0. */
AB_INLINE u64 vegas_diff_linux(u32 cwnd, u32 base_us, u32 rtt_us)
{
	u64 queued_us = rtt_us > base_us ? rtt_us - base_us : 0;

	return cwnd * queued_us / base_us;
}

AB_INLINE void vegas_new_round(struct vegas_state *s)
{
	s->rtt_sum_us = 0;
	s->rtt_count = 0;
	s->rtt_min_us = AB_U32_MAX;
}

AB_INLINE void vegas_start(struct vegas_state *s, u32 base_rtt_us)
{
	vegas_new_round(s);
	s->base_rtt_us = base_rtt_us;
	s->cwnd_at_loss = 0;
	s->grow = 1;
}

AB_INLINE void vegas_sample(const struct ab_cc *cc, struct vegas_state *s)
{
	u32 rtt_us = ab_max_u32(cc->view->rtt_us, 1);

	if (!s->base_rtt_us || rtt_us < s->base_rtt_us)
		s->base_rtt_us = rtt_us;
	s->rtt_min_us = ab_min_u32(s->rtt_min_us, rtt_us);
	s->rtt_sum_us += rtt_us;
	s->rtt_count++;
}

/* Mean RTT if this ACK ends a round that has samples, else 0. A finished round is forgotten. */
AB_INLINE u32 vegas_round_mean_us(const struct ab_cc *cc, struct vegas_state *s)
{
	u32 mean_us = 0;

	if (!cc->view->round_start)
		return 0;
	if (s->rtt_count)
		mean_us = (u32)(s->rtt_sum_us / s->rtt_count);
	vegas_new_round(s);
	return mean_us;
}

AB_INLINE u32 vegas_one_less(u32 cwnd)
{
	return cwnd > VEGAS_CWND_MIN ? cwnd - 1 : cwnd;
}

/* ns2, end of a round of slow start. */
AB_INLINE void vegas_decide_slow_start(struct vegas_state *s, struct vegas_window *w, u32 gamma, u32 diff_q8)
{
	if (diff_q8 > gamma << 8) {
		w->cwnd = ab_max_u32(w->cwnd - w->cwnd / 8, VEGAS_CWND_MIN);
		w->ssthresh = VEGAS_CWND_MIN;
		s->grow = 0;
	} else {
		s->grow = !s->grow;
	}
}

/* ssthresh is at most the window, and at least 2 (RFC 5681) though a timeout makes the window 1. */
AB_INLINE void vegas_follow_down(struct vegas_window *w)
{
	w->ssthresh = ab_min_u32(w->ssthresh, ab_max_u32(w->cwnd, VEGAS_CWND_MIN));
}

/* ns2, end of a round of congestion avoidance. */
AB_INLINE void vegas_decide(struct vegas_state *s, struct vegas_window *w, u32 step)
{
	s->grow = step == VEGAS_UP;
	if (step == VEGAS_DOWN) {
		w->cwnd = vegas_one_less(w->cwnd);
		vegas_follow_down(w);
	}
}

/* ns2, every ACK: grow as the round's decision says, and answer. */
AB_INLINE void vegas_advance(const struct ab_cc *cc, const struct vegas_state *s, struct vegas_window *w)
{
	const struct ab_view *v = cc->view;
	u32 cnt = v->cwnd_cnt;

	if (s->grow && v->cwnd_limited) {
		if (w->cwnd < w->ssthresh)
			w->cwnd = ab_min_u32(w->ssthresh, w->cwnd + v->acked);
		else
			ab_additive_increase(&w->cwnd, &cnt, w->cwnd, v->acked);
	}
	ab_set_cwnd(cc, w->cwnd);
	ab_set_cwnd_cnt(cc, cnt);
	ab_set_ssthresh(cc, w->ssthresh);
}

/* ns2 fast retransmit: three quarters. rto needs the window, so it is kept. */
AB_INLINE u32 vegas_reduce(const struct ab_cc *cc, struct vegas_state *s)
{
	u32 cwnd = cc->view->cwnd;

	s->cwnd_at_loss = cwnd;
	return ab_max_u32((u32)((u64)cwnd * 3 / 4), VEGAS_CWND_MIN);
}

/* ns2 timeout: slow start from 2 up to half of the window before the loss. */
AB_INLINE void vegas_restart(const struct ab_cc *cc, struct vegas_state *s)
{
	if (s->cwnd_at_loss)
		ab_set_ssthresh(cc, ab_max_u32(s->cwnd_at_loss / 2, VEGAS_CWND_MIN));
	ab_set_cwnd(cc, VEGAS_CWND_MIN);
	vegas_new_round(s);
	s->grow = 1;
}

AB_INLINE void vegas_ack_ns2(const struct ab_cc *cc, struct vegas_state *s, const struct vegas_params *p)
{
	struct vegas_window w = {cc->view->cwnd, cc->view->ssthresh};
	u32 rtt_us = vegas_round_mean_us(cc, s), diff_q8;

	if (rtt_us) {
		diff_q8 = vegas_diff_q8(w.cwnd, s->base_rtt_us, rtt_us);
		if (w.cwnd < w.ssthresh)
			vegas_decide_slow_start(s, &w, p->gamma, diff_q8);
		else if (diff_q8 < p->alpha << 8)
			vegas_decide(s, &w, VEGAS_UP);
		else
			vegas_decide(s, &w, diff_q8 > p->beta << 8 ? VEGAS_DOWN : VEGAS_HOLD);
	}
	vegas_advance(cc, s, &w);
}

/* linux: Reno's step for one ACK. */
AB_INLINE void vegas_reno_step(const struct ab_view *v, struct vegas_window *w, u32 *cnt)
{
	if (w->cwnd < w->ssthresh)
		w->cwnd = ab_min_u32(w->ssthresh, w->cwnd + v->acked);
	else
		ab_additive_increase(&w->cwnd, cnt, w->cwnd, v->acked);
}

/* linux: the end of a round with enough samples. */
AB_INLINE void vegas_decide_linux(const struct ab_cc *cc, const struct vegas_state *s,
				  const struct vegas_params *p, struct vegas_window *w)
{
	u32 rtt_us = s->rtt_min_us, fitting;
	u64 diff = vegas_diff_linux(w->cwnd, s->base_rtt_us, rtt_us);

	if (w->cwnd < w->ssthresh) {
		if (diff > p->gamma) {
			fitting = (u32)((u64)w->cwnd * s->base_rtt_us / rtt_us) + 1;
			w->cwnd = ab_min_u32(w->cwnd, ab_max_u32(fitting, VEGAS_CWND_MIN));
			vegas_follow_down(w);
		} else if (cc->view->cwnd_limited) {
			w->cwnd = ab_min_u32(w->ssthresh, w->cwnd + cc->view->acked);
		}
	} else if (diff > p->beta) {
		w->cwnd = vegas_one_less(w->cwnd);
		vegas_follow_down(w);
	} else if (diff < p->alpha && cc->view->cwnd_limited) {
		w->cwnd++;
	}
}

AB_INLINE void vegas_ack_linux(const struct ab_cc *cc, struct vegas_state *s, const struct vegas_params *p)
{
	const struct ab_view *v = cc->view;
	struct vegas_window w = {v->cwnd, v->ssthresh};
	u32 cnt = v->cwnd_cnt;

	if (v->round_start && s->rtt_count >= VEGAS_LINUX_SAMPLES)
		vegas_decide_linux(cc, s, p, &w);
	else if (v->cwnd_limited && (v->round_start || w.cwnd < w.ssthresh))
		vegas_reno_step(v, &w, &cnt);
	if (v->round_start)
		vegas_new_round(s);
	ab_set_cwnd(cc, w.cwnd);
	ab_set_cwnd_cnt(cc, cnt);
	ab_set_ssthresh(cc, w.ssthresh);
}

AB_INLINE void vegas_init(const struct ab_cc *cc)
{
	vegas_start((struct vegas_state *)cc->state, 0);
}

AB_INLINE void vegas_rtt_sample(const struct ab_cc *cc)
{
	vegas_sample(cc, (struct vegas_state *)cc->state);
}

AB_INLINE void vegas_ack(const struct ab_cc *cc)
{
	const struct vegas_params *p = (const struct vegas_params *)cc->params;
	struct vegas_state *s = (struct vegas_state *)cc->state;

	if (p->variant == VEGAS_LINUX)
		vegas_ack_linux(cc, s, p);
	else
		vegas_ack_ns2(cc, s, p);
}

AB_INLINE u32 vegas_loss(const struct ab_cc *cc)
{
	const struct vegas_params *p = (const struct vegas_params *)cc->params;

	if (p->variant == VEGAS_LINUX)
		return ab_half_cwnd(cc);
	return vegas_reduce(cc, (struct vegas_state *)cc->state);
}

AB_INLINE void vegas_rto(const struct ab_cc *cc)
{
	const struct vegas_params *p = (const struct vegas_params *)cc->params;
	struct vegas_state *s = (struct vegas_state *)cc->state;

	if (p->variant == VEGAS_LINUX)
		vegas_new_round(s);
	else
		vegas_restart(cc, s);
}

/* Samples of a recovery or from before a pause say nothing about the next round. */
AB_INLINE void vegas_forget_round(const struct ab_cc *cc)
{
	vegas_new_round((struct vegas_state *)cc->state);
}

#define AB_EVENTS_vegas(E)                                                                                   \
	E(init, vegas_init)                                                                                  \
	E(rtt_sample, vegas_rtt_sample)                                                                      \
	E(loss, vegas_loss)                                                                                  \
	E(rto, vegas_rto)                                                                                    \
	E(recovery_exit, vegas_forget_round)                                                                 \
	E(undo, ab_undo_to_prior)                                                                            \
	E(ecn, ab_ignore)                                                                                    \
	E(ack, vegas_ack)                                                                                    \
	E(rate, ab_ignore)                                                                                   \
	E(idle_restart, vegas_forget_round)                                                                  \
	E(peer_join, ab_ignore)                                                                              \
	E(peer_leave, ab_ignore)                                                                             \
	E(release, ab_ignore)

#endif
