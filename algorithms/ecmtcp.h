/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * ecMTCP, a house definition (ecmtcp-h) after the idea of the energy-aware coupled control of Le et al. (IEEE
 * Communications Letters 16(2), 2012), whose formula was not available: not a reproduction of it.
 *
 * LIA's increase scaled by the relative energy price: per packet acknowledged
 *   w_r += min(alpha delta_r / w_total, 1 / w_r),
 *   delta_r = n (1 / e_r) / sum_k (1 / e_k), between 0.1 and n,
 * with e_r the energy per bit of subflow r (anabranch/price.h). A loss halves. With equal or unknown prices
 * it is LIA, with one usable subflow Reno to the packet.
 */
#ifndef ANABRANCH_ECMTCP_H
#define ANABRANCH_ECMTCP_H

#include "anabranch/price.h"
#include "lia.h"

#define AB_PARAMS_ecmtcp(P)  AB_PRICE_PARAMS(P)
#define AB_COLD_BYTES_ecmtcp 0

struct ecmtcp_state {
	struct ab_coupled_state coupled;
};

#define ECMTCP_CUT_MAX 10u /* 1 / delta is at most this */

/*
 * Packets per increase, 8 fraction bits: LIA's over delta. 1 / delta = sum_k (e_r / e_k) / n, with 20
 * fraction bits; a term, below 2^52, and the sum are cut off at 10 n, below 2^27, so that eight terms fit 32
 * bits and the product is below 2^32 * 2^27.
 */
AB_INLINE u64 ecmtcp_per_q8(const struct ab_cc *cc, u32 members, u64 lia_per_q8)
{
	u32 k, n = ab_max_u32(ab_member_count(members), 1) & 15, most_q20 = ECMTCP_CUT_MAX * n << 20,
	       sum_q20 = 0;
	u64 own = ab_price(cc, cc->view->self), term_q20;

	for (k = 0; k < AB_MAX_PEERS; k++) {
		if (!(members & 1u << k))
			continue;
		term_q20 = (own << 20) / ab_max_u32(ab_price(cc, k), 1);
		sum_q20 += ab_forget((u32)ab_min_u64(term_q20, most_q20));
	}
	return lia_per_q8 * ab_min_u32(sum_q20, most_q20) / ((u64)n << 20);
}

AB_INLINE void ecmtcp_ack(const struct ab_cc *cc)
{
	struct ecmtcp_state *s = (struct ecmtcp_state *)cc->state;
	u32 members = ab_coupled_members(cc), cwnd, acked;
	u64 per_q8 = 0;

	if (!ab_after_slow_start(cc, &cwnd, &acked))
		return;
	if (ab_several(members)) {
		per_q8 = lia_threshold_q8(cc, members);
		if (ab_prices_known(cc, members))
			per_q8 = ecmtcp_per_q8(cc, members, per_q8);
	}
	ab_grow_by_one_per(cc, cwnd, acked, per_q8, &s->coupled.rest_q8);
}

#define AB_EVENTS_ecmtcp(E)                                                                                  \
	E(init, ab_ignore)                                                                                   \
	E(rtt_sample, ab_ignore)                                                                             \
	E(loss, ab_coupled_loss)                                                                             \
	E(rto, ab_coupled_rto)                                                                               \
	E(recovery_exit, ab_coupled_recovery_exit)                                                           \
	E(undo, ab_undo_to_prior)                                                                            \
	E(ecn, ab_ignore)                                                                                    \
	E(ack, ecmtcp_ack)                                                                                   \
	E(rate, ab_ignore)                                                                                   \
	E(idle_restart, ab_ignore)                                                                           \
	E(peer_join, ab_ignore)                                                                              \
	E(peer_leave, ab_ignore)                                                                             \
	E(release, ab_ignore)

#endif
