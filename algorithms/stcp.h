/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * STCP: Gupta, Singh, Singh, Verma, "STCP: A Novel Approach for Congestion Control in IoT Environment", JITM
 * 14 (2022), Algorithm 1. The window rests while the early-congestion-detection factor (ECD) is above a
 * threshold, and grows by ssthresh / cwnd per ACK else. Integers: section G10 of the algorithm reference, in
 * kbit/s, packets << 8 and milliseconds.
 *
 * The paper's algorithm is incomplete (the comparison, the units, the window's initial value and the fast
 * retransmission are missing or contradictory). Readings taken, I-S1-1 to I-S1-9 of the reference:
 *  - "Bandwidth" is the available one, so that capacity less bandwidth is what is used (reading R1);
 *    `bandwidth = throughput` takes it for the flow's own (R2);
 *  - the constants 0.5 and 5 are Mbit/s and packets, and the differences are at least 5 % of the capacity
 *    and half of the queue;
 *  - at most one packet per packet acknowledged, or the window would grow by an infinite ssthresh at once;
 *    `literal` lifts that once a loss has set ssthresh;
 *  - the initial window is the capacity times the least RTT, once ten samples are there; it is only raised;
 *  - loss: Reno.
 *
 * A sample of the capacity is what an ACK acknowledges over the time since the last one. Such a pair was sent
 * back to back only if no pause lies between: the first ACK of a round trip, and those in recovery, do not
 * count. Capacities count up to 16.7 Gbit/s, windows up to 2^23 packets and RTTs up to 65 s.
 */
#ifndef ANABRANCH_STCP_H
#define ANABRANCH_STCP_H

#include "anabranch/cc.h"
#include "anabranch/fixedpoint.h"

#define AB_PARAMS_stcp(P)                                                                                    \
	P(bandwidth, AB_UNIT_CHOICE, 0, 0, 1, "available|throughput: what the factor takes for bandwidth")   \
	P(literal, AB_UNIT_BOOL, 0, 0, 1, "grow by ssthresh / cwnd even if that is more than one packet")    \
	P(capacity, AB_UNIT_CHOICE, 0, 0, 1, "mean|median: of the last ten samples of the capacity")         \
	P(queue_max, AB_UNIT_PACKETS, 0, 0, 100000, "queue of the bottleneck; 0: the largest estimate yet")  \
	P(initial_max, AB_UNIT_PACKETS, 50, 10, 100000, "largest window that the capacity sets at the start")

struct stcp_params {
	AB_PARAMS_stcp(AB_PARAM_FIELD)
};

#define AB_COLD_BYTES_stcp 0

enum { STCP_AVAILABLE, STCP_THROUGHPUT };
enum { STCP_MEAN, STCP_MEDIAN };

#define STCP_SAMPLES       10u
#define STCP_WINDOW_MAX    ((1u << 23) - 1) /* packets */
#define STCP_CAPACITY_MAX  ((1u << 24) - 1) /* kbit/s */
#define STCP_RTT_MAX_MS    ((1u << 16) - 1)
#define STCP_MARGIN_KBPS   500u
#define STCP_MARGIN_QUEUE  5u
#define STCP_INITIAL_LEAST 2u

struct stcp_state {
	u32 samples[STCP_SAMPLES]; /* kbit/s, a ring */
	u32 capacity;              /* kbit/s; 0 before ten samples */
	u32 rtt_min_us;            /* 0 before the first sample */
	u32 rtt_max_us;
	u32 queue_max; /* packets, the largest estimate */
	u32 odd;       /* the last halving left half a packet */
	u8 next;
	u8 filled;
	u8 started; /* the initial window has been set */
	u8 reserved;
};

/* What a decision looks at. */
struct stcp_path {
	u32 capacity;  /* kbit/s */
	u32 queue_max; /* packets */
	u32 rtt_us, rtt_min_us, rtt_max_us;
	u32 mss;
	u32 cwnd;
};

/* Formulas. */

/* bytes * 8 * 1000 / us = kbit/s. bytes * 8000 < 2^45. */
AB_INLINE u32 stcp_sample(u32 bytes, u32 gap_us)
{
	return (u32)ab_min_u64((u64)bytes * 8000 / gap_us, STCP_CAPACITY_MAX);
}

AB_INLINE u32 stcp_ms(u32 us)
{
	return ab_min_u32(ab_max_u32(us / 1000, 1), STCP_RTT_MAX_MS);
}

