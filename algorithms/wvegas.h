/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * wVegas, weighted Vegas (Cao, Xu, Fu, ICNP 2012): Vegas on every subflow, the packets to keep in queues
 * divided among the subflows by their rates, so that queueing delays become equal.
 *
 * Once per round trip, with base the smallest RTT, rtt the mean of the round and
 * diff = w (rtt - base) / rtt packets in queues:
 *  - slow start: with diff > gamma w <- min(w, w base / rtt + 1), and it ends;
 *  - else, if diff >= alpha: rate = w / rtt, weight = rate / sum of the subflows' rates,
 *    alpha <- max(2, floor(weight total_alpha)); then w - 1 above alpha, w + 1 below it;
 *  - and the queue is drained when its delay q = rtt - base is twice the smallest seen since the last time:
 *    w <- w base / (2 rtt). ssthresh is never below 3/4 of a round's window, so that slow start leads
 *    back there (from the multipath kernel).
 * A loss halves; after it, and after a timeout, everything but base begins anew. The window is never below 2.
 *
 * Published: pub[0] the rate in packets per microsecond with 24 fraction bits, 0 if unknown; pub[1] the
 * weight with 16.
 *
 * We differ in:
 *  - diff has 8 fraction bits (the kernel: whole packets), the rate 24 (the kernel: 16, which at 20 packets
 *    and 125 ms is 10, 5 % off), and alpha is computed from the rates, not from a rounded weight;
 *  - the window after a drain is rounded to nearest (the kernel: down);
 *  - a round without any queueing delay drains nothing; in the kernel it halves the window, which an
 *    emulated path with a constant RTT would do in every round;
 *  - ssthresh is at least 2.
 */
#ifndef ANABRANCH_WVEGAS_H
#define ANABRANCH_WVEGAS_H

#include "anabranch/coupled.h"
#include "vegas.h"

#define AB_PARAMS_wvegas(P)                                                                                  \
	P(total_alpha, AB_UNIT_PACKETS, 10, 2, 1000, "packets that all subflows together keep queued")       \
	P(initial_alpha, AB_UNIT_PACKETS, 2, 2, 1000, "share of a subflow until its rate is known")          \
	P(gamma, AB_UNIT_PACKETS, 1, 1, 1000, "leave slow start above this many queued packets")
#define AB_COLD_BYTES_wvegas 0

struct wvegas_params {
	AB_PARAMS_wvegas(AB_PARAM_FIELD)
};

#define WVEGAS_ALPHA_MIN 2u
#define WVEGAS_RATE_MAX  ((1ull << 48) - 1) /* VEGAS_CWND_MAX << 24 and less */
#define WVEGAS_SAMPLES   3                  /* a round with fewer makes Reno's step */

struct wvegas_state {
	struct vegas_state vegas;
	u64 rate_q24;     /* packets per microsecond when the queue last reached alpha; 0: not yet */
	u32 alpha;        /* packets to keep queued */
	u32 delay_min_us; /* smallest queueing delay since the last drain; 0: none */
};

AB_INLINE void wvegas_publish(const struct ab_cc *cc, u64 rate_q24, u64 weight_q16)
{
	cc->out->pub[0] = rate_q24;
	cc->out->pub[1] = weight_q16;
	cc->out->mask |= AB_OUT_PUB;
}

/* Begins anew, with base kept. */
AB_INLINE void wvegas_restart(const struct ab_cc *cc)
{
	const struct wvegas_params *p = (const struct wvegas_params *)cc->params;
	struct wvegas_state *s = (struct wvegas_state *)cc->state;

	vegas_new_round(&s->vegas);
	s->rate_q24 = 0;
	s->alpha = p->initial_alpha;
	s->delay_min_us = 0;
	wvegas_publish(cc, 0, 0);
}

/* The rates of all members; the own one as given, which is newer than the published one. At most 2^51. */
AB_INLINE u64 wvegas_rates(const struct ab_cc *cc, u64 own_q24)
{
	u32 members = ab_coupled_members(cc), k;
	u64 sum_q24 = own_q24;

	for (k = 0; k < AB_MAX_PEERS; k++) {
		if (k != cc->view->self && (members & 1u << k))
			sum_q24 += ab_min_u64(cc->peers[k].pub[0], WVEGAS_RATE_MAX);
	}
	return ab_max_u64(sum_q24, 1);
}

/* The queue has reached alpha: divides total_alpha anew. 2^48 * 1000 < 2^58, 2^48 << 16 = 2^64 - 2^16. */
AB_INLINE void wvegas_divide(const struct ab_cc *cc, struct wvegas_state *s, u32 rtt_us)
{
	const struct wvegas_params *p = (const struct wvegas_params *)cc->params;
	u64 sum_q24;

	s->rate_q24 = ((u64)ab_min_u32(cc->view->cwnd, VEGAS_CWND_MAX) << 24) / rtt_us;
	sum_q24 = wvegas_rates(cc, s->rate_q24);
	s->alpha = ab_max_u32((u32)(s->rate_q24 * p->total_alpha / sum_q24), WVEGAS_ALPHA_MIN);
	wvegas_publish(cc, s->rate_q24, (s->rate_q24 << 16) / sum_q24);
}

