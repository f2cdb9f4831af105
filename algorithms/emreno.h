/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * emReno, a house definition (emreno-h) after the idea of Pham, Vo, Le (SigTelCom 2017), an increase that is
 * inversely proportional to the energy cost of the subflow; the text was not available: not a reproduction.
 *
 * Semi-coupled multipath Reno with a price: per packet acknowledged
 *   w_r += (e_min / e_r) x_r / (w_r sum_k x_k),  x = w / rtt,
 * with e_r the energy per bit of subflow r and e_min the least of them (anabranch/price.h). A loss halves.
 * Unknown prices count as equal; with one usable subflow it is Reno to the packet.
 */
#ifndef ANABRANCH_EMRENO_H
#define ANABRANCH_EMRENO_H

#include "anabranch/price.h"

#define AB_PARAMS_emreno(P)  AB_PRICE_PARAMS(P)
#define AB_COLD_BYTES_emreno 0

struct emreno_state {
	struct ab_coupled_state coupled;
};

/* Packets per increase, 8 fraction bits: T e_r / e_min with T = sum_k w_k rtt_r / rtt_k. */
AB_INLINE u64 emreno_per_q8(const struct ab_cc *cc, u32 members)
{
	u64 total_q8 = ab_coupled_total(cc, members, cc->view->srtt8_us, 12, 1) >> 4;
	u32 k, least = ab_price(cc, cc->view->self);

	if (!ab_prices_known(cc, members))
		return total_q8;
	for (k = 0; k < AB_MAX_PEERS; k++) {
		if (members & 1u << k)
			least = ab_min_u32(least, ab_price(cc, k));
	}
	return ab_mul_div(total_q8, ab_price(cc, cc->view->self), least);
}

AB_INLINE void emreno_ack(const struct ab_cc *cc)
{
	struct emreno_state *s = (struct emreno_state *)cc->state;
	u32 members = ab_coupled_members(cc), cwnd, acked;
	u64 per_q8 = 0;

	if (!ab_after_slow_start(cc, &cwnd, &acked))
		return;
	if (ab_several(members))
		per_q8 = emreno_per_q8(cc, members);
	ab_grow_by_one_per(cc, cwnd, acked, per_q8, &s->coupled.rest_q8);
}

#define AB_EVENTS_emreno(E)                                                                                  \
	E(init, ab_ignore)                                                                                   \
	E(rtt_sample, ab_ignore)                                                                             \
	E(loss, ab_coupled_loss)                                                                             \
	E(rto, ab_coupled_rto)                                                                               \
	E(recovery_exit, ab_coupled_recovery_exit)                                                           \
	E(undo, ab_undo_to_prior)                                                                            \
	E(ecn, ab_ignore)                                                                                    \
	E(ack, emreno_ack)                                                                                   \
	E(rate, ab_ignore)                                                                                   \
	E(idle_restart, ab_ignore)                                                                           \
	E(peer_join, ab_ignore)                                                                              \
	E(peer_leave, ab_ignore)                                                                             \
	E(release, ab_ignore)

#endif
