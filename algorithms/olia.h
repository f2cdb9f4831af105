/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * OLIA, the opportunistic linked increases algorithm (Khalili et al. 2013;
 * draft-khalili-mptcp-congestion-control-05).
 *
 * Per packet acknowledged, subflow r changes by
 *   (w_r / rtt_r^2) / (sum_p w_p / rtt_p)^2 + alpha_r / w_r.
 * M are the subflows with the largest window, B those with the largest l / rtt^2, where l is the larger of
 * the bytes acknowledged since the last loss and between the last two: the rate that Reno would have there
 * is sqrt(2 l) / rtt. With n subflows and C = B without M, alpha is 1 / (n |C|) in C, -1 / (n |M|) in M if C
 * is not empty, and 0 else: windows move to the best paths that do not have the largest one yet.
 *
 * With T = sum_p w_p rtt_r / rtt_p the first term is w_r / T^2. Changes add up with 40 fraction bits.
 *
 * We differ in:
 *  - the multipath kernel's counter has 10 bits (part G3 of the algorithm reference): a change per packet of
 *    less than 1/1024, on windows above 1,000 packets, is none there. Ours, truncated to 10 bits, is the
 *    same;
 *  - it takes or gives a packet at a whole packet and keeps the rest (the kernel: at 1023/1024, and drops
 *    it);
 *  - ssthresh follows the window down, so that a decrease by alpha is not taken for slow start;
 *  - best paths are compared exactly; the kernel's product overflows at long distances between losses;
 *  - half a packet that halving leaves is kept, as in our Reno;
 *  - with one usable subflow it is Reno to the packet, and only with several may ssthresh be 1, or whatever
 *    least_window says, but not above the window, or 2;
 *  - an ACK for more than 2^16 packets counts as one for 2^16.
 */
#ifndef ANABRANCH_OLIA_H
#define ANABRANCH_OLIA_H

#include "anabranch/coupled.h"

#define AB_PARAMS_olia(P)                                                                                    \
	P(least_window, AB_UNIT_PACKETS, 1, 1, 10,                                                           \
	  "smallest window of one of several subflows; 2 spares it waits for delayed acknowledgements")
#define AB_COLD_BYTES_olia 0

struct olia_params {
	AB_PARAMS_olia(AB_PARAM_FIELD)
};

struct olia_state {
	u64 change_q40; /* fraction of a packet gained or lost, plus OLIA_ZERO; above 0, below 2 OLIA_ZERO */
	struct ab_coupled_state coupled;
};

#define OLIA_ZERO      (1ull << 40)
#define OLIA_ACKED_MAX 65536u

/* A change per packet acknowledged. */
struct olia_step {
	u64 size_q40;
	u32 shrinks;
};

/* l of subflow k: the larger of bytes since the last loss and between the last two. */
AB_INLINE u64 olia_distance(const struct ab_cc *cc, u32 k)
{
	return ab_max_u64(cc->peers[k].bytes_since_loss, cc->peers[k].bytes_between_losses);
}

/*
 * The members with the largest l / rtt^2. The distances are shifted alike so that the longest has at most 32
 * bits; their products with rtt^2 are compared exactly.
 */
AB_INLINE u32 olia_best(const struct ab_cc *cc, u32 members)
{
	u32 k, shift, l, srtt8, l_best = 0, srtt8_best = 1, best = 0;
	u64 longest = 0;

	for (k = 0; k < AB_MAX_PEERS; k++)
		longest |= members & 1u << k ? olia_distance(cc, k) : 0;
	shift = ab_bit_length(longest >> 32) & 63;
	for (k = 0; k < AB_MAX_PEERS; k++) {
		if (!(members & 1u << k))
			continue;
		l = (u32)(olia_distance(cc, k) >> shift);
		srtt8 = ab_coupled_srtt8(cc, k);
		if (ab_product_greater(l_best, (u64)srtt8 * srtt8, l, (u64)srtt8_best * srtt8_best))
			continue;
		if (ab_product_greater(l, (u64)srtt8_best * srtt8_best, l_best, (u64)srtt8 * srtt8))
			best = 0;
		best = ab_forget(best | 1u << k); /* in the loop, or the verifier follows every set */
		l_best = l;
		srtt8_best = srtt8;
	}
	return best;
}

/* The members with the largest window. */
AB_INLINE u32 olia_largest(const struct ab_cc *cc, u32 members)
{
	u32 k, cwnd, most = 0, largest = 0;

	for (k = 0; k < AB_MAX_PEERS; k++) {
		if (!(members & 1u << k))
			continue;
		cwnd = ab_coupled_cwnd(cc, k);
		if (cwnd > most)
			largest = 0;
		if (cwnd >= most)
			largest = ab_forget(largest | 1u << k);
		most = ab_max_u32(most, cwnd);
	}
	return largest;
}

/*
 * w_r / T^2 with 40 fraction bits. T >= w_r: w_r / T is at most 1, so its 31 fraction bits fit; w_r << 43
 * < 2^64, and 2^31 << 21 = 2^52.
 */
