/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * MFast, the modified FAST of the MFVL paper (Electronics 2021, 10:711, equation (13), table 6):
 *   w <- min{2w, (1 - gamma) w + sigma gamma (base / avg * w + alpha)}.
 *
 * Readings taken:
 *  - sigma scales the whole bracket, as typeset: the fixed point sigma (alpha + base C) is 78 packets on
 *    the paper's first path, and its text reports 80, then 75;
 *  - the paper's w in the bracket is FAST's w_old (the two are equal when the equation is evaluated,
 *    since the window has rested for a round).
 *
 * With sigma < 1 the window settles below what fills the path where the
 * path holds more than sigma alpha / (1 - sigma) packets, 100 with the defaults; multiplicative increase
 * (fast.h) then sets in again whenever the queue is empty.
 *
 * Everything else is fast.h.
 */
#ifndef ANABRANCH_MFAST_H
#define ANABRANCH_MFAST_H

#include "fast.h"

#define AB_PARAMS_mfast(P)                                                                                   \
	P(alpha, AB_UNIT_PACKETS, 100, 1, 100000, "packets to keep in queues, before sigma")                 \
	P(gamma_q10, AB_UNIT_Q10, 512, 1, 1024, "step size of an update")                                    \
	P(sigma_q10, AB_UNIT_Q10, 512, 1, 1024, "factor of the bracket; 1 is FAST")                          \
	P(mi_threshold_us, AB_UNIT_US, 750, 0, 1000000, "multiplicative increase below this queueing delay") \
	P(update_interval_us, AB_UNIT_US, 10000, 0, 1000000, "at least this long between two steps")         \
	P(ss_exit, AB_UNIT_PACKETS, 1, 1, 100000, "leave slow start above this many queued packets")         \
	P(smoothing, AB_UNIT_CHOICE, FAST_SMOOTH_NS2, 0, 1,                                                  \
	  "ns2|paper: weight of a sample in the average RTT")
#define AB_COLD_BYTES_mfast 0

struct mfast_params {
	AB_PARAMS_mfast(AB_PARAM_FIELD)
};

struct mfast_state {
	struct fast_state fast;
};

AB_INLINE void mfast_init(const struct ab_cc *cc)
{
	fast_start(&((struct mfast_state *)cc->state)->fast, 0);
}

AB_INLINE void mfast_rtt_sample(const struct ab_cc *cc)
{
	const struct mfast_params *p = (const struct mfast_params *)cc->params;

	fast_sample(cc, &((struct mfast_state *)cc->state)->fast, p->smoothing);
}

AB_INLINE void mfast_ack(const struct ab_cc *cc)
{
	const struct mfast_params *p = (const struct mfast_params *)cc->params;
	const struct fast_tuning tuning = {.alpha = p->alpha,
					   .beta = 0,
					   .gamma_q10 = p->gamma_q10,
					   .sigma_q10 = p->sigma_q10,
					   .mi_threshold_us = p->mi_threshold_us,
					   .update_interval_us = p->update_interval_us,
					   .ss_exit = p->ss_exit};

	fast_grow(cc, &((struct mfast_state *)cc->state)->fast, &tuning);
}

AB_INLINE u32 mfast_loss(const struct ab_cc *cc)
{
	return fast_reduce(cc, &((struct mfast_state *)cc->state)->fast);
}

AB_INLINE void mfast_rto(const struct ab_cc *cc)
{
	fast_restart(cc, &((struct mfast_state *)cc->state)->fast);
}

AB_INLINE void mfast_forget_update(const struct ab_cc *cc)
{
	fast_settle(&((struct mfast_state *)cc->state)->fast);
}

#define AB_EVENTS_mfast(E)                                                                                   \
	E(init, mfast_init)                                                                                  \
	E(rtt_sample, mfast_rtt_sample)                                                                      \
	E(loss, mfast_loss)                                                                                  \
	E(rto, mfast_rto)                                                                                    \
	E(recovery_exit, mfast_forget_update)                                                                \
	E(undo, ab_undo_to_prior)                                                                            \
	E(ecn, ab_ignore)                                                                                    \
	E(ack, mfast_ack)                                                                                    \
	E(rate, ab_ignore)                                                                                   \
	E(idle_restart, mfast_forget_update)                                                                 \
	E(peer_join, ab_ignore)                                                                              \
	E(peer_leave, ab_ignore)                                                                             \
	E(release, ab_ignore)

#endif
