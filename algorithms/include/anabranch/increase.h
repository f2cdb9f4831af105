/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Additive increase by more or less than one packet per window. */
#ifndef ANABRANCH_INCREASE_H
#define ANABRANCH_INCREASE_H

#include "anabranch/fixedpoint.h"

#define AB_INCREASE_WEIGHT_MAX_Q10 (1u << 30) /* a weight of 2^20 */
#define AB_INCREASE_STEPS_MAX      (1u << 30)

/*
 * Every packet acknowledged counts as weight_q10 / 1024 of them, and the window grows by a packet per window
 * so counted. `cnt` keeps what is left in whole packets, as in ab_additive_increase, and *rest_q10 the
 * fraction below one.
 *
 * With cnt and acked at most 2^30 and the weight at most 2^30 the credit is below 2^60 + 2^41, and the window
 * at most 2^31 afterwards. What is left is less than a window, so it fits cnt.
 */
AB_INLINE void ab_weighted_increase(u32 *cwnd, u32 *cnt, u32 *rest_q10, u32 weight_q10, u32 acked)
{
	u64 credit_q10 = ((u64)*cnt << 10) + *rest_q10 + (u64)acked * weight_q10;
	u64 per_q10 = (u64)*cwnd << 10, steps = credit_q10 / per_q10;

	credit_q10 -= steps * per_q10;
	*cnt = (u32)(credit_q10 >> 10);
	*rest_q10 = (u32)(credit_q10 & 1023);
	*cwnd += (u32)ab_min_u64(steps, AB_INCREASE_STEPS_MAX);
}

#endif
