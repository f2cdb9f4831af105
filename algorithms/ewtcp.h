/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * EWTCP, equally weighted TCP (Honda et al. 2009; Wischik et al., NSDI 2011): every subflow is a Reno whose
 * increase is weighted, a / w_r per packet acknowledged, whatever the others do. With loss rate p its window
 * is sqrt(2 a / p).
 *
 * `a` is, for n subflows that can send,
 *  - nsdi (default): 1 / sqrt(n), as printed in the NSDI paper;
 *  - fair: 1 / n^2, with which n subflows on one bottleneck take together what one TCP takes.
 *
 * We differ in: an integer window grows by one packet per w_r / a packets acknowledged, held with 8 fraction
 * bits, the fraction carried to the next increase; half a packet that halving leaves is kept, as in our
 * Reno.
 */
#ifndef ANABRANCH_EWTCP_H
#define ANABRANCH_EWTCP_H

#include "anabranch/coupled.h"

enum ewtcp_weight { EWTCP_NSDI = 0, EWTCP_FAIR = 1 };

#define AB_PARAMS_ewtcp(P)                                                                                   \
	P(a, AB_UNIT_CHOICE, EWTCP_NSDI, 0, 1, "nsdi|fair: weight of the increase, 1/sqrt(n) or 1/n^2")
#define AB_COLD_BYTES_ewtcp 0

struct ewtcp_params {
	AB_PARAMS_ewtcp(AB_PARAM_FIELD)
};

struct ewtcp_state {
	struct ab_coupled_state coupled;
};

/* sqrt(n) with 16 fraction bits, rounded, for 1 <= n <= AB_MAX_PEERS; other n count as the nearest of them.
 */
AB_INLINE u32 ewtcp_root_q16(u32 n)
{
	switch (n) {
	case 0:
	case 1:
		return 65536;
	case 2:
		return 92682;
	case 3:
		return 113512;
	case 4:
		return 131072;
	case 5:
		return 146543;
	case 6:
		return 160530;
	case 7:
		return 173392;
	default:
		return 185364;
	}
}

/* w / a with 8 fraction bits: w <= 2^30 and the factor is below 2^18, or n^2 <= 64. */
AB_INLINE u64 ewtcp_per_q8(u32 cwnd, u32 n, u32 a)
{
	if (a == EWTCP_FAIR)
		return ((u64)cwnd << 8) * ((u64)n * n);
	return (u64)cwnd * ewtcp_root_q16(n) >> 8;
}

AB_INLINE void ewtcp_ack(const struct ab_cc *cc)
{
	const struct ewtcp_params *p = (const struct ewtcp_params *)cc->params;
	struct ewtcp_state *s = (struct ewtcp_state *)cc->state;
	u32 members = ab_coupled_members(cc), cwnd, acked;
	u64 per_q8 = 0;

	if (!ab_after_slow_start(cc, &cwnd, &acked))
		return;
	if (ab_several(members))
		per_q8 = ewtcp_per_q8(cwnd, ab_member_count(members), p->a);
	ab_grow_by_one_per(cc, cwnd, acked, per_q8, &s->coupled.rest_q8);
}

#define AB_EVENTS_ewtcp(E)                                                                                   \
	E(init, ab_ignore)                                                                                   \
	E(rtt_sample, ab_ignore)                                                                             \
	E(loss, ab_coupled_loss)                                                                             \
	E(rto, ab_coupled_rto)                                                                               \
	E(recovery_exit, ab_coupled_recovery_exit)                                                           \
	E(undo, ab_undo_to_prior)                                                                            \
	E(ecn, ab_ignore)                                                                                    \
	E(ack, ewtcp_ack)                                                                                    \
	E(rate, ab_ignore)                                                                                   \
	E(idle_restart, ab_ignore)                                                                           \
	E(peer_join, ab_ignore)                                                                              \
	E(peer_leave, ab_ignore)                                                                             \
	E(release, ab_ignore)

#endif
