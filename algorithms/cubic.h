/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * CUBIC (RFC 9438; Ha, Rhee, Xu 2008), in the integer form that Linux made known: time in 1/1024 s, C = 410 /
 * 1024, one packet of growth per `cwnd / (target - cwnd)` packets acknowledged.
 *
 * With t the time since the epoch began, K = cbrt((W_max - cwnd) / C) and W_cubic(t) = C (t - K)^3 + W_max,
 * the window moves towards W_cubic(t + rtt), by at most half of itself per round trip, and is never slower
 * than W_est, the window of an AIMD flow of the same average (RFC 9438 section 4.3).
 *
 * We differ in:
 *  - ssthresh after a loss is beta times the window, not the flight (as Linux, see reno.h);
 *  - in the Reno-friendly region the window catches up with W_est within about a round trip instead of at
 *    once;
 *  - where the target is not above the window it still grows by 1 % per round trip (as Linux; the RFC
 *    holds);
 *  - windows are whole packets. `precision = exact`, the default, has targets with 8 fraction bits; `kernel`
 * has whole ones, truncated towards W_max as in Linux (algorithm reference, G7), up to a packet more below
 * it;
 *  - rtt in W_cubic(t + rtt) is the smoothed one (RFC 9438 section 4.4), where Linux takes the minimum;
 *  - before the first loss, and until the next one after a timeout, K is 0 and the window grows by at
 *    least 5 % per round trip (Linux);
 *  - HyStart is the first version (delay and ACK train), not HyStart++ of RFC 9406.
 */
#ifndef ANABRANCH_CUBIC_H
#define ANABRANCH_CUBIC_H

#include "anabranch/cc.h"
#include "anabranch/fixedpoint.h"

enum cubic_precision { CUBIC_EXACT = 0, CUBIC_KERNEL = 1 };

#define AB_PARAMS_cubic(P)                                                                                   \
	P(beta_q10, AB_UNIT_Q10, 717, 512, 1000,                                                             \
	  "window kept at a loss; 0.7 in RFC 9438, 0.8 in older versions")                                   \
	P(fast_convergence, AB_UNIT_BOOL, 1, 0, 1, "release bandwidth when the maximum shrinks")             \
	P(hystart, AB_UNIT_BOOL, 1, 0, 1, "leave slow start when delay or an ACK train shows a full path")   \
	P(precision, AB_UNIT_CHOICE, CUBIC_EXACT, 0, 1,                                                      \
	  "exact|kernel: resolution of the targets, fine or that of Linux")
#define AB_COLD_BYTES_cubic 0

struct cubic_params {
	AB_PARAMS_cubic(AB_PARAM_FIELD)
};

#define CUBIC_C                    410u          /* 0.4 * 1024 */
#define CUBIC_K_FACTOR             2681735677ull /* 2^40 / 410 */
#define CUBIC_OFFSET_MAX           (1u << 18)    /* 256 s: 410 * 2^54 < 2^63 */
#define CUBIC_WINDOW_MAX           (1u << 30)
#define CUBIC_PER_MAX              (1u << 31) /* so that a counter below it plus an ACK fits u32 */
#define CUBIC_HYSTART_WINDOW       16         /* packets; below it HyStart does not look */
#define CUBIC_HYSTART_SAMPLES      8
#define CUBIC_HYSTART_SPACING_US   2000 /* ACKs closer than this belong to one train */
#define CUBIC_HYSTART_DELAY_MIN_US 4000
#define CUBIC_HYSTART_DELAY_MAX_US 16000

/* A congestion-avoidance epoch: what a spurious loss brings back. */
struct cubic_epoch {
	u64 start_us; /* first ACK of the epoch; 0: none has begun (no ACK arrives at time 0) */
	u32 w_max;    /* packets; 0: no loss since the beginning or the last timeout */
	u32 k;        /* 1/1024 s */
	u32 origin;   /* the plateau: w_max, or the window the epoch began with if that is larger */
	u32 w_est;    /* packets */
};

struct cubic_state {
	struct cubic_epoch epoch;
	struct cubic_epoch before_loss;
	u64 last_ack_us;
	u64 hystart_round_us; /* when the round began */
	u64 hystart_train_us; /* last ACK of its train */
	u32 est_acked;        /* packets acknowledged towards the next step of w_est */
	u32 hystart_rtt_us;   /* smallest sample of the round */
	u8 hystart_samples;
};

/*
 * K in 1/1024 s for a window `below` packets under the plateau: K^3 = below / C. 2681735677 * (2^32 - 1) <
 * 1.2e19 < 2^64.
 */
AB_INLINE u32 cubic_k(u32 below)
{
	return ab_cube_root(CUBIC_K_FACTOR * below);
}