/* The window after a drain, if this round's delay asks for one, else the window. */
AB_INLINE u32 wvegas_drain(struct wvegas_state *s, u32 cwnd, u32 rtt_us)
{
	u32 delay_us = rtt_us - s->vegas.base_rtt_us;

	if (!delay_us)
		return cwnd;
	if (!s->delay_min_us || delay_us < s->delay_min_us)
		s->delay_min_us = delay_us;
	if (delay_us < 2 * (u64)s->delay_min_us)
		return cwnd;
	s->delay_min_us = 0;
	return (u32)ab_max_u64(((u64)cwnd * s->vegas.base_rtt_us + rtt_us) / (2 * (u64)rtt_us),
			       VEGAS_CWND_MIN);
}

/* The end of a round of slow start. */
AB_INLINE void wvegas_decide_slow_start(const struct ab_cc *cc, const struct wvegas_state *s,
					struct vegas_window *w, u32 rtt_us, u32 diff_q8)
{
	const struct wvegas_params *p = (const struct wvegas_params *)cc->params;
	u32 fitting = (u32)((u64)w->cwnd * s->vegas.base_rtt_us / rtt_us) + 1;

	if (diff_q8 > p->gamma << 8) {
		w->cwnd = ab_max_u32(ab_min_u32(w->cwnd, fitting), VEGAS_CWND_MIN);
		w->ssthresh = ab_min_u32(w->ssthresh, vegas_one_less(w->cwnd));
	} else if (cc->view->cwnd_limited) {
		w->cwnd = ab_min_u32(w->ssthresh, w->cwnd + cc->view->acked);
	}
}

/* The end of a round with enough samples, `rtt_us` their mean, at least base. */
AB_INLINE void wvegas_decide(const struct ab_cc *cc, struct wvegas_state *s, struct vegas_window *w,
			     u32 rtt_us)
{
	u32 diff_q8 = vegas_diff_q8(w->cwnd, s->vegas.base_rtt_us, rtt_us);

	if (w->cwnd < w->ssthresh) {
		wvegas_decide_slow_start(cc, s, w, rtt_us, diff_q8);
	} else {
		if (diff_q8 >= s->alpha << 8)
			wvegas_divide(cc, s, rtt_us);
		if (diff_q8 > s->alpha << 8) {
			w->cwnd = vegas_one_less(w->cwnd);
			w->ssthresh = ab_min_u32(w->ssthresh, vegas_one_less(w->cwnd));
		} else if (diff_q8 < s->alpha << 8 && cc->view->cwnd_limited) {
			w->cwnd++;
		}
		w->cwnd = wvegas_drain(s, w->cwnd, rtt_us);
	}
	w->ssthresh = ab_max_u32(w->ssthresh, w->cwnd - w->cwnd / 4);
}

AB_INLINE void wvegas_init(const struct ab_cc *cc)
{
	vegas_start(&((struct wvegas_state *)cc->state)->vegas, 0);
	wvegas_restart(cc);
}

AB_INLINE void wvegas_rtt_sample(const struct ab_cc *cc)
{
	vegas_sample(cc, &((struct wvegas_state *)cc->state)->vegas);
}

AB_INLINE void wvegas_ack(const struct ab_cc *cc)
{
	const struct ab_view *v = cc->view;
	struct wvegas_state *s = (struct wvegas_state *)cc->state;
	struct vegas_window w = {v->cwnd, v->ssthresh};
	u32 cnt = v->cwnd_cnt;

	if (v->round_start && s->vegas.rtt_count >= WVEGAS_SAMPLES)
		wvegas_decide(cc, s, &w, (u32)(s->vegas.rtt_sum_us / s->vegas.rtt_count));
	else if (v->cwnd_limited && (v->round_start || w.cwnd < w.ssthresh))
		vegas_reno_step(v, &w, &cnt);
	if (v->round_start)
		vegas_new_round(&s->vegas);
	ab_set_cwnd(cc, w.cwnd);
	ab_set_cwnd_cnt(cc, cnt);
	ab_set_ssthresh(cc, w.ssthresh);
}

AB_INLINE u32 wvegas_loss(const struct ab_cc *cc)
{
	return ab_half_cwnd(cc);
}

/* Samples from before a pause say nothing about the next round. */
AB_INLINE void wvegas_forget_round(const struct ab_cc *cc)
{
	vegas_new_round(&((struct wvegas_state *)cc->state)->vegas);
}

#define AB_EVENTS_wvegas(E)                                                                                  \
	E(init, wvegas_init)                                                                                 \
	E(rtt_sample, wvegas_rtt_sample)                                                                     \
	E(loss, wvegas_loss)                                                                                 \
	E(rto, wvegas_restart)                                                                               \
	E(recovery_exit, wvegas_restart)                                                                     \
	E(undo, ab_undo_to_prior)                                                                            \
	E(ecn, ab_ignore)                                                                                    \
	E(ack, wvegas_ack)                                                                                   \
	E(rate, ab_ignore)                                                                                   \
	E(idle_restart, wvegas_forget_round)                                                                 \
	E(peer_join, ab_ignore)                                                                              \
	E(peer_leave, ab_ignore)                                                                             \
	E(release, ab_ignore)

#endif