AB_INLINE u64 olia_linked_q40(const struct ab_cc *cc, u32 members)
{
	u64 total_q12 = ab_coupled_total(cc, members, cc->view->srtt8_us, 12, 1);
	u64 cwnd = ab_min_u32(ab_coupled_cwnd(cc, cc->view->self), AB_COUPLED_CWND_MAX - 1);

	return ((cwnd << 43) / total_q12 << 21) / total_q12;
}

/* The change per packet acknowledged, of several members; at most 3 / 2 packets. */
AB_INLINE struct olia_step olia_step(const struct ab_cc *cc, u32 members)
{
	u32 largest = olia_largest(cc, members), collected = olia_best(cc, members) & ~largest;
	u32 self = 1u << (cc->view->self % AB_MAX_PEERS), among = 0;
	struct olia_step step = {olia_linked_q40(cc, members), 0};
	u64 alpha_q40;

	if (collected & self)
		among = collected;
	else if (collected && (largest & self))
		among = largest;
	if (!among)
		return step;
	alpha_q40 = OLIA_ZERO / ((u64)ab_member_count(members) * ab_max_u32(ab_member_count(among), 1) *
				 ab_coupled_cwnd(cc, cc->view->self));
	if (collected & self) {
		step.size_q40 += alpha_q40;
	} else if (alpha_q40 > step.size_q40) {
		step.size_q40 = alpha_q40 - step.size_q40;
		step.shrinks = 1;
	} else {
		step.size_q40 -= alpha_q40;
	}
	return step;
}

/* One ACK with several members: 2^41 * 2^16 and what is carried stay below 2^58. */
AB_INLINE void olia_change(const struct ab_cc *cc, struct olia_state *s, u32 members, u32 cwnd, u32 acked)
{
	const struct olia_params *params = (const struct olia_params *)cc->params;
	struct olia_step step = olia_step(cc, members);
	u64 change_q40 = step.size_q40 * ab_min_u32(acked, OLIA_ACKED_MAX);
	u32 whole;

	if (!step.shrinks) {
		s->change_q40 += change_q40;
		whole = s->change_q40 > OLIA_ZERO ? (u32)((s->change_q40 - OLIA_ZERO) >> 40) : 0;
		s->change_q40 -= (u64)whole << 40;
		cwnd += whole;
	} else {
		whole = change_q40 < s->change_q40 ? 0 : (u32)((change_q40 - s->change_q40) >> 40) + 1;
		s->change_q40 = s->change_q40 + ((u64)whole << 40) - change_q40;
		cwnd = ab_max_u32(cwnd > whole ? cwnd - whole : 1, ab_min_u32(cwnd, params->least_window));
		ab_set_ssthresh(cc, ab_min_u32(cc->view->ssthresh, cwnd));
	}
	ab_set_cwnd(cc, cwnd);
}

AB_INLINE void olia_init(const struct ab_cc *cc)
{
	((struct olia_state *)cc->state)->change_q40 = OLIA_ZERO;
}

AB_INLINE void olia_ack(const struct ab_cc *cc)
{
	struct olia_state *s = (struct olia_state *)cc->state;
	u32 members = ab_coupled_members(cc), cwnd, acked;

	if (!ab_after_slow_start(cc, &cwnd, &acked))
		return;
	if (ab_several(members))
		olia_change(cc, s, members, cwnd, acked);
	else
		ab_grow_by_one_per(cc, cwnd, acked, 0, &s->coupled.rest_q8);
}

AB_INLINE u32 olia_loss(const struct ab_cc *cc)
{
	const struct olia_params *params = (const struct olia_params *)cc->params;
	struct olia_state *s = (struct olia_state *)cc->state;
	u32 least = ab_min_u32(params->least_window, ab_max_u32(cc->view->cwnd, 2));

	if (!ab_several(ab_coupled_members(cc)))
		return ab_half_exactly(cc, &s->coupled.odd);
	return ab_coupled_half(cc, &s->coupled.odd, least);
}

AB_INLINE void olia_rto(const struct ab_cc *cc)
{
	struct olia_state *s = (struct olia_state *)cc->state;

	s->coupled.odd = 0;
	s->change_q40 = OLIA_ZERO;
}

/* Half a packet is kept in both counts: the next increase may be Reno's or the linked one. */
AB_INLINE void olia_recovery_exit(const struct ab_cc *cc)
{
	struct olia_state *s = (struct olia_state *)cc->state;

	s->change_q40 = OLIA_ZERO + (s->coupled.odd ? OLIA_ZERO / 2 : 0);
	ab_restore_half(cc, &s->coupled.odd);
}

#define AB_EVENTS_olia(E)                                                                                    \
	E(init, olia_init)                                                                                   \
	E(rtt_sample, ab_ignore)                                                                             \
	E(loss, olia_loss)                                                                                   \
	E(rto, olia_rto)                                                                                     \
	E(recovery_exit, olia_recovery_exit)                                                                 \
	E(undo, ab_undo_to_prior)                                                                            \
	E(ecn, ab_ignore)                                                                                    \
	E(ack, olia_ack)                                                                                     \
	E(rate, ab_ignore)                                                                                   \
	E(idle_restart, ab_ignore)                                                                           \
	E(peer_join, ab_ignore)                                                                              \
	E(peer_leave, ab_ignore)                                                                             \
	E(release, ab_ignore)

#endif
