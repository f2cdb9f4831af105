/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * BALIA, the balanced linked adaptation (Peng, Walid, Hwang, Low 2016; draft-walid-mptcp-congestion-control).
 *
 * With x_r = w_r / rtt_r and a_r = max_k x_k / x_r, subflow r grows per packet acknowledged by
 *   x_r / (rtt_r (sum_k x_k)^2) * (1 + a_r) / 2 * (4 + a_r) / 5
 * and a loss takes w_r / 2 * min(a_r, 3/2) from it. With T = sum_k w_k rtt_r / rtt_k and M the largest of
 * these terms that is one packet per 10 w_r T^2 / ((w_r + M) (4 w_r + M)) packets acknowledged.
 *
 * `precision` says how these are held:
 *  - exact (default): T and M with 12 fraction bits, the packets per increase with 8, the fraction carried
 *    to the next increase; a_r with 10, and half a packet that a reduction leaves is kept;
 *  - kernel: the form of the multipath kernel (part G4 of the algorithm reference): whole packets per
 *    increase, a_r a whole number, so that 1 <= a_r < 2 counts as 1.
 *
 * We differ in:
 *  - with one usable subflow it is Reno to the packet, and only with several may ssthresh be 1;
 *  - the increase is computed anew on every ACK (the kernel: after each increase and recovery);
 *  - a subflow in recovery counts with ssthresh for its window;
 *  - no subflow grows faster than Reno, which the formula promises and rounding could break.
 */
#ifndef ANABRANCH_BALIA_H
#define ANABRANCH_BALIA_H

#include "anabranch/coupled.h"

enum balia_precision { BALIA_EXACT = 0, BALIA_KERNEL = 1 };

#define AB_PARAMS_balia(P)                                                                                   \
	P(precision, AB_UNIT_CHOICE, BALIA_EXACT, 0, 1,                                                      \
	  "exact|kernel: resolution, fine or that of the multipath kernel")
#define AB_COLD_BYTES_balia 0

struct balia_params {
	AB_PARAMS_balia(AB_PARAM_FIELD)
};

struct balia_state {
	struct ab_coupled_state coupled;
};

#define BALIA_CUT_MAX_Q10     1536u        /* min(a_r, 3/2) */
#define BALIA_KERNEL_RATE_MAX (1ull << 25) /* rates are shifted down to this */
#define BALIA_KERNEL_SHIFTS   7            /* 2^59 >> 35 < 2^25 */

/* M with 12 fraction bits: the largest window in packets per own round-trip time; as ab_coupled_total's
 * terms. */
AB_INLINE u64 balia_most_q12(const struct ab_cc *cc, u32 members)
{
	u64 most = 0, term;
	u32 k, srtt8;

	for (k = 0; k < AB_MAX_PEERS; k++) {
		if (!(members & 1u << k))
			continue;
		srtt8 = ab_coupled_srtt8(cc, k);
		term = ((u64)ab_coupled_cwnd(cc, k) << 12) * cc->view->srtt8_us + srtt8 / 2;
		most = ab_max_u64(most, ab_min_u64(term / srtt8, AB_COUPLED_TOTAL_MAX));
	}
	return most;
}

/*
 * Packets per increase, 8 fraction bits. T << 24 <= 2^56. M <= T and w <= M, so both quotients are below
 * 2^27: 10 w q1 < 2^51, shifted by 16 and times q2 < 2^62.
 */
AB_INLINE u64 balia_per_q8(const struct ab_cc *cc, u32 members)
{
	u32 cwnd = ab_coupled_cwnd(cc, cc->view->self);
	u64 own_q12 = (u64)cwnd << 12, most_q12 = balia_most_q12(cc, members);
	u64 total_q12 = ab_coupled_total(cc, members, cc->view->srtt8_us, 12, 1);
	u64 q1_q24 = (total_q12 << 24) / (own_q12 + most_q12);
	u64 q2_q24 = (total_q12 << 24) / (4 * own_q12 + most_q12);

	return (10 * (u64)cwnd * q1_q24 >> 16) * q2_q24 >> 24;
}

/* Part G4: a rate in bytes per second; 2^16 * 2^20 * 2^23 = 2^59. */
AB_INLINE u64 balia_kernel_rate(const struct ab_cc *cc, u32 k)
{
	u32 mss = k == cc->view->self ? cc->view->mss : cc->peers[k].mss;

	return ab_min_u32(mss, 65535) * (u64)ab_coupled_cwnd(cc, k) * 8000000 / ab_coupled_srtt8(cc, k);
}

AB_INLINE u64 balia_kernel_most(const struct ab_cc *cc, u32 members)
{
	u64 most = 1;
	u32 k;

	for (k = 0; k < AB_MAX_PEERS; k++) {
		if (members & 1u << k)
			most = ab_max_u64(most, balia_kernel_rate(cc, k));
	}
	return most;
}

