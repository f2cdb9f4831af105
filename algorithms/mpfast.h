/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * MPFast, a house definition (mpfast-h) after the idea of Multipath FAST TCP (Ha, Tran, Le, Tran, ICGHIT
 * 2014), whose text was not available: not a reproduction of it.
 *
 * FAST (fast.h) on every subflow, the packets to keep in queues divided by rate once per round trip,
 *   alpha_r = max(alpha_min, alpha_total x_r / sum_k x_k),  x = w / srtt,
 * rounded to whole packets. Flows with the same ratio of alpha to rate see the same queueing delay, so this
 * evens out the delays of the paths, as wVegas does. With one usable subflow it is FAST with alpha_total.
 */
#ifndef ANABRANCH_MPFAST_H
#define ANABRANCH_MPFAST_H

#include "anabranch/coupled.h"
#include "fast.h"

#define AB_PARAMS_mpfast(P)                                                                                  \
	P(alpha_total, AB_UNIT_PACKETS, 100, 1, 100000, "packets that all subflows together keep queued")    \
	P(alpha_min, AB_UNIT_PACKETS, 2, 1, 100000, "least share of a subflow")                              \
	P(gamma_q10, AB_UNIT_Q10, 512, 1, 1024, "step size of an update")                                    \
	P(mi_threshold_us, AB_UNIT_US, 750, 0, 1000000, "multiplicative increase below this queueing delay") \
	P(update_interval_us, AB_UNIT_US, 10000, 0, 1000000, "at least this long between two steps")         \
	P(ss_exit, AB_UNIT_PACKETS, 1, 1, 100000, "leave slow start above this many queued packets")         \
	P(smoothing, AB_UNIT_CHOICE, FAST_SMOOTH_NS2, 0, 1,                                                  \
	  "ns2|paper: weight of a sample in the average RTT")
#define AB_COLD_BYTES_mpfast 0

struct mpfast_params {
	AB_PARAMS_mpfast(AB_PARAM_FIELD)
};

struct mpfast_state {
	struct fast_state fast;
	u32 alpha; /* of this round; 0: not yet divided */
};

/* x_r / sum x_k = w_r / T with T = sum w_k rtt_r / rtt_k, 12 fraction bits: 2^17 * 2^32 + 2^31 < 2^64. */
AB_INLINE u32 mpfast_alpha(const struct ab_cc *cc)
{
	const struct mpfast_params *p = (const struct mpfast_params *)cc->params;
	u32 members = ab_coupled_members(cc);
	u64 own_q12 = (u64)ab_min_u32(cc->view->cwnd, AB_COUPLED_CWND_MAX) << 12, total_q12;

	if (!ab_several(members))
		return p->alpha_total;
	total_q12 = ab_coupled_total(cc, members, cc->view->srtt8_us, 12, 1);
	return ab_max_u32((u32)((p->alpha_total * own_q12 + total_q12 / 2) / total_q12), p->alpha_min);
}

AB_INLINE void mpfast_init(const struct ab_cc *cc)
{
	fast_start(&((struct mpfast_state *)cc->state)->fast, 0);
}

AB_INLINE void mpfast_rtt_sample(const struct ab_cc *cc)
{
	const struct mpfast_params *p = (const struct mpfast_params *)cc->params;

	fast_sample(cc, &((struct mpfast_state *)cc->state)->fast, p->smoothing);
}

AB_INLINE void mpfast_ack(const struct ab_cc *cc)
{
	const struct mpfast_params *p = (const struct mpfast_params *)cc->params;
	struct mpfast_state *s = (struct mpfast_state *)cc->state;

	if (cc->view->round_start || !s->alpha)
		s->alpha = mpfast_alpha(cc);
	const struct fast_tuning tuning = {.alpha = s->alpha,
					   .beta = 0,
					   .gamma_q10 = p->gamma_q10,
					   .sigma_q10 = 1024,
					   .mi_threshold_us = p->mi_threshold_us,
					   .update_interval_us = p->update_interval_us,
					   .ss_exit = p->ss_exit};

	fast_grow(cc, &s->fast, &tuning);
}

AB_INLINE u32 mpfast_loss(const struct ab_cc *cc)
{
	return fast_reduce(cc, &((struct mpfast_state *)cc->state)->fast);
}

AB_INLINE void mpfast_rto(const struct ab_cc *cc)
{
	fast_restart(cc, &((struct mpfast_state *)cc->state)->fast);
}

AB_INLINE void mpfast_forget_update(const struct ab_cc *cc)
{
	fast_settle(&((struct mpfast_state *)cc->state)->fast);
}

#define AB_EVENTS_mpfast(E)                                                                                  \
	E(init, mpfast_init)                                                                                 \
	E(rtt_sample, mpfast_rtt_sample)                                                                     \
	E(loss, mpfast_loss)                                                                                 \
	E(rto, mpfast_rto)                                                                                   \
	E(recovery_exit, mpfast_forget_update)                                                               \
	E(undo, ab_undo_to_prior)                                                                            \
	E(ecn, ab_ignore)                                                                                    \
	E(ack, mpfast_ack)                                                                                   \
	E(rate, ab_ignore)                                                                                   \
	E(idle_restart, mpfast_forget_update)                                                                \
	E(peer_join, ab_ignore)                                                                              \
	E(peer_leave, ab_ignore)                                                                             \
	E(release, ab_ignore)

#endif
