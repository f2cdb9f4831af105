/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * COUPLED, fully coupled multipath congestion control (Kelly, Voice 2005; Wischik et al., NSDI 2011): per
 * packet acknowledged a subflow grows by 1 / w_total, and a loss takes half of the total from it,
 *   w_r <- max(w_r - w_total / 2, 1).
 * All traffic goes to the paths with the least loss, where w_total is the window of one TCP, sqrt(2 / p).
 *
 * We differ in: slow start is Reno's; with one usable subflow it is Reno to the packet; half a packet that a
 * reduction leaves is kept, as in our Reno.
 */
#ifndef ANABRANCH_FULLY_COUPLED_H
#define ANABRANCH_FULLY_COUPLED_H

#include "anabranch/coupled.h"

#define AB_PARAMS_coupled(P)
#define AB_COLD_BYTES_coupled 0

struct coupled_state {
	struct ab_coupled_state coupled;
};

AB_INLINE void coupled_ack(const struct ab_cc *cc)
{
	struct coupled_state *s = (struct coupled_state *)cc->state;
	u32 members = ab_coupled_members(cc), cwnd, acked;
	u64 per_q8 = 0;

	if (!ab_after_slow_start(cc, &cwnd, &acked))
		return;
	if (ab_several(members))
		per_q8 = (u64)ab_coupled_windows(cc, members) << 8;
	ab_grow_by_one_per(cc, cwnd, acked, per_q8, &s->coupled.rest_q8);
}

/* Counted in half packets: 2 w_r - w_total. Windows above 2^20 packets count as 2^20, in both terms. */
AB_INLINE u32 coupled_loss(const struct ab_cc *cc)
{
	struct coupled_state *s = (struct coupled_state *)cc->state;
	u32 members = ab_coupled_members(cc), twice, total;

	if (!ab_several(members))
		return ab_coupled_loss(cc);
	twice = 2 * ab_coupled_cwnd(cc, cc->view->self);
	total = ab_coupled_windows(cc, members);
	s->coupled.odd = 0;
	if (twice < total + 2)
		return 1;
	s->coupled.odd = (twice - total) & 1;
	return (twice - total) >> 1;
}

#define AB_EVENTS_coupled(E)                                                                                 \
	E(init, ab_ignore)                                                                                   \
	E(rtt_sample, ab_ignore)                                                                             \
	E(loss, coupled_loss)                                                                                \
	E(rto, ab_coupled_rto)                                                                               \
	E(recovery_exit, ab_coupled_recovery_exit)                                                           \
	E(undo, ab_undo_to_prior)                                                                            \
	E(ecn, ab_ignore)                                                                                    \
	E(ack, coupled_ack)                                                                                  \
	E(rate, ab_ignore)                                                                                   \
	E(idle_restart, ab_ignore)                                                                           \
	E(peer_join, ab_ignore)                                                                              \
	E(peer_leave, ab_ignore)                                                                             \
	E(release, ab_ignore)

#endif
