/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * LIA, the Linked Increases Algorithm of RFC 6356 (Raiciu, Handley, Wischik 2011).
 *
 * Per acknowledged packet, subflow i grows by min(alpha / w_total, 1 / w_i), where
 *   alpha = w_total * max_k(w_k / rtt_k^2) / (sum_k w_k / rtt_k)^2.
 * With b the subflow that maximises w / rtt^2 and T = sum_k w_k * rtt_b / rtt_k, alpha / w_total is
 * w_b / T^2, so subflow i grows by one packet per max(T^2 / w_b, w_i) packets acknowledged.
 *
 * `precision` says how that threshold is held:
 *  - exact (default): T with 12 fraction bits, the threshold with 8, the fraction carried from one
 *    increase to the next, recomputed on every ACK; within 1 % of RFC 6356 at the windows it is given
 *    (they are whole packets in both hosts);
 *  - kernel: the form of the multipath kernel (part G2 of the algorithm reference): A = alpha / w_total
 *    with 12 fraction bits, threshold 4096 / A. A is a small integer, so the threshold jumps by 9 % at A
 *    = 11 and is never above 4096 packets: at T^2 / w_b = 700 packets it is 819, 17 % too large.
 *
 * We differ in:
 *  - the best subflow is found by exact comparison, not by the kernel's quotient, which becomes 0 at long
 *    round-trip times, so that the last subflow wins;
 *  - the packets an ACK leaves over when it ends slow start count towards the increase, as in Reno;
 *  - half a packet that halving leaves is kept, as in our Reno;
 *  - a subflow in recovery counts with ssthresh for its window;
 *  - `kernel` recomputes A in slow start, after an increase and after every loss, recovery or change of
 *    the subflow set, and does not have that kernel's one-late counter (as G2).
 */
#ifndef ANABRANCH_LIA_H
#define ANABRANCH_LIA_H

#include "anabranch/coupled.h"

enum lia_precision { LIA_EXACT = 0, LIA_KERNEL = 1 };

#define AB_PARAMS_lia(P)                                                                                     \
	P(precision, AB_UNIT_CHOICE, LIA_EXACT, 0, 1,                                                        \
	  "exact|kernel: resolution of the increase, fine or that of the multipath kernel")
#define AB_COLD_BYTES_lia 0

struct lia_params {
	AB_PARAMS_lia(AB_PARAM_FIELD)
};

struct lia_state {
	u32 rest_q8; /* exact: fraction of a packet carried to the next threshold */
	u32 a_q12;   /* kernel: alpha / w_total; 0: recompute */
	u32 odd;     /* the last halving left half a packet */
};

#define LIA_TOTAL_MAX        AB_U32_MAX /* with 12 fraction bits 2^20 packets */
#define LIA_THRESHOLD_Q8_MAX AB_U32_MAX /* 2^24 packets per increase */

/* The member that maximises w / rtt^2; the first of equals. `members` is not empty. */
AB_INLINE u32 lia_best(const struct ab_cc *cc, u32 members)
{
	u32 k, best = cc->view->self, w, srtt8, w_best = 0, srtt8_best = 1;

	for (k = 0; k < AB_MAX_PEERS; k++) {
		if (!(members & 1u << k))
			continue;
		w = ab_coupled_cwnd(cc, k);
		srtt8 = ab_coupled_srtt8(cc, k);
		if (ab_product_greater(w, (u64)srtt8_best * srtt8_best, w_best, (u64)srtt8 * srtt8)) {
			best = k;
			w_best = w;
			srtt8_best = srtt8;
		}
	}
	return ab_forget_index(best, AB_MAX_PEERS);
}

/*
 * T = sum_k w_k * rtt_b / rtt_k with q <= 12 fraction bits, saturating at 2^32 - 1. One term:
 * 2^20 * 2^12 * (2^32 - 1) + 2^31 < 2^64; it is capped at 2^32 - 1, so that it can be added. T >= w_b << q.
 * Terms are rounded to nearest if `nearest` is 1 and truncated if it is 0.
 */
AB_INLINE u64 lia_total(const struct ab_cc *cc, u32 members, u32 srtt8_best, u32 q, u32 nearest)
{
	u32 total = 0, k, srtt8;
	u64 term;

	for (k = 0; k < AB_MAX_PEERS; k++) {
		if (!(members & 1u << k))
			continue;
		srtt8 = ab_coupled_srtt8(cc, k);
		term = ((u64)ab_coupled_cwnd(cc, k) << q) * srtt8_best + nearest * (srtt8 / 2);
		term = ab_min_u64(term / srtt8, LIA_TOTAL_MAX);
		total = ab_forget((u32)ab_min_u64(total + term, LIA_TOTAL_MAX));
	}
	return total;
}

