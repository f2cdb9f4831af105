/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * FAST TCP (Jin, Wei, Low, INFOCOM 2004):
 *   w <- min{2w, (1 - gamma) w + gamma (base / avg * w_old + alpha)},
 * with base the smallest RTT, avg its exponential average and w_old the window one round trip ago. In
 * equilibrium alpha packets of the flow are queued. Windows have 10 fraction bits (algorithm reference, G6);
 * the window the host sees is the integer part, and the fraction stays for the next update.
 *
 * Phases: slow start, left when more than ss_exit packets are queued; then, while avg - base < mi_threshold,
 * multiplicative increase, one packet per packet acknowledged; else the equation. It is evaluated at the
 * beginning of every other round; the change is spread over that round in steps at least update_interval
 * apart, and the window rests in the next round.
 *
 * Readings taken:
 *  - w_old is the window at the start of the round that ends, an approximation of the packets in flight
 *    when the packet now acknowledged was sent;
 *  - `smoothing = ns2` averages over max(256, w / 3) samples, `paper` over max(4, w / 3);
 *  - ss_exit is given nowhere; 1 packet, as Vegas. Little hangs on it: the increase that follows is as
 *    fast;
 *  - `beta` (ns-2): with more than alpha and fewer than beta packets queued the window rests. 0, the
 *    default, means alpha: no such zone;
 *  - after a loss or a timeout the equation starts anew from the reduced window;
 *  - an increase needs a window that limits the sender; a decrease does not.
 *
 * We differ in: ssthresh follows the window down, so that a decrease is not taken for slow start; RTTs
 * above 16.7 s count as 16.7 s.
 */
#ifndef ANABRANCH_FAST_H
#define ANABRANCH_FAST_H

#include "anabranch/cc.h"
#include "anabranch/fixedpoint.h"

enum fast_smoothing { FAST_SMOOTH_NS2 = 0, FAST_SMOOTH_PAPER = 1 };

#define AB_PARAMS_fast(P)                                                                                    \
	P(alpha, AB_UNIT_PACKETS, 100, 1, 100000, "packets to keep in queues")                               \
	P(beta, AB_UNIT_PACKETS, 0, 0, 100000,                                                               \
	  "rest while the queue is between alpha and beta; 0: no such zone")                                 \
	P(gamma_q10, AB_UNIT_Q10, 512, 1, 1024, "step size of an update")                                    \
	P(mi_threshold_us, AB_UNIT_US, 750, 0, 1000000, "multiplicative increase below this queueing delay") \
	P(update_interval_us, AB_UNIT_US, 10000, 0, 1000000, "at least this long between two steps")         \
	P(ss_exit, AB_UNIT_PACKETS, 1, 1, 100000, "leave slow start above this many queued packets")         \
	P(smoothing, AB_UNIT_CHOICE, FAST_SMOOTH_NS2, 0, 1,                                                  \
	  "ns2|paper: weight of a sample in the average RTT")
#define AB_COLD_BYTES_fast 0

struct fast_params {
	AB_PARAMS_fast(AB_PARAM_FIELD)
};

#define FAST_CWND_MIN   2u
#define FAST_CWND_MAX   (1u << 20) /* a larger window is not changed by the equation */
#define FAST_RTT_MAX_US ((1u << 24) - 1)

/* What distinguishes FAST from its relatives. */
struct fast_tuning {
	u32 alpha, beta, gamma_q10, sigma_q10, mi_threshold_us, update_interval_us, ss_exit;
};

struct fast_state {
	u64 avg_rtt_q8;   /* microseconds << 8; 0: no sample yet */
	u64 update_us;    /* when the current or last update round began */
	u64 step_us;      /* last step of it */
	u32 base_rtt_us;  /* 0: no sample yet */
	u32 cwnd_q10;     /* the window with its fraction */
	u32 from_q10;     /* an update goes from here */
	u32 target_q10;   /* to here */
	u32 round_q10;    /* the window at the start of this round */
	u32 cwnd_at_loss; /* 0: no loss yet */
	u8 updating;      /* this round's window moves; else it rests */
};

/*
 * The update (G6). w, w_old <= 2^30, base_q8 <= avg_q8 < 2^32: w_old * base_q8 < 2^62. The sum in brackets is
 * below 2^30 + 2^27, times 1024 still fits.
 */
AB_INLINE u32 fast_equation_q10(const struct fast_tuning *t, u32 w_q10, u32 old_q10, u32 base_us, u64 avg_q8)
{
	u64 base_q8 = ab_min_u64((u64)base_us << 8, avg_q8);
	u64 bracket_q10 = old_q10 * base_q8 / avg_q8 + ((u64)t->alpha << 10);
	u64 scaled_q10 = ((u64)t->sigma_q10 * t->gamma_q10 >> 10) * bracket_q10 >> 10;
	u64 next_q10 = ((u64)(1024 - t->gamma_q10) * w_q10 >> 10) + scaled_q10;

	return (u32)ab_max_u64(ab_min_u64(next_q10, 2 * (u64)w_q10), FAST_CWND_MIN << 10);
}

