/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What coupled algorithms share: which subflows count, and with which window and round-trip time.
 *
 * The own values come from the view, which is newer than the own published slot. A subflow counts while
 * it can send and has a round-trip sample.
 */
#ifndef ANABRANCH_COUPLED_H
#define ANABRANCH_COUPLED_H

#include "anabranch/cc.h"
#include "anabranch/fixedpoint.h"

/* Windows above 2^20 packets count as 2^20, so that the fixed-point forms cannot overflow. */
#define AB_COUPLED_CWND_MAX (1u << 20)

/* Smoothed RTT of subflow k, 8 x microseconds; 0 before its first sample. */
AB_INLINE u32 ab_coupled_srtt8(const struct ab_cc *cc, u32 k)
{
	return k == cc->view->self ? cc->view->srtt8_us : cc->peers[k].srtt8_us;
}

/* Window of subflow k in packets: ssthresh while a recovery inflates it; 1 .. AB_COUPLED_CWND_MAX. */
AB_INLINE u32 ab_coupled_cwnd(const struct ab_cc *cc, u32 k)
{
	u32 cwnd = k == cc->view->self ? cc->view->cwnd : ab_effective_cwnd(&cc->peers[k]);

	return ab_min_u32(ab_max_u32(cwnd, 1), AB_COUPLED_CWND_MAX);
}

/* The subflows that count, one bit each, the own one included; 0 if the own one has no slot or sample. */
AB_INLINE u32 ab_coupled_members(const struct ab_cc *cc)
{
	u32 k, members = 0;

	if (cc->view->self >= AB_MAX_PEERS || !cc->view->srtt8_us)
		return 0;
	for (k = 0; k < AB_MAX_PEERS; k++) {
		if (k == cc->view->self || ab_peer_counts(&cc->peers[k]))
			members |= 1u << k;
	}
	return ab_forget(members);
}

/* Does the set of subflows have at least two? */
AB_INLINE int ab_several(u32 members)
{
	return members && (members & (members - 1));
}

/* How many subflows the set has. */
AB_INLINE u32 ab_member_count(u32 members)
{
	u32 k, count = 0;

	for (k = 0; k < AB_MAX_PEERS; k++)
		count += members >> k & 1;
	return ab_forget(count);
}

#define AB_COUPLED_TOTAL_MAX AB_U32_MAX /* with 12 fraction bits 2^20 packets */

/*
 * What the members send while `srtt8` lasts, sum_k w_k * rtt / rtt_k packets, with q <= 12 fraction bits,
 * saturating at 2^32 - 1. One term: 2^20 * 2^12 * (2^32 - 1) + 2^31 < 2^64; it is capped at 2^32 - 1, so
 * that it can be added. With `srtt8` of a member the sum is at least its window.
 * Terms are rounded to nearest if `nearest` is 1 and truncated if it is 0.
 */
AB_INLINE u64 ab_coupled_total(const struct ab_cc *cc, u32 members, u32 srtt8, u32 q, u32 nearest)
{
	u32 total = 0, k, srtt8_k;
	u64 term;

	for (k = 0; k < AB_MAX_PEERS; k++) {
		if (!(members & 1u << k))
			continue;
		srtt8_k = ab_coupled_srtt8(cc, k);
		term = ((u64)ab_coupled_cwnd(cc, k) << q) * srtt8 + nearest * (srtt8_k / 2);
		term = ab_min_u64(term / srtt8_k, AB_COUPLED_TOTAL_MAX);
		total = ab_forget((u32)ab_min_u64(total + term, AB_COUPLED_TOTAL_MAX));
	}
	return total;
}

/* The sum of the members' windows in packets, at most 2^23. The verifier would follow every sum of some. */
AB_INLINE u32 ab_coupled_windows(const struct ab_cc *cc, u32 members)
{
	u32 k, total = 0;

	for (k = 0; k < AB_MAX_PEERS; k++) {
		if (members & 1u << k)
			total += ab_forget(ab_coupled_cwnd(cc, k));
	}
	return total;
}

#define AB_PER_Q8_MAX AB_U32_MAX /* 2^24 packets per increase */

/*
 * How the coupled relatives of Reno grow beyond slow start: one packet per per_q8 / 256 packets acknowledged,
 * never faster than Reno, whose increase per_q8 = 0 is. The fraction of a packet stays in *rest_q8 (below
 * 256) for the next increase. Returns whether the window has grown.
 */
AB_INLINE int ab_grow_by_one_per(const struct ab_cc *cc, u32 cwnd, u32 acked, u64 per_q8, u32 *rest_q8)
{
	u32 cnt = cc->view->cwnd_cnt, before = cwnd;

	if (per_q8)
		per_q8 = ab_max_u64(ab_min_u64(per_q8, AB_PER_Q8_MAX), (u64)cwnd << 8) + *rest_q8;
	else
		per_q8 = (u64)cwnd << 8;
	ab_additive_increase(&cwnd, &cnt, (u32)ab_min_u64(per_q8 >> 8, AB_U32_MAX), acked);
	if (cwnd != before)
		*rest_q8 = (u32)(per_q8 & 255);
	ab_set_cwnd(cc, cwnd);
	ab_set_cwnd_cnt(cc, cnt);
	return cwnd != before;
}

/* What the coupled relatives of Reno keep. Members are the subflows that couple, the own one included. */
struct ab_coupled_state {
	u32 rest_q8; /* fraction of a packet carried to the next increase */
	u32 odd;     /* the last reduction left half a packet */
};

/* Half of the window, at least `least`; the half packet of an odd window is kept for ab_restore_half. */
AB_INLINE u32 ab_coupled_half(const struct ab_cc *cc, u32 *odd, u32 least)
{
	u32 half = cc->view->cwnd >> 1;

	*odd = half >= least ? cc->view->cwnd & 1 : 0;
	return ab_max_u32(half, least);
}

AB_INLINE u32 ab_coupled_loss(const struct ab_cc *cc)
{
	return ab_half_exactly(cc, &((struct ab_coupled_state *)cc->state)->odd);
}

AB_INLINE void ab_coupled_rto(const struct ab_cc *cc)
{
	((struct ab_coupled_state *)cc->state)->odd = 0;
}

AB_INLINE void ab_coupled_recovery_exit(const struct ab_cc *cc)
{
	ab_restore_half(cc, &((struct ab_coupled_state *)cc->state)->odd);
}

/*
 * Groups of subflows: group[k] has a bit for every member of k's group. Makes one group of j's and k's if bit
 * 0 of `together` is set; returns its members, 0 if it is not. Without a branch, for the verifier.
 */
AB_INLINE u32 ab_join_groups(u8 group[AB_MAX_PEERS], u32 j, u32 k, u32 together)
{
	u32 i, joined = (together & 1) * ((u32)group[j] | group[k]);

	for (i = 0; i < AB_MAX_PEERS; i++)
		group[i] = (u8)(group[i] | (joined >> i & 1) * joined);
	return joined;
}

#endif