/*
 * W_cubic(t) with 8 fraction bits, for t and k in 1/1024 s: 0.4 * (offset / 1024)^3 = 410 * offset^3 / 2^40
 * packets from the origin. offset <= 2^18, so the product is below 2^63 and the distance below 2^31.
 */
AB_INLINE u64 cubic_window_q8(u32 origin, u32 k, u32 t, u32 precision)
{
	u64 offset = ab_min_u32(t < k ? k - t : t - k, CUBIC_OFFSET_MAX);
	u64 delta_q8 = CUBIC_C * offset * offset * offset >> 32, origin_q8 = (u64)origin << 8;

	if (precision == CUBIC_KERNEL)
		delta_q8 = delta_q8 >> 8 << 8;
	if (t < k)
		return delta_q8 < origin_q8 ? origin_q8 - delta_q8 : 0;
	return origin_q8 + delta_q8;
}

/* W_max after a loss at `cwnd` (RFC 9438 section 4.7). */
AB_INLINE u32 cubic_w_max(u32 cwnd, u32 w_max, u32 beta_q10, u32 fast_convergence)
{
	if (fast_convergence && cwnd < w_max)
		return (u32)((u64)cwnd * (1024 + beta_q10) / 2048);
	return cwnd;
}

/* Packets to acknowledge per packet of W_est: cwnd / alpha_cubic, alpha_cubic = 3 (1 - beta) / (1 + beta). */
AB_INLINE u64 cubic_est_per(u32 cwnd, u32 beta_q10)
{
	u32 scale_q3 = 8 * (1024 + beta_q10) / 3 / (1024 - beta_q10); /* 15 at 0.7 */

	return ab_max_u64((u64)cwnd * scale_q3 >> 3, 1);
}

AB_INLINE void cubic_begin_epoch(const struct ab_cc *cc, struct cubic_state *s, u32 cwnd)
{
	struct cubic_epoch *e = &s->epoch;

	e->start_us = cc->view->now_us;
	e->w_est = cwnd;
	s->est_acked = 0;
	if (e->w_max > cwnd) {
		e->k = cubic_k(e->w_max - cwnd);
		e->origin = e->w_max;
	} else {
		e->k = 0;
		e->origin = cwnd;
	}
}

/* Advances W_est by `acked` packets (RFC 9438 section 4.3; Reno's pace once it is back at prior_cwnd). */
AB_INLINE void cubic_estimate(const struct ab_cc *cc, struct cubic_state *s, u32 cwnd, u32 beta_q10,
			      u32 acked)
{
	u32 prior_cwnd = cc->view->prior_cwnd;
	u64 per = cubic_est_per(cwnd, beta_q10), count = (u64)s->est_acked + acked;

	if (prior_cwnd && s->epoch.w_est >= prior_cwnd)
		per = cwnd;
	s->epoch.w_est = (u32)ab_min_u64(s->epoch.w_est + count / per, CUBIC_WINDOW_MAX);
	s->est_acked = (u32)ab_min_u64(count % per, AB_U32_MAX);
}

/* Packets to acknowledge for one more packet of window. */
AB_INLINE u32 cubic_per(const struct ab_cc *cc, const struct cubic_state *s, u32 cwnd, u32 precision)
{
	const struct cubic_epoch *e = &s->epoch;
	u64 elapsed_us = cc->view->now_us - e->start_us + (cc->view->srtt8_us >> 3);
	u32 t = (u32)ab_min_u64((elapsed_us << 10) / 1000000, 1u << 30);
	u64 target_q8 = cubic_window_q8(e->origin, e->k, t, precision), cwnd_q8 = (u64)cwnd << 8;
	u64 per = target_q8 > cwnd_q8 ? cwnd_q8 / (target_q8 - cwnd_q8) : 100 * (u64)cwnd;

	if (!e->w_max)
		per = ab_min_u64(per, 20);
	if (e->w_est > cwnd)
		per = ab_min_u64(per, cwnd / (e->w_est - cwnd));
	return (u32)ab_min_u64(ab_max_u64(per, 2), CUBIC_PER_MAX);
}

AB_INLINE void cubic_hystart_round(const struct ab_cc *cc, struct cubic_state *s)
{
	s->hystart_round_us = cc->view->now_us;
	s->hystart_train_us = cc->view->now_us;
	s->hystart_rtt_us = AB_U32_MAX;
	s->hystart_samples = 0;
}

/* HyStart: does this sample show that the path is full? `base_us` is the smallest RTT of the path. */
AB_INLINE int cubic_hystart_full(const struct ab_cc *cc, struct cubic_state *s, u32 base_us)
{
	const struct ab_view *v = cc->view;
	u32 margin_us = ab_max_u32(base_us / 8, CUBIC_HYSTART_DELAY_MIN_US);

	if (v->now_us - s->hystart_train_us <= CUBIC_HYSTART_SPACING_US) {
		s->hystart_train_us = v->now_us;
		if (v->now_us - s->hystart_round_us > base_us / 2)
			return 1;
	}
	margin_us = ab_min_u32(margin_us, CUBIC_HYSTART_DELAY_MAX_US);
	if (s->hystart_samples < CUBIC_HYSTART_SAMPLES) {
		s->hystart_samples++;
		s->hystart_rtt_us = ab_min_u32(s->hystart_rtt_us, v->rtt_us);
	}
	return s->hystart_samples == CUBIC_HYSTART_SAMPLES && s->hystart_rtt_us > (u64)base_us + margin_us;
}

