/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Integer arithmetic for congestion control, each function with the range in which it is exact.
 *
 * BPF has neither __int128 nor signed division nor floats, and every loop needs a constant bound, so
 * everything here is unsigned, at most 64 bits wide, and bounded. A name ending in _qN is a number
 * stored times 2^N.
 */
#ifndef ANABRANCH_FIXEDPOINT_H
#define ANABRANCH_FIXEDPOINT_H

#include "types.h"

#define AB_U32_MAX 0xffffffffu
#define AB_U64_MAX 0xffffffffffffffffull

AB_INLINE u64 ab_min_u64(u64 a, u64 b)
{
	return a < b ? a : b;
}

AB_INLINE u64 ab_max_u64(u64 a, u64 b)
{
	return a > b ? a : b;
}

/* How far a counter that wraps at 2^32 has gone from `earlier` to `later`. Every value. */
AB_INLINE u32 ab_since(u32 later, u32 earlier)
{
	return (u32)((later + (1ull << 32) - earlier) & AB_U32_MAX);
}

/*
 * floor(a * b / c), for every a and b and every c > 0; a result above 2^64 - 1 becomes 2^64 - 1.
 * c = 0 counts as 1.
 *
 * With a = q * c + r, 0 <= r < c:  a * b / c = q * b + r * b / c, and q * b is an integer, so
 * floor(a * b / c) = q * b + floor(r * b / c). r * b < 2^32 * 2^32 = 2^64 cannot overflow; q * b is
 * checked. floor(r * b / c) < b, so the sum overflows only if it exceeds what is left, also checked.
 */
AB_INLINE u64 ab_mul_div(u64 a, u32 b, u32 c)
{
	u64 q, rest;

	if (!c)
		c = 1;
	q = a / c;
	rest = (a % c) * b / c;
	if (b && q > AB_U64_MAX / b)
		return AB_U64_MAX;
	q *= b;
	return rest > AB_U64_MAX - q ? AB_U64_MAX : q + rest;
}

/*
 * floor(a * b / 2^24) for a < 2^56: with a = h * 2^24 + l it is h * b + floor(l * b / 2^24), whose terms are
 * below 2^32 * 2^32 - 2^32 and 2^32.
 */
AB_INLINE u64 ab_mul_q24(u64 a, u32 b)
{
	return (a >> 24) * b + ((a & 0xffffff) * b >> 24);
}

/*
 * Is a * b > c * d? Exact for all values. The products have up to 96 bits; they are compared as
 * high part (bits 32 and up) and low part (32 bits): (2^32 - 1)^2 + (2^32 - 1) < 2^64, so the high
 * part does not overflow.
 */
AB_INLINE int ab_product_greater(u32 a, u64 b, u32 c, u64 d)
{
	u64 low_ab = a * (b & AB_U32_MAX), low_cd = c * (d & AB_U32_MAX);
	u64 high_ab = a * (b >> 32) + (low_ab >> 32), high_cd = c * (d >> 32) + (low_cd >> 32);

	if (high_ab != high_cd)
		return high_ab > high_cd;
	return (low_ab & AB_U32_MAX) > (low_cd & AB_U32_MAX);
}

/* Number of bits of a: 0 for 0, else 1 + floor(log2 a). */
AB_INLINE u32 ab_bit_length(u64 a)
{
	u32 bits = 0;

	if (a >> 32) {
		bits += 32;
		a >>= 32;
	}
	if (a >> 16) {
		bits += 16;
		a >>= 16;
	}
	if (a >> 8) {
		bits += 8;
		a >>= 8;
	}
	if (a >> 4) {
		bits += 4;
		a >>= 4;
	}
	if (a >> 2) {
		bits += 2;
		a >>= 2;
	}
	if (a >> 1) {
		bits += 1;
		a >>= 1;
	}
	return bits + (u32)a;
}

/*
 * Cube root by Newton's iteration x <- (2x + a / x^2) / 3, from x = 2^(bits / 3) until the change is
 * at most 1 (algorithm reference, G7). The result is the floor of the root or one more.
 *
 * Range: every u64. The root is below 2^21.4 and the start is between 0.62 and 1 times the root, or
 * 1.26 times it; the first step from below overshoots by at most 26 %, and the relative error e then
 * becomes at most e^2 per step: 0.26, 0.068, 0.0046, 2.1e-5, 4.5e-10, less than one unit at any root.
 * So x^2 < 2^44, 2x + a / x^2 < 2^64, and AB_CUBE_ROOT_STEPS = 7 leave one step in hand.
 */
#define AB_CUBE_ROOT_STEPS 7

AB_INLINE u32 ab_cube_root(u64 a)
{
	u64 x = 1ull << (ab_bit_length(a) / 3), next;
	u32 step;

	for (step = 0; step < AB_CUBE_ROOT_STEPS; step++) {
		next = (2 * x + a / (x * x)) / 3;
		if (next <= x + 1 && x <= next + 1)
			return (u32)next;
		x = next;
	}
	return (u32)x;
}

/*
 * Fourth root by Newton's iteration x <- (3x + a / x^3) / 4, from x = 2^(bits / 4) until the change is at
 * most 1 (algorithm reference, G8). The result is the floor of the root or one more.
 *
 * Range: every u64. The root is below 2^16 and the start is between 0.59 and 1.19 times the root. The first
 * step overshoots by at most 64 %; the relative error e then falls to 0.29, 0.081, 0.0087, 1.2e-4 and 2e-8,
 * less than one unit at any root. So x^3 < 2^51, and AB_QUARTIC_ROOT_STEPS = 8 leave one step in hand.
 */
#define AB_QUARTIC_ROOT_STEPS 8

AB_INLINE u32 ab_quartic_root(u64 a)
{
	u64 x = 1ull << (ab_bit_length(a) / 4), next;
	u32 step;

	for (step = 0; step < AB_QUARTIC_ROOT_STEPS; step++) {
		next = (3 * x + a / (x * x * x)) / 4;
		if (next <= x + 1 && x <= next + 1)
			return (u32)next;
		x = next;
	}
	return (u32)x;
}

/*
 * Exponential average: moves `average` by 1/n of its distance to `sample` (same scale), truncated
 * towards `average`. Exact for all values, no overflow: the result lies between the two. It stalls when
 * the distance is below n, so keep log2(n) fraction bits. n = 0 counts as 1.
 */
AB_INLINE u64 ab_ewma(u64 average, u64 sample, u32 n)
{
	if (!n)
		n = 1;
	return sample >= average ? average + (sample - average) / n : average - (average - sample) / n;
}

#endif