/* T^2 / w_b with 8 fraction bits: T^2 < 2^64 has 24, so the divisor is w_b << 16 <= 2^36. */
AB_INLINE u64 lia_threshold_q8(const struct ab_cc *cc, u32 members)
{
	u32 best = lia_best(cc, members);
	u64 total_q12 = lia_total(cc, members, ab_coupled_srtt8(cc, best), 12, 1);

	return ab_min_u64(total_q12 * total_q12 / ((u64)ab_coupled_cwnd(cc, best) << 16),
			  LIA_THRESHOLD_Q8_MAX);
}

/*
 * Part G2: A = (w_b << 32) / S^2, S = sum (w_k << 10) * srtt_b / srtt_k. A saturated S gives A = 1 as the
 * true one does, since then S^2 > w_b << 32. S >= w_b << 10, so A <= 4096.
 */
AB_INLINE u32 lia_kernel_a_q12(const struct ab_cc *cc, u32 members)
{
	u32 best = lia_best(cc, members);
	u64 sum_q10 = lia_total(cc, members, ab_coupled_srtt8(cc, best), 10, 0);

	return ab_max_u32((u32)(((u64)ab_coupled_cwnd(cc, best) << 32) / (sum_q10 * sum_q10)), 1);
}

/* The window may grow: slow start, then the linked increase over `members` (Reno's if fewer than two). */
AB_INLINE void lia_grow(const struct ab_cc *cc, struct lia_state *s, u32 members, u32 precision)
{
	const struct ab_view *v = cc->view;
	u32 cwnd = v->cwnd, cnt = v->cwnd_cnt, acked = v->acked, before;
	u64 threshold_q8;

	if (!v->cwnd_limited)
		return;
	if (ab_in_slow_start(v)) {
		s->a_q12 = 0;
		acked = ab_slow_start(v, acked, &cwnd);
		if (!acked) {
			ab_set_cwnd(cc, cwnd);
			return;
		}
	}
	threshold_q8 = (u64)cwnd << 8;
	if (ab_several(members) && precision == LIA_KERNEL) {
		if (!s->a_q12)
			s->a_q12 = lia_kernel_a_q12(cc, members);
		threshold_q8 = ab_max_u64((u64)(4096 / s->a_q12) << 8, threshold_q8);
	} else if (ab_several(members)) {
		threshold_q8 = ab_max_u64(lia_threshold_q8(cc, members), threshold_q8) + s->rest_q8;
	}
	before = cwnd;
	ab_additive_increase(&cwnd, &cnt, (u32)ab_min_u64(threshold_q8 >> 8, AB_U32_MAX), acked);
	if (cwnd != before) {
		s->a_q12 = 0;
		s->rest_q8 = (u32)(threshold_q8 & 255);
	}
	ab_set_cwnd(cc, cwnd);
	ab_set_cwnd_cnt(cc, cnt);
}

AB_INLINE void lia_ack(const struct ab_cc *cc)
{
	const struct lia_params *p = (const struct lia_params *)cc->params;

	lia_grow(cc, (struct lia_state *)cc->state, ab_coupled_members(cc), p->precision);
}

/* Anything that moves windows outside lia_grow: the kernel form computes A anew. */
AB_INLINE void lia_recompute(const struct ab_cc *cc)
{
	((struct lia_state *)cc->state)->a_q12 = 0;
}

AB_INLINE u32 lia_loss(const struct ab_cc *cc)
{
	return ab_half_exactly(cc, &((struct lia_state *)cc->state)->odd);
}

AB_INLINE void lia_rto(const struct ab_cc *cc)
{
	((struct lia_state *)cc->state)->odd = 0;
	lia_recompute(cc);
}

AB_INLINE void lia_recovery_exit(const struct ab_cc *cc)
{
	ab_restore_half(cc, &((struct lia_state *)cc->state)->odd);
	lia_recompute(cc);
}

#define AB_EVENTS_lia(E)                                                                                     \
	E(init, ab_ignore)                                                                                   \
	E(rtt_sample, ab_ignore)                                                                             \
	E(loss, lia_loss)                                                                                    \
	E(rto, lia_rto)                                                                                      \
	E(recovery_exit, lia_recovery_exit)                                                                  \
	E(undo, ab_undo_to_prior)                                                                            \
	E(ecn, ab_ignore)                                                                                    \
	E(ack, lia_ack)                                                                                      \
	E(rate, ab_ignore)                                                                                   \
	E(idle_restart, ab_ignore)                                                                           \
	E(peer_join, lia_recompute)                                                                          \
	E(peer_leave, lia_recompute)                                                                         \
	E(release, ab_ignore)

#endif