/*
 * Part G4: whole packets per increase. Rates are at most 2^25 after the shift, eight of them 2^28, and
 * 10 sum^2 < 2^60. If they were shifted the largest is above 2^20, else the sum is at most 8 times the
 * largest; either way the first quotient is below 2^40, times a window 2^60.
 */
AB_INLINE u64 balia_kernel_per(const struct ab_cc *cc, u32 members)
{
	u64 most = balia_kernel_most(cc, members), sum = 0, own;
	u32 k, shift = 0;

	for (k = 0; k < BALIA_KERNEL_SHIFTS; k++)
		shift += most >> shift > BALIA_KERNEL_RATE_MAX ? 5 : 0;
	shift = ab_forget(shift) & 63;
	for (k = 0; k < AB_MAX_PEERS; k++) {
		if (members & 1u << k)
			sum += balia_kernel_rate(cc, k) >> shift;
	}
	most >>= shift;
	own = balia_kernel_rate(cc, cc->view->self) >> shift;
	return 10 * sum * sum / (own + most) * ab_coupled_cwnd(cc, cc->view->self) / (4 * own + most);
}

AB_INLINE void balia_ack(const struct ab_cc *cc)
{
	const struct balia_params *p = (const struct balia_params *)cc->params;
	struct balia_state *s = (struct balia_state *)cc->state;
	u32 members = ab_coupled_members(cc), cwnd, acked;
	u64 per_q8 = 0;

	if (!ab_after_slow_start(cc, &cwnd, &acked))
		return;
	if (ab_several(members) && p->precision == BALIA_KERNEL)
		per_q8 = ab_min_u64(ab_max_u64(balia_kernel_per(cc, members), 1), AB_PER_Q8_MAX) << 8;
	else if (ab_several(members))
		per_q8 = balia_per_q8(cc, members);
	ab_grow_by_one_per(cc, cwnd, acked, per_q8, &s->coupled.rest_q8);
}

/* Part G4: w - (w / 2) min(a, 3/2), with w / 2 and a whole. */
AB_INLINE u32 balia_kernel_reduced(const struct ab_cc *cc, u32 members)
{
	u64 own = ab_max_u64(balia_kernel_rate(cc, cc->view->self), 1);
	u64 a_q10 = ab_min_u64(ab_min_u64(balia_kernel_most(cc, members) / own, 2) << 10, BALIA_CUT_MAX_Q10);
	u32 cwnd = cc->view->cwnd;

	return ab_max_u32(cwnd - (u32)((cwnd >> 1) * a_q10 >> 10), 1);
}

/* In half packets, so that one may be kept: 2 w - w min(a, 3/2). 2^30 * 2^11 < 2^64. */
AB_INLINE u32 balia_reduced(const struct ab_cc *cc, u32 members, u32 *odd)
{
	u64 own_q12 = (u64)ab_coupled_cwnd(cc, cc->view->self) << 12;
	u64 a_q10 = ab_min_u64((balia_most_q12(cc, members) << 10) / own_q12, BALIA_CUT_MAX_Q10);
	u32 halves = (u32)((u64)cc->view->cwnd * (2048 - ab_max_u64(a_q10, 1024)) >> 10);

	*odd = halves > 2 ? halves & 1 : 0;
	return ab_max_u32(halves >> 1, 1);
}

AB_INLINE u32 balia_loss(const struct ab_cc *cc)
{
	const struct balia_params *p = (const struct balia_params *)cc->params;
	struct balia_state *s = (struct balia_state *)cc->state;
	u32 members = ab_coupled_members(cc);

	if (!ab_several(members))
		return ab_coupled_loss(cc);
	s->coupled.odd = 0;
	if (p->precision == BALIA_KERNEL)
		return balia_kernel_reduced(cc, members);
	return balia_reduced(cc, members, &s->coupled.odd);
}

#define AB_EVENTS_balia(E)                                                                                   \
	E(init, ab_ignore)                                                                                   \
	E(rtt_sample, ab_ignore)                                                                             \
	E(loss, balia_loss)                                                                                  \
	E(rto, ab_coupled_rto)                                                                               \
	E(recovery_exit, ab_coupled_recovery_exit)                                                           \
	E(undo, ab_undo_to_prior)                                                                            \
	E(ecn, ab_ignore)                                                                                    \
	E(ack, balia_ack)                                                                                    \
	E(rate, ab_ignore)                                                                                   \
	E(idle_restart, ab_ignore)                                                                           \
	E(peer_join, ab_ignore)                                                                              \
	E(peer_leave, ab_ignore)                                                                             \
	E(release, ab_ignore)

#endif