/* Queueing delay of the averaged RTT, microseconds << 8. */
AB_INLINE u64 fast_delay_q8(const struct fast_state *s)
{
	u64 base_q8 = (u64)s->base_rtt_us << 8;

	return s->avg_rtt_q8 > base_q8 ? s->avg_rtt_q8 - base_q8 : 0;
}

AB_INLINE void fast_start(struct fast_state *s, u32 base_rtt_us)
{
	s->avg_rtt_q8 = 0;
	s->update_us = 0;
	s->step_us = 0;
	s->base_rtt_us = base_rtt_us;
	s->cwnd_q10 = 0;
	s->round_q10 = 0;
	s->cwnd_at_loss = 0;
	s->updating = 0;
}

AB_INLINE void fast_sample(const struct ab_cc *cc, struct fast_state *s, u32 smoothing)
{
	u32 rtt_us = ab_min_u32(ab_max_u32(cc->view->rtt_us, 1), FAST_RTT_MAX_US);
	u32 weight = ab_max_u32(cc->view->cwnd / 3, smoothing == FAST_SMOOTH_PAPER ? 4 : 256);

	if (!s->base_rtt_us || rtt_us < s->base_rtt_us)
		s->base_rtt_us = rtt_us;
	if (!s->avg_rtt_q8)
		s->avg_rtt_q8 = (u64)rtt_us << 8;
	s->avg_rtt_q8 = ab_ewma(s->avg_rtt_q8, (u64)rtt_us << 8, weight);
}

/* Does the newest sample show more than `packets` in queues? W * rtt < 2^64 for every window and RTT. */
AB_INLINE int fast_queues(const struct ab_cc *cc, const struct fast_state *s, u32 packets)
{
	const struct ab_view *v = cc->view;

	return v->rtt_valid && v->rtt_us > s->base_rtt_us &&
	       (u64)v->cwnd * (v->rtt_us - s->base_rtt_us) > (u64)packets * v->rtt_us;
}

/* Does ns-2's rule let the equation act? It rests with alpha <= queued packets < beta. */
AB_INLINE int fast_acts(const struct fast_tuning *t, const struct fast_state *s, u32 old_q10)
{
	u64 queued_q10 = old_q10 * fast_delay_q8(s) / s->avg_rtt_q8;

	return queued_q10 < (u64)t->alpha << 10 || queued_q10 >= (u64)t->beta << 10;
}

/* A round begins in the equation phase: finish an update and rest, or begin one. */
AB_INLINE void fast_begin_round(const struct ab_cc *cc, struct fast_state *s, const struct fast_tuning *t,
				u32 old_q10)
{
	const struct ab_view *v = cc->view;

	if (s->updating) {
		if (v->cwnd_limited || s->target_q10 < s->cwnd_q10)
			s->cwnd_q10 = s->target_q10;
		s->updating = 0;
	} else if (v->now_us - s->update_us >= t->update_interval_us && fast_acts(t, s, old_q10)) {
		s->updating = 1;
		s->update_us = v->now_us;
		s->step_us = v->now_us;
		s->from_q10 = s->cwnd_q10;
		s->target_q10 = fast_equation_q10(t, s->cwnd_q10, old_q10, s->base_rtt_us, s->avg_rtt_q8);
	}
}

/* A step of an update: the part of the way that the elapsed part of the round trip stands for. */
AB_INLINE void fast_advance(const struct ab_cc *cc, struct fast_state *s, const struct fast_tuning *t)
{
	const struct ab_view *v = cc->view;
	u64 round_us = ab_max_u64(s->avg_rtt_q8 >> 8, 1), elapsed_us = v->now_us - s->update_us;
	int up = s->target_q10 > s->from_q10;
	u64 way_q10 = up ? s->target_q10 - s->from_q10 : s->from_q10 - s->target_q10;

	if (v->now_us - s->step_us < t->update_interval_us || (up && !v->cwnd_limited))
		return;
	s->step_us = v->now_us;
	way_q10 = way_q10 * ab_min_u64(elapsed_us, round_us) / round_us; /* 2^31 * 2^24 < 2^64 */
	s->cwnd_q10 = up ? s->from_q10 + (u32)way_q10 : s->from_q10 - (u32)way_q10;
}

/* Slow start and multiplicative increase, one ACK. */
AB_INLINE void fast_multiply(const struct ab_cc *cc, struct fast_state *s)
{
	const struct ab_view *v = cc->view;
	u32 ceiling = ab_in_slow_start(v) ? v->ssthresh : FAST_CWND_MAX;

	s->updating = 0;
	if (!v->cwnd_limited)
		return;
	s->cwnd_q10 = ab_min_u32(ab_min_u32(v->cwnd + v->acked, ceiling), FAST_CWND_MAX) << 10;
	ab_set_cwnd(cc, s->cwnd_q10 >> 10);
}