/* cwnd * L / rtt, at most the capacity. cwnd * bits < 2^23 * 2^19. */
AB_INLINE u32 stcp_used(const struct stcp_path *t)
{
	u64 bits = (u64)ab_min_u32(t->cwnd, STCP_WINDOW_MAX) * ab_min_u32(t->mss, 65535) * 8;

	return (u32)ab_min_u64(bits / stcp_ms(t->rtt_us), t->capacity);
}

/* Q = cwnd (rtt - rtt_min) / rtt, below 2^31. cwnd * ms << 8 < 2^23 * 2^16 * 2^8. */
AB_INLINE u32 stcp_queue_q8(const struct stcp_path *t)
{
	u32 rtt = stcp_ms(t->rtt_us), least = stcp_ms(t->rtt_min_us);

	if (rtt <= least)
		return 0;
	return (u32)(((u64)ab_min_u32(t->cwnd, STCP_WINDOW_MAX) * (rtt - least) << 8) / rtt);
}

/*
 * (Capacity - Bandwidth) * Q * rtt, by whole packets and the rest: used * rtt < 2^24 * 2^16, times packets <
 * 2^63, times the rest < 2^48.
 */
AB_INLINE u64 stcp_ecd(const struct stcp_path *t, u32 bandwidth)
{
	u32 used = stcp_used(t), factor = bandwidth == STCP_THROUGHPUT ? t->capacity - used : used;
	u64 rate_time = (u64)factor * stcp_ms(t->rtt_us);
	u32 queue_q8 = stcp_queue_q8(t);

	return rate_time * (queue_q8 >> 8) + (rate_time * (queue_q8 & 255) >> 8);
}

/* max(C - 0.5, C / 20) * max(Qmax - 5, Qmax / 2) * rtt_max, below 2^24 * 2^23 * 2^16. */
AB_INLINE u64 stcp_thresh(const struct stcp_path *t)
{
	u32 c = t->capacity, q = t->queue_max;
	u32 spare = ab_max_u32(c > STCP_MARGIN_KBPS ? c - STCP_MARGIN_KBPS : 0, c / 20);
	u32 queue = ab_max_u32(q > STCP_MARGIN_QUEUE ? q - STCP_MARGIN_QUEUE : 0, q / 2);

	return (u64)spare * queue * stcp_ms(t->rtt_max_us);
}

/* C * rtt_min / 8L, between 2 and `most`. kbit/s * us / 1000 are bits: 2^24 * 2^32. */
AB_INLINE u32 stcp_initial_window(u32 capacity, u32 rtt_min_us, u32 mss, u32 most)
{
	u64 packets = (u64)capacity * rtt_min_us / 1000 / (8ull * ab_max_u32(mss, 1));

	return ab_max_u32((u32)ab_min_u64(packets, most), STCP_INITIAL_LEAST);
}

/*
 * The middle of the samples: the mean of the two that have four and five before them in order. Comparisons
 * are subtractions of values below 2^31, so that no branch depends on them.
 */
AB_INLINE u32 stcp_median(const u32 samples[STCP_SAMPLES])
{
	u32 i, k, rank, wanted;
	u64 sum = 0;

	for (i = 0; i < STCP_SAMPLES; i++) {
		rank = 0;
		for (k = 0; k < STCP_SAMPLES; k++) /* of equal ones the first counts as smaller */
			rank += ((samples[k] + 0x80000000u - samples[i] - (k < i)) >> 31) ^ 1;
		rank = ab_forget(rank);
		wanted = rank == STCP_SAMPLES / 2 - 1 || rank == STCP_SAMPLES / 2;
		sum += wanted ? samples[i] : 0;
	}
	return (u32)(sum / 2);
}

AB_INLINE u32 stcp_mean(const u32 samples[STCP_SAMPLES])
{
	u32 k, sum = 0;

	for (k = 0; k < STCP_SAMPLES; k++)
		sum += samples[k];
	return sum / STCP_SAMPLES;
}

/* Events. */

AB_INLINE void stcp_path_now(const struct ab_cc *cc, struct stcp_path *t)
{
	const struct stcp_params *p = (const struct stcp_params *)cc->params;
	const struct stcp_state *s = (const struct stcp_state *)cc->state;
	const struct ab_view *v = cc->view;

	t->capacity = s->capacity;
	t->queue_max = p->queue_max ? p->queue_max : s->queue_max;
	t->rtt_us = v->rtt_valid ? v->rtt_us : v->srtt8_us >> 3;
	t->rtt_min_us = s->rtt_min_us;
	t->rtt_max_us = s->rtt_max_us;
	t->mss = v->mss;
	t->cwnd = v->cwnd;
}

