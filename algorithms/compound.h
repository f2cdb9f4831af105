/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Compound TCP (Tan, Song, Zhang, Sridharan 2006; draft-sridharan-tcpm-ctcp-02): the window is the sum of a
 * loss window, which does as Reno's, and a delay window that fills an idle path fast and leaves when a queue
 * builds up.
 *
 *   per packet acknowledged  loss window += 1 / window
 *   per round trip           diff = window (rtt - base) / rtt packets are queued (as in vegas.h)
 *     diff < gamma           delay window += max(window^(3/4) / 8 - 1, 0)
 *     else                   delay window = max(delay window - diff, 0)
 *   loss                     each half of its own, the sum half of the sum
 *
 * The delay window is 0 in slow start and while the sum is below `low_window`.
 *
 * `precision = exact`, the default, has the delay window and diff with 8 fraction bits; `kernel` has whole
 * packets and diff with one bit, as the module for Linux and ns-2's Linux agents.
 *
 * We differ in:
 *  - gamma is a parameter, 30 packets as in the paper; the draft tunes it within [5, 30];
 *  - rtt is the mean of the round (the module takes the minimum);
 *  - a window that falls below `low_window` stays what it is; all of it is loss window from then on;
 *  - in congestion avoidance ssthresh follows the window down, so that a decrease is not slow start.
 */
#ifndef ANABRANCH_COMPOUND_H
#define ANABRANCH_COMPOUND_H

#include "vegas.h"

enum compound_precision { COMPOUND_EXACT = 0, COMPOUND_KERNEL = 1 };

#define AB_PARAMS_compound(P)                                                                                \
	P(gamma, AB_UNIT_PACKETS, 30, 1, 1000, "shrink the delay window from this many queued packets on")   \
	P(low_window, AB_UNIT_PACKETS, 38, 2, 10000, "no delay window below this window")                    \
	P(precision, AB_UNIT_CHOICE, COMPOUND_EXACT, 0, 1,                                                   \
	  "exact|kernel: resolution of the delay window, fine or that of Linux")
#define AB_COLD_BYTES_compound 0

struct compound_params {
	AB_PARAMS_compound(AB_PARAM_FIELD)
};

/* Packets. The cube of the first is below 2^63; larger windows count as this one. */
#define COMPOUND_ROOT_CWND_MAX ((1u << 21) - 1)
#define COMPOUND_DWND_MAX      (1u << 20)

struct compound_state {
	struct vegas_state vegas; /* base RTT and the samples of the round */
	u32 dwnd_q8;              /* delay window */
	u32 dwnd_before_loss_q8;
	u32 odd; /* the last halving left half a packet */
};

/*
 * window^(3/4) / 8 - 1, at least 0, 8 fraction bits. The cube is shifted left by four bits at a time as far
 * as 63 bits go: the root has a quarter of the shift, and 16 bits at most, so 2^16 * 2^8 fits u32.
 */
AB_INLINE u32 compound_increase_q8(u32 window, u32 precision)
{
	u64 w = ab_min_u32(window, COMPOUND_ROOT_CWND_MAX), cube = w * w * w;
	u32 quarter = (63 - ab_bit_length(cube)) / 4, eighth_q8;

	if (precision == COMPOUND_KERNEL)
		eighth_q8 = ab_quartic_root(cube) >> 3 << 8;
	else
		eighth_q8 = (ab_quartic_root(cube << 4 * quarter) << 8 >> quarter) >> 3;
	return eighth_q8 > 256 ? eighth_q8 - 256 : 0;
}

/* The delay window, whole packets. A host that takes of the window does not leave the loss window nothing. */
AB_INLINE u32 compound_dwnd(struct compound_state *s, u32 window)
{
	if (s->dwnd_q8 >> 8 >= window)
		s->dwnd_q8 = (window - 1) << 8;
	return s->dwnd_q8 >> 8;
}

/* The delay window after a round; `limited`: the window was in use. 2^28 and an increase below 2^21 fit u32.
 */
AB_INLINE u32 compound_next_dwnd_q8(const struct compound_params *p, u32 window, u32 dwnd_q8, u32 diff_q8,
				    u32 limited)
{
	if (p->precision == COMPOUND_KERNEL)
		diff_q8 = diff_q8 >> 7 << 7;
	if (diff_q8 >= p->gamma << 8)
		return dwnd_q8 > diff_q8 ? dwnd_q8 - diff_q8 : 0;
	if (!limited)
		return dwnd_q8;
	return ab_min_u32(dwnd_q8 + compound_increase_q8(window, p->precision), COMPOUND_DWND_MAX << 8);
}