/* The equation phase, one ACK; old_q10: the window one round ago. */
AB_INLINE void fast_follow(const struct ab_cc *cc, struct fast_state *s, const struct fast_tuning *t,
			   u32 old_q10)
{
	u32 cwnd;

	if (cc->view->round_start)
		fast_begin_round(cc, s, t, old_q10);
	else if (s->updating)
		fast_advance(cc, s, t);
	cwnd = s->cwnd_q10 >> 10;
	ab_set_cwnd(cc, cwnd);
	ab_set_ssthresh(cc, ab_min_u32(cc->view->ssthresh, cwnd));
}

/* One ACK. */
AB_INLINE void fast_grow(const struct ab_cc *cc, struct fast_state *s, const struct fast_tuning *t)
{
	const struct ab_view *v = cc->view;
	u32 old_q10;

	if (!s->avg_rtt_q8 || v->cwnd > FAST_CWND_MAX)
		return;
	if (s->cwnd_q10 >> 10 != v->cwnd) { /* the host has moved the window */
		s->cwnd_q10 = v->cwnd << 10;
		s->updating = 0;
	}
	old_q10 = s->round_q10 ? s->round_q10 : s->cwnd_q10;
	if (ab_in_slow_start(v) && fast_queues(cc, s, t->ss_exit))
		ab_set_ssthresh(cc, v->cwnd);
	else if (ab_in_slow_start(v) || fast_delay_q8(s) < (u64)t->mi_threshold_us << 8)
		fast_multiply(cc, s);
	else
		fast_follow(cc, s, t, old_q10);
	if (v->round_start)
		s->round_q10 = s->cwnd_q10;
}

AB_INLINE u32 fast_reduce(const struct ab_cc *cc, struct fast_state *s)
{
	s->cwnd_at_loss = cc->view->cwnd;
	return ab_half_cwnd(cc);
}

/* The window has been reduced: no update is under way and there is no older window. */
AB_INLINE void fast_settle(struct fast_state *s)
{
	s->updating = 0;
	s->round_q10 = 0;
}

/* Timeout: slow start from 2 up to half of the window before the loss. */
AB_INLINE void fast_restart(const struct ab_cc *cc, struct fast_state *s)
{
	if (s->cwnd_at_loss)
		ab_set_ssthresh(cc, ab_max_u32(s->cwnd_at_loss / 2, FAST_CWND_MIN));
	ab_set_cwnd(cc, FAST_CWND_MIN);
	fast_settle(s);
}

AB_INLINE void fast_init(const struct ab_cc *cc)
{
	fast_start((struct fast_state *)cc->state, 0);
}

AB_INLINE void fast_rtt_sample(const struct ab_cc *cc)
{
	const struct fast_params *p = (const struct fast_params *)cc->params;

	fast_sample(cc, (struct fast_state *)cc->state, p->smoothing);
}

AB_INLINE void fast_ack(const struct ab_cc *cc)
{
	const struct fast_params *p = (const struct fast_params *)cc->params;
	const struct fast_tuning tuning = {.alpha = p->alpha,
					   .beta = p->beta,
					   .gamma_q10 = p->gamma_q10,
					   .sigma_q10 = 1024,
					   .mi_threshold_us = p->mi_threshold_us,
					   .update_interval_us = p->update_interval_us,
					   .ss_exit = p->ss_exit};

	fast_grow(cc, (struct fast_state *)cc->state, &tuning);
}

AB_INLINE u32 fast_loss(const struct ab_cc *cc)
{
	return fast_reduce(cc, (struct fast_state *)cc->state);
}

AB_INLINE void fast_rto(const struct ab_cc *cc)
{
	fast_restart(cc, (struct fast_state *)cc->state);
}

AB_INLINE void fast_forget_update(const struct ab_cc *cc)
{
	fast_settle((struct fast_state *)cc->state);
}

#define AB_EVENTS_fast(E)                                                                                    \
	E(init, fast_init)                                                                                   \
	E(rtt_sample, fast_rtt_sample)                                                                       \
	E(loss, fast_loss)                                                                                   \
	E(rto, fast_rto)                                                                                     \
	E(recovery_exit, fast_forget_update)                                                                 \
	E(undo, ab_undo_to_prior)                                                                            \
	E(ecn, ab_ignore)                                                                                    \
	E(ack, fast_ack)                                                                                     \
	E(rate, ab_ignore)                                                                                   \
	E(idle_restart, fast_forget_update)                                                                  \
	E(peer_join, ab_ignore)                                                                              \
	E(peer_leave, ab_ignore)                                                                             \
	E(release, ab_ignore)

#endif
