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
