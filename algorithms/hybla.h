/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Hybla (Caini, Firrincieli 2004): on a path of any RTT the rate of a Reno flow whose RTT is RTT0 = 25 ms.
 * With rho = RTT / RTT0, at least 1, the window grows per packet acknowledged by
 *
 *   2^rho - 1     in slow start
 *   rho^2 / cwnd  in congestion avoidance
 *
 * and halves at a loss.
 *
 * `precision = exact`, the default, has rho with 10 fraction bits; `kernel` has eighths, and increments in
 * 1/128 packet, both rounded down, as Linux.
 *
 * We differ in:
 *  - RTT is the smallest one, so that a queue does not make the flow faster;
 *    Linux takes the smallest smoothed one;
 *  - the increase is per packet acknowledged, not per ACK, so delayed ACKs do not make the flow slower;
 *  - the initial window and ssthresh are the host's; the paper multiplies both by rho;
 *  - rho counts as at most 16 in slow start (as Linux) and 1024 in congestion avoidance;
 *  - the window does not grow beyond `window_max`, Linux's bound: slow start would pass any in a few ACKs;
 *  - pacing, which the paper assumes, is the host's;
 *  - what an ACK acknowledges beyond the end of slow start does not count.
 */
#ifndef ANABRANCH_HYBLA_H
#define ANABRANCH_HYBLA_H

#include "anabranch/cc.h"
#include "anabranch/increase.h"

enum hybla_precision { HYBLA_EXACT = 0, HYBLA_KERNEL = 1 };

#define AB_PARAMS_hybla(P)                                                                                   \
	P(rtt0_us, AB_UNIT_US, 25000, 1000, 1000000, "round-trip time of the flow to keep up with")          \
	P(window_max, AB_UNIT_PACKETS, 65535, 2, 1000000000, "the window grows up to this")                  \
	P(precision, AB_UNIT_CHOICE, HYBLA_EXACT, 0, 1,                                                      \
	  "exact|kernel: resolution of rho, fine or that of Linux")
#define AB_COLD_BYTES_hybla 0

struct hybla_params {
	AB_PARAMS_hybla(AB_PARAM_FIELD)
};

#define HYBLA_ONE_Q10       1024u
#define HYBLA_RHO_MAX_Q10   (1024 * HYBLA_ONE_Q10)
#define HYBLA_SHIFT_MAX     16
#define HYBLA_GROWTH_MAX    (1u << 30) /* packets per ACK */
#define HYBLA_KERNEL_ONE_Q7 128u

struct hybla_state {
	u32 rest_q10; /* fraction of a packet: of the window in slow start, of the counter after */
	u32 rest_q7;  /* kernel: 1/128 packets of window */
	u32 odd;      /* the last halving left half a packet */
};

/* rho, 10 fraction bits, 1 .. 1024: 2^32 * 1024 < 2^64. No RTT yet (0): 1. */
AB_INLINE u32 hybla_rho_q10(u32 rtt_us, u32 rtt0_us, u32 precision)
{
	u64 rho_q10 = ab_min_u64((u64)rtt_us * HYBLA_ONE_Q10 / rtt0_us, HYBLA_RHO_MAX_Q10);

	if (precision == HYBLA_KERNEL)
		rho_q10 = rho_q10 >> 7 << 7;
	return (u32)ab_max_u64(rho_q10, HYBLA_ONE_Q10);
}

/*
 * 2^f, 16 fraction bits, for f = f_q10 / 1024 in [0, 1): 1 + 0.6954 f + 0.2264 f^2 + 0.0782 f^3, which is
 * exact at both ends and off by at most 1.1e-4 between; at the eighths its first 7 bits are those of the true
 * value. 2^17 * 2^10 < 2^32.
 */
AB_INLINE u32 hybla_pow2_q16(u32 f_q10)
{
	u32 sum = 14836 + (5126 * f_q10 >> 10);

	sum = 45574 + (sum * f_q10 >> 10);
	return 65536 + (sum * f_q10 >> 10);
}

/* 2^rho - 1, 10 fraction bits: 2^17 * 2^16 < 2^33, so the result is below 2^27. */
AB_INLINE u32 hybla_slow_start_q10(u32 rho_q10, u32 precision)
{
	u32 whole = ab_min_u32(rho_q10 >> 10, HYBLA_SHIFT_MAX);
	u32 pow2_q16 = hybla_pow2_q16(rho_q10 & (HYBLA_ONE_Q10 - 1));

	if (precision == HYBLA_KERNEL)
		pow2_q16 = pow2_q16 >> 9 << 9;
	return (u32)(((u64)pow2_q16 << whole) >> 6) - HYBLA_ONE_Q10;
}

