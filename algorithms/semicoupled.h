/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * SEMICOUPLED (Wischik et al., NSDI 2011): per packet acknowledged a subflow grows by a / w_total, and a loss
 * halves its own window. Between COUPLED, which leaves the worse paths empty, and uncoupled Reno. With equal
 * loss p on n paths w_total is sqrt(2 n a / p), so a = 1 / n is as aggressive as one TCP there.
 *
 * We differ in: no subflow grows faster than Reno; slow start is Reno's; with one usable subflow it is Reno
 * to the packet; half a packet that halving leaves is kept, as in our Reno.
 */
#ifndef ANABRANCH_SEMICOUPLED_H
#define ANABRANCH_SEMICOUPLED_H

#include "anabranch/coupled.h"

#define AB_PARAMS_semicoupled(P)                                                                             \
	P(a_q10, AB_UNIT_Q10, 1024, 1, 8192, "aggressiveness: packets added per window of all subflows")
#define AB_COLD_BYTES_semicoupled 0

struct semicoupled_params {
	AB_PARAMS_semicoupled(AB_PARAM_FIELD)
};

struct semicoupled_state {
	struct ab_coupled_state coupled;
};

AB_INLINE void semicoupled_ack(const struct ab_cc *cc)
{
	const struct semicoupled_params *p = (const struct semicoupled_params *)cc->params;
	struct semicoupled_state *s = (struct semicoupled_state *)cc->state;
	u32 members = ab_coupled_members(cc), cwnd, acked;
	u64 per_q8 = 0;

	if (!ab_after_slow_start(cc, &cwnd, &acked))
		return;
	if (ab_several(members)) /* 2^23 packets << 18 < 2^41; a has 10 fraction bits and is at least 1 */
		per_q8 = ((u64)ab_coupled_windows(cc, members) << 18) / p->a_q10;
	ab_grow_by_one_per(cc, cwnd, acked, per_q8, &s->coupled.rest_q8);
}

#define AB_EVENTS_semicoupled(E)                                                                             \
	E(init, ab_ignore)                                                                                   \
	E(rtt_sample, ab_ignore)                                                                             \
	E(loss, ab_coupled_loss)                                                                             \
	E(rto, ab_coupled_rto)                                                                               \
	E(recovery_exit, ab_coupled_recovery_exit)                                                           \
	E(undo, ab_undo_to_prior)                                                                            \
	E(ecn, ab_ignore)                                                                                    \
	E(ack, semicoupled_ack)                                                                              \
	E(rate, ab_ignore)                                                                                   \
	E(idle_restart, ab_ignore)                                                                           \
	E(peer_join, ab_ignore)                                                                              \
	E(peer_leave, ab_ignore)                                                                             \
	E(release, ab_ignore)

#endif