AB_INLINE void cubic_rtt_sample(const struct ab_cc *cc)
{
	const struct cubic_params *p = (const struct cubic_params *)cc->params;
	struct cubic_state *s = (struct cubic_state *)cc->state;
	const struct ab_view *v = cc->view;

	if (!p->hystart || !ab_in_slow_start(v))
		return;
	if (v->round_start || !s->hystart_round_us)
		cubic_hystart_round(cc, s);
	if (v->cwnd >= CUBIC_HYSTART_WINDOW && cubic_hystart_full(cc, s, v->min_rtt_us))
		ab_set_ssthresh(cc, v->cwnd);
}

AB_INLINE void cubic_ack(const struct ab_cc *cc)
{
	const struct cubic_params *p = (const struct cubic_params *)cc->params;
	struct cubic_state *s = (struct cubic_state *)cc->state;
	const struct ab_view *v = cc->view;
	u32 cwnd, cnt = v->cwnd_cnt, acked;
	u64 since_ack_us = v->now_us - s->last_ack_us;

	s->last_ack_us = v->now_us;
	if (v->round_start && !v->rtt_valid)
		cubic_hystart_round(cc, s);
	if (!v->cwnd_limited) {
		/* Time without use of the window is no time of the epoch (RFC 9438 section 4.2). */
		if (s->epoch.start_us)
			s->epoch.start_us = ab_min_u64(s->epoch.start_us + since_ack_us, v->now_us);
		return;
	}
	if (!ab_after_slow_start(cc, &cwnd, &acked))
		return;
	if (!s->epoch.start_us)
		cubic_begin_epoch(cc, s, cwnd);
	cubic_estimate(cc, s, cwnd, p->beta_q10, acked);
	ab_additive_increase(&cwnd, &cnt, cubic_per(cc, s, cwnd, p->precision), acked);
	ab_set_cwnd(cc, cwnd);
	ab_set_cwnd_cnt(cc, cnt);
}

AB_INLINE u32 cubic_loss(const struct ab_cc *cc)
{
	const struct cubic_params *p = (const struct cubic_params *)cc->params;
	struct cubic_state *s = (struct cubic_state *)cc->state;
	u32 cwnd = cc->view->cwnd;

	s->before_loss = s->epoch;
	s->epoch.w_max = cubic_w_max(cwnd, s->epoch.w_max, p->beta_q10, p->fast_convergence);
	s->epoch.start_us = 0;
	return ab_max_u32((u32)((u64)cwnd * p->beta_q10 >> 10), 2);
}

/* RFC 9438 section 4.8: the first epoch after a timeout begins on its own plateau. */
AB_INLINE void cubic_rto(const struct ab_cc *cc)
{
	struct cubic_state *s = (struct cubic_state *)cc->state;

	s->epoch.w_max = 0;
	s->epoch.start_us = 0;
	cubic_hystart_round(cc, s);
}

/* RFC 9438 section 4.9: everything as before the loss. */
AB_INLINE u32 cubic_undo(const struct ab_cc *cc)
{
	struct cubic_state *s = (struct cubic_state *)cc->state;

	s->epoch = s->before_loss;
	return ab_undo_to_prior(cc);
}

AB_INLINE void cubic_idle_restart(const struct ab_cc *cc)
{
	struct cubic_state *s = (struct cubic_state *)cc->state;

	if (s->epoch.start_us)
		s->epoch.start_us = ab_min_u64(s->epoch.start_us + cc->view->idle_us, cc->view->now_us);
	s->last_ack_us = cc->view->now_us;
}

#define AB_EVENTS_cubic(E)                                                                                   \
	E(init, ab_ignore)                                                                                   \
	E(rtt_sample, cubic_rtt_sample)                                                                      \
	E(loss, cubic_loss)                                                                                  \
	E(rto, cubic_rto)                                                                                    \
	E(recovery_exit, ab_ignore)                                                                          \
	E(undo, cubic_undo)                                                                                  \
	E(ecn, ab_ignore)                                                                                    \
	E(ack, cubic_ack)                                                                                    \
	E(rate, ab_ignore)                                                                                   \
	E(idle_restart, cubic_idle_restart)                                                                  \
	E(peer_join, ab_ignore)                                                                              \
	E(peer_leave, ab_ignore)                                                                             \
	E(release, ab_ignore)

#endif