/* rho^2, 10 fraction bits: (2^20)^2 / 2^10 = 2^30. */
AB_INLINE u32 hybla_rho2_q10(u32 rho_q10)
{
	return (u32)((u64)rho_q10 * rho_q10 >> 10);
}

/* Linux's increment in 1/128 packet: 2^30 / 8 / cwnd. */
AB_INLINE u32 hybla_increment_q7(u32 rho_q10, u32 cwnd)
{
	return (hybla_rho2_q10(rho_q10) >> 3) / cwnd;
}

/* acked * increment < 2^30 * 2^27 = 2^57. Caller: cwnd < ssthresh. */
AB_INLINE u32 hybla_grow(const struct ab_view *v, struct hybla_state *s, u32 increment_q10)
{
	u64 grown_q10 = (u64)v->acked * increment_q10 + s->rest_q10;

	s->rest_q10 = (u32)(grown_q10 & (HYBLA_ONE_Q10 - 1));
	return ab_min_u32(v->cwnd + (u32)ab_min_u64(grown_q10 >> 10, HYBLA_GROWTH_MAX), v->ssthresh);
}

/* acked * increment < 2^30 * 2^27 = 2^57. An increment below 1/128 counts as Reno's. */
AB_INLINE void hybla_avoid_kernel(const struct ab_view *v, struct hybla_state *s, u32 rho_q10, u32 *cwnd,
				  u32 *cnt)
{
	u32 increment_q7 = hybla_increment_q7(rho_q10, v->cwnd);
	u64 grown_q7;

	if (!increment_q7) {
		ab_additive_increase(cwnd, cnt, v->cwnd, v->acked);
		return;
	}
	grown_q7 = (u64)v->acked * increment_q7 + s->rest_q7;
	s->rest_q7 = (u32)(grown_q7 & (HYBLA_KERNEL_ONE_Q7 - 1));
	*cwnd += (u32)ab_min_u64(grown_q7 >> 7, HYBLA_GROWTH_MAX);
}

AB_INLINE void hybla_ack(const struct ab_cc *cc)
{
	const struct hybla_params *p = (const struct hybla_params *)cc->params;
	struct hybla_state *s = (struct hybla_state *)cc->state;
	const struct ab_view *v = cc->view;
	u32 rho_q10 = hybla_rho_q10(v->min_rtt_us, p->rtt0_us, p->precision);
	u32 cwnd = v->cwnd, cnt = v->cwnd_cnt;

	if (!v->cwnd_limited)
		return;
	if (ab_in_slow_start(v))
		cwnd = hybla_grow(v, s, hybla_slow_start_q10(rho_q10, p->precision));
	else if (p->precision == HYBLA_KERNEL)
		hybla_avoid_kernel(v, s, rho_q10, &cwnd, &cnt);
	else
		ab_weighted_increase(&cwnd, &cnt, &s->rest_q10, hybla_rho2_q10(rho_q10), v->acked);
	ab_set_cwnd(cc, ab_max_u32(v->cwnd, ab_min_u32(cwnd, p->window_max)));
	ab_set_cwnd_cnt(cc, cnt);
}

AB_INLINE u32 hybla_loss(const struct ab_cc *cc)
{
	return ab_half_exactly(cc, &((struct hybla_state *)cc->state)->odd);
}

AB_INLINE void hybla_rto(const struct ab_cc *cc)
{
	((struct hybla_state *)cc->state)->odd = 0;
}

AB_INLINE void hybla_recovery_exit(const struct ab_cc *cc)
{
	ab_restore_half(cc, &((struct hybla_state *)cc->state)->odd);
}

#define AB_EVENTS_hybla(E)                                                                                   \
	E(init, ab_ignore)                                                                                   \
	E(rtt_sample, ab_ignore)                                                                             \
	E(loss, hybla_loss)                                                                                  \
	E(rto, hybla_rto)                                                                                    \
	E(recovery_exit, hybla_recovery_exit)                                                                \
	E(undo, ab_undo_to_prior)                                                                            \
	E(ecn, ab_ignore)                                                                                    \
	E(ack, hybla_ack)                                                                                    \
	E(rate, ab_ignore)                                                                                   \
	E(idle_restart, ab_ignore)                                                                           \
	E(peer_join, ab_ignore)                                                                              \
	E(peer_leave, ab_ignore)                                                                             \
	E(release, ab_ignore)

#endif