AB_INLINE void stcp_update_capacity(struct stcp_state *s, const struct stcp_params *p,
				    const struct ab_view *v)
{
	u32 index = s->next;

	if (!v->ack_gap_us || !v->acked_bytes_gap || v->round_start || v->ca_state != AB_CA_OPEN)
		return;
	s->next = index + 1 < STCP_SAMPLES ? (u8)(index + 1) : 0;
	if (index < STCP_SAMPLES)
		s->samples[index] = stcp_sample(v->acked_bytes_gap, v->ack_gap_us);
	if (s->filled < STCP_SAMPLES)
		s->filled++;
	if (s->filled == STCP_SAMPLES)
		s->capacity = p->capacity == STCP_MEDIAN ? stcp_median(s->samples) : stcp_mean(s->samples);
}

AB_INLINE void stcp_rtt_sample(const struct ab_cc *cc)
{
	const struct stcp_params *p = (const struct stcp_params *)cc->params;
	struct stcp_state *s = (struct stcp_state *)cc->state;
	const struct ab_view *v = cc->view;
	struct stcp_path t;
	u32 cwnd;

	if (!s->rtt_min_us || v->rtt_us < s->rtt_min_us)
		s->rtt_min_us = ab_max_u32(v->rtt_us, 1);
	s->rtt_max_us = ab_max_u32(s->rtt_max_us, v->rtt_us);
	stcp_path_now(cc, &t);
	s->queue_max = ab_max_u32(s->queue_max, stcp_queue_q8(&t) >> 8);
	stcp_update_capacity(s, p, v);
	if (s->started || !s->capacity)
		return;
	s->started = 1;
	cwnd = stcp_initial_window(s->capacity, s->rtt_min_us, v->mss, p->initial_max);
	if (cwnd > v->cwnd && v->ca_state == AB_CA_OPEN && ab_in_slow_start(v))
		ab_set_cwnd(cc, cwnd);
}

AB_INLINE u32 stcp_loss(const struct ab_cc *cc)
{
	struct stcp_state *s = (struct stcp_state *)cc->state;

	s->started = 1;
	return ab_half_exactly(cc, &s->odd);
}

AB_INLINE void stcp_rto(const struct ab_cc *cc)
{
	((struct stcp_state *)cc->state)->odd = 0;
}

AB_INLINE void stcp_recovery_exit(const struct ab_cc *cc)
{
	ab_restore_half(cc, &((struct stcp_state *)cc->state)->odd);
}

/* cwnd += ssthresh / cwnd per packet: cwnd_cnt counts parts of which cwnd make a packet. 2^30 * 2^31 + 2^32.
 */
AB_INLINE void stcp_grow(const struct ab_cc *cc)
{
	const struct stcp_params *p = (const struct stcp_params *)cc->params;
	const struct ab_view *v = cc->view;
	int literally = p->literal && v->ssthresh < AB_SSTHRESH_INFINITE;
	u32 per_packet = literally ? v->ssthresh : ab_min_u32(v->ssthresh, v->cwnd);
	u64 parts = (u64)v->acked * per_packet + v->cwnd_cnt, whole = parts / v->cwnd;

	ab_set_cwnd(cc, (u32)ab_min_u64(v->cwnd + whole, 1u << 30));
	ab_set_cwnd_cnt(cc, (u32)(parts - whole * v->cwnd));
}

AB_INLINE void stcp_ack(const struct ab_cc *cc)
{
	const struct stcp_params *p = (const struct stcp_params *)cc->params;
	const struct stcp_state *s = (const struct stcp_state *)cc->state;
	struct stcp_path t;

	if (!cc->view->cwnd_limited)
		return;
	stcp_path_now(cc, &t);
	if (s->capacity && stcp_ecd(&t, p->bandwidth) > stcp_thresh(&t))
		return;
	stcp_grow(cc);
}

#define AB_EVENTS_stcp(E)                                                                                    \
	E(init, ab_ignore)                                                                                   \
	E(rtt_sample, stcp_rtt_sample)                                                                       \
	E(loss, stcp_loss)                                                                                   \
	E(rto, stcp_rto)                                                                                     \
	E(recovery_exit, stcp_recovery_exit)                                                                 \
	E(undo, ab_undo_to_prior)                                                                            \
	E(ecn, ab_ignore)                                                                                    \
	E(ack, stcp_ack)                                                                                     \
	E(rate, ab_ignore)                                                                                   \
	E(idle_restart, ab_ignore)                                                                           \
	E(peer_join, ab_ignore)                                                                              \
	E(peer_leave, ab_ignore)                                                                             \
	E(release, ab_ignore)

#endif