AB_INLINE void compound_avoid(const struct ab_cc *cc, struct compound_state *s, u32 rtt_us, u32 *cwnd,
			      u32 *cnt)
{
	const struct compound_params *p = (const struct compound_params *)cc->params;
	u32 limited = cc->view->cwnd_limited, lwnd, diff_q8;

	if (*cwnd < p->low_window) {
		s->dwnd_q8 = 0;
	} else if (rtt_us) {
		lwnd = *cwnd - compound_dwnd(s, *cwnd);
		diff_q8 = vegas_diff_q8(*cwnd, s->vegas.base_rtt_us, rtt_us);
		s->dwnd_q8 = compound_next_dwnd_q8(p, *cwnd, s->dwnd_q8, diff_q8, limited);
		*cwnd = lwnd + (s->dwnd_q8 >> 8);
	}
	if (limited)
		ab_additive_increase(cwnd, cnt, *cwnd, cc->view->acked);
}

AB_INLINE void compound_ack(const struct ab_cc *cc)
{
	struct compound_state *s = (struct compound_state *)cc->state;
	const struct ab_view *v = cc->view;
	u32 cwnd = v->cwnd, cnt = v->cwnd_cnt, rtt_us = vegas_round_mean_us(cc, &s->vegas);

	if (ab_in_slow_start(v)) {
		s->dwnd_q8 = 0;
		if (v->cwnd_limited)
			cnt = ab_slow_start(v, v->acked, &cwnd);
	} else {
		compound_avoid(cc, s, rtt_us, &cwnd, &cnt);
		ab_set_ssthresh(cc, ab_min_u32(v->ssthresh, ab_max_u32(cwnd, 2)));
	}
	ab_set_cwnd(cc, cwnd);
	ab_set_cwnd_cnt(cc, cnt);
}

AB_INLINE void compound_init(const struct ab_cc *cc)
{
	vegas_start(&((struct compound_state *)cc->state)->vegas, 0);
}

AB_INLINE void compound_rtt_sample(const struct ab_cc *cc)
{
	vegas_sample(cc, &((struct compound_state *)cc->state)->vegas);
}

/* Half of the loss window stays, and the delay window is what is missing to half of the sum. */
AB_INLINE u32 compound_loss(const struct ab_cc *cc)
{
	struct compound_state *s = (struct compound_state *)cc->state;
	u32 cwnd = cc->view->cwnd, dwnd = compound_dwnd(s, cwnd), half = ab_half_exactly(cc, &s->odd);

	s->dwnd_before_loss_q8 = s->dwnd_q8;
	s->dwnd_q8 = (half - ab_min_u32((cwnd - dwnd + 1) / 2, half)) << 8;
	return half;
}

AB_INLINE void compound_rto(const struct ab_cc *cc)
{
	struct compound_state *s = (struct compound_state *)cc->state;

	s->dwnd_q8 = 0;
	s->odd = 0;
	vegas_new_round(&s->vegas);
}

AB_INLINE void compound_recovery_exit(const struct ab_cc *cc)
{
	struct compound_state *s = (struct compound_state *)cc->state;

	vegas_new_round(&s->vegas);
	ab_restore_half(cc, &s->odd);
}

AB_INLINE u32 compound_undo(const struct ab_cc *cc)
{
	struct compound_state *s = (struct compound_state *)cc->state;

	s->dwnd_q8 = s->dwnd_before_loss_q8;
	return ab_undo_to_prior(cc);
}

AB_INLINE void compound_idle_restart(const struct ab_cc *cc)
{
	vegas_new_round(&((struct compound_state *)cc->state)->vegas);
}

#define AB_EVENTS_compound(E)                                                                                \
	E(init, compound_init)                                                                               \
	E(rtt_sample, compound_rtt_sample)                                                                   \
	E(loss, compound_loss)                                                                               \
	E(rto, compound_rto)                                                                                 \
	E(recovery_exit, compound_recovery_exit)                                                             \
	E(undo, compound_undo)                                                                               \
	E(ecn, ab_ignore)                                                                                    \
	E(ack, compound_ack)                                                                                 \
	E(rate, ab_ignore)                                                                                   \
	E(idle_restart, compound_idle_restart)                                                               \
	E(peer_join, ab_ignore)                                                                              \
	E(peer_leave, ab_ignore)                                                                             \
	E(release, ab_ignore)

#endif
