/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Scalable TCP (Kelly 2003): the window grows by a = 0.01 packets per packet acknowledged, whatever its size,
 * and loses b = 1/8 at a loss. The time between two losses is then the same for every window.
 *
 *             paper (default)                        linux
 *  increase   Reno's below 16 packets, a from there  the greater of Reno's and a
 *  loss       half below 16 packets, 1/8 from there  1/8
 *
 * `ai_cnt` is 1 / a; Linux had 50 before it had 100, and so have ns-2's Linux agents and ns-3.
 *
 * We differ in:
 *  - the window is a whole number of packets; its fraction is in the counter of Reno's increase;
 *  - 1/8 of the window is of the window, not of the flight (see reno.h), and rounded down.
 */
#ifndef ANABRANCH_SCALABLE_H
#define ANABRANCH_SCALABLE_H

#include "anabranch/cc.h"

enum scalable_variant { SCALABLE_PAPER = 0, SCALABLE_LINUX = 1 };

#define AB_PARAMS_scalable(P)                                                                                \
	P(variant, AB_UNIT_CHOICE, SCALABLE_PAPER, 0, 1, "paper|linux: rules for small windows")             \
	P(ai_cnt, AB_UNIT_PACKETS, 100, 1, 10000,                                                            \
	  "packets to acknowledge per packet of increase, 1 / a (older Linux and ns-3: 50)")                 \
	P(legacy_window, AB_UNIT_PACKETS, 16, 1, 10000, "below this window Reno's rules (variant paper)")
#define AB_COLD_BYTES_scalable 0

struct scalable_params {
	AB_PARAMS_scalable(AB_PARAM_FIELD)
};

struct scalable_state {
	u32 odd; /* the last halving left half a packet */
};

/* A window of 16 whole packets is one of 16 to 17: above the bound. */
AB_INLINE int scalable_is_legacy(const struct scalable_params *p, u32 cwnd)
{
	return p->variant == SCALABLE_PAPER && cwnd < p->legacy_window;
}

/* Packets to acknowledge per packet of window. */
AB_INLINE u32 scalable_per(const struct scalable_params *p, u32 cwnd)
{
	if (p->variant == SCALABLE_LINUX)
		return ab_min_u32(cwnd, p->ai_cnt);
	return scalable_is_legacy(p, cwnd) ? cwnd : p->ai_cnt;
}

AB_INLINE void scalable_ack(const struct ab_cc *cc)
{
	u32 cwnd, cnt = cc->view->cwnd_cnt, acked;

	if (!ab_after_slow_start(cc, &cwnd, &acked))
		return;
	ab_additive_increase(&cwnd, &cnt, scalable_per((const struct scalable_params *)cc->params, cwnd),
			     acked);
	ab_set_cwnd(cc, cwnd);
	ab_set_cwnd_cnt(cc, cnt);
}

AB_INLINE u32 scalable_loss(const struct ab_cc *cc)
{
	struct scalable_state *s = (struct scalable_state *)cc->state;
	u32 cwnd = cc->view->cwnd;

	s->odd = 0;
	if (scalable_is_legacy((const struct scalable_params *)cc->params, cwnd))
		return ab_half_exactly(cc, &s->odd);
	return ab_max_u32(cwnd - (cwnd >> 3), 2);
}

AB_INLINE void scalable_rto(const struct ab_cc *cc)
{
	((struct scalable_state *)cc->state)->odd = 0;
}

AB_INLINE void scalable_recovery_exit(const struct ab_cc *cc)
{
	ab_restore_half(cc, &((struct scalable_state *)cc->state)->odd);
}

#define AB_EVENTS_scalable(E)                                                                                \
	E(init, ab_ignore)                                                                                   \
	E(rtt_sample, ab_ignore)                                                                             \
	E(loss, scalable_loss)                                                                               \
	E(rto, scalable_rto)                                                                                 \
	E(recovery_exit, scalable_recovery_exit)                                                             \
	E(undo, ab_undo_to_prior)                                                                            \
	E(ecn, ab_ignore)                                                                                    \
	E(ack, scalable_ack)                                                                                 \
	E(rate, ab_ignore)                                                                                   \
	E(idle_restart, ab_ignore)                                                                           \
	E(peer_join, ab_ignore)                                                                              \
	E(peer_leave, ab_ignore)                                                                             \
	E(release, ab_ignore)

#endif
