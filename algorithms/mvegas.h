/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * MVegas, the modified Vegas of the MFVL paper (Electronics 2021, 10:711, section 3.1, equations (1)-(11),
 * table 5).
 *
 * Vegas as in ns-2 (vegas.h) whose band moves: the window grows while diff < alpha + a and shrinks while
 * diff > beta + b, with phi = previous diff / diff,
 *   growing:   a = min(k alpha, a + phi), b = min(beta, b + phi)
 *   shrinking: b = max(alpha + 1, b - phi)
 * a is never reduced, so it stays at k alpha after the first increases. With the defaults the band moves
 * between [2, 5] and [3, 6] packets.
 *
 * Readings taken:
 *  - diff is in packets (the printed equation gives a rate; the text compares it with packets in queues);
 *  - the sign lost in equation (11) is a minus; `beta_dec = mul` reads it as a product, b phi, at most
 *    beta;
 *  - phi is 1 in the first round and where diff and the previous diff are both 0, k alpha where only diff
 *    is 0, and never above 8;
 *  - a and b are added to in every increasing round, whether phi is above 1 or not (equations over
 *    prose);
 *  - they begin at their lower limits, alpha and alpha + 1 (1 and 2 in the paper), again after a timeout.
 *
 * a, b, diff and phi have 8 fraction bits (algorithm reference, G5). Everything else is vegas.h, ns2 variant.
 */
#ifndef ANABRANCH_MVEGAS_H
#define ANABRANCH_MVEGAS_H

#include "vegas.h"

enum mvegas_beta_dec { MVEGAS_SUB = 0, MVEGAS_MUL = 1 };

#define AB_PARAMS_mvegas(P)                                                                                  \
	P(alpha, AB_UNIT_PACKETS, 1, 1, 1000, "lower edge of the band without its moving part")              \
	P(beta, AB_UNIT_PACKETS, 3, 1, 1000, "upper edge of the band without its moving part")               \
	P(gamma, AB_UNIT_PACKETS, 1, 1, 1000, "leave slow start above this many queued packets")             \
	P(k, AB_UNIT_COUNT, 2, 1, 100, "the moving part of the lower edge is at most k alpha")               \
	P(beta_dec, AB_UNIT_CHOICE, MVEGAS_SUB, 0, 1,                                                        \
	  "sub|mul: how phi lowers the upper edge, by difference or product")
#define AB_COLD_BYTES_mvegas 0

struct mvegas_params {
	AB_PARAMS_mvegas(AB_PARAM_FIELD)
};

#define MVEGAS_ONE_Q8     256u
#define MVEGAS_PHI_MAX_Q8 (8 * MVEGAS_ONE_Q8)

struct mvegas_state {
	struct vegas_state vegas;
	u32 a_q8;
	u32 b_q8;
	u32 diff_prev_q8;
	u8 has_prev;
};

AB_INLINE void mvegas_reset_band(struct mvegas_state *s, const struct mvegas_params *p)
{
	s->a_q8 = p->alpha << 8;
	s->b_q8 = (p->alpha + 1) << 8;
	s->diff_prev_q8 = 0;
	s->has_prev = 0;
}

/* Change of congestion from one round to the next; above 1: it went down. diff < 2^32, so << 8 fits u64. */
AB_INLINE u32 mvegas_phi_q8(const struct mvegas_state *s, const struct mvegas_params *p, u32 diff_q8)
{
	u64 phi_q8 = MVEGAS_ONE_Q8;

	if (s->has_prev && diff_q8)
		phi_q8 = ((u64)s->diff_prev_q8 << 8) / diff_q8;
	else if (s->has_prev && s->diff_prev_q8)
		phi_q8 = (u64)(p->k * p->alpha) << 8;
	return (u32)ab_min_u64(phi_q8, MVEGAS_PHI_MAX_Q8);
}

/* Lowers b. b <= 1001 << 8 and phi <= 8 << 8, so the product fits u32. */
AB_INLINE u32 mvegas_lowered_b_q8(u32 b_q8, u32 phi_q8, const struct mvegas_params *p)
{
	u32 floor_q8 = (p->alpha + 1) << 8;

	if (p->beta_dec == MVEGAS_MUL)
		return ab_max_u32(floor_q8, ab_min_u32(p->beta << 8, b_q8 * phi_q8 >> 8));
	return ab_max_u32(floor_q8, b_q8 > phi_q8 ? b_q8 - phi_q8 : 0);
}

/* The decision of a round of congestion avoidance (G5); moves the band. */
AB_INLINE u32 mvegas_step(struct mvegas_state *s, const struct mvegas_params *p, u32 diff_q8)
{
	u32 phi_q8 = mvegas_phi_q8(s, p, diff_q8), step = VEGAS_HOLD;

	if (diff_q8 < (p->alpha << 8) + s->a_q8) {
		step = VEGAS_UP;
		s->a_q8 = ab_min_u32(p->k * p->alpha << 8, s->a_q8 + phi_q8);
		s->b_q8 = ab_min_u32(p->beta << 8, s->b_q8 + phi_q8);
	} else if (diff_q8 > (p->beta << 8) + s->b_q8) {
		step = VEGAS_DOWN;
		s->b_q8 = mvegas_lowered_b_q8(s->b_q8, phi_q8, p);
	}
	s->diff_prev_q8 = diff_q8;
	s->has_prev = 1;
	return step;
}

AB_INLINE void mvegas_start(struct mvegas_state *s, const struct mvegas_params *p, u32 base_rtt_us)
{
	vegas_start(&s->vegas, base_rtt_us);
	mvegas_reset_band(s, p);
}

AB_INLINE void mvegas_grow(const struct ab_cc *cc, struct mvegas_state *s, const struct mvegas_params *p)
{
	struct vegas_window w = {cc->view->cwnd, cc->view->ssthresh};
	u32 rtt_us = vegas_round_mean_us(cc, &s->vegas), diff_q8;

	if (rtt_us) {
		diff_q8 = vegas_diff_q8(w.cwnd, s->vegas.base_rtt_us, rtt_us);
		if (w.cwnd < w.ssthresh)
			vegas_decide_slow_start(&s->vegas, &w, p->gamma, diff_q8);
		else
			vegas_decide(&s->vegas, &w, mvegas_step(s, p, diff_q8));
	}
	vegas_advance(cc, &s->vegas, &w);
}

AB_INLINE void mvegas_restart(const struct ab_cc *cc, struct mvegas_state *s, const struct mvegas_params *p)
{
	vegas_restart(cc, &s->vegas);
	mvegas_reset_band(s, p);
}

AB_INLINE void mvegas_init(const struct ab_cc *cc)
{
	mvegas_start((struct mvegas_state *)cc->state, (const struct mvegas_params *)cc->params, 0);
}

AB_INLINE void mvegas_rtt_sample(const struct ab_cc *cc)
{
	vegas_sample(cc, &((struct mvegas_state *)cc->state)->vegas);
}

AB_INLINE void mvegas_ack(const struct ab_cc *cc)
{
	mvegas_grow(cc, (struct mvegas_state *)cc->state, (const struct mvegas_params *)cc->params);
}

AB_INLINE u32 mvegas_loss(const struct ab_cc *cc)
{
	return vegas_reduce(cc, &((struct mvegas_state *)cc->state)->vegas);
}

AB_INLINE void mvegas_rto(const struct ab_cc *cc)
{
	mvegas_restart(cc, (struct mvegas_state *)cc->state, (const struct mvegas_params *)cc->params);
}

AB_INLINE void mvegas_forget_round(const struct ab_cc *cc)
{
	vegas_new_round(&((struct mvegas_state *)cc->state)->vegas);
}

#define AB_EVENTS_mvegas(E)                                                                                  \
	E(init, mvegas_init)                                                                                 \
	E(rtt_sample, mvegas_rtt_sample)                                                                     \
	E(loss, mvegas_loss)                                                                                 \
	E(rto, mvegas_rto)                                                                                   \
	E(recovery_exit, mvegas_forget_round)                                                                \
	E(undo, ab_undo_to_prior)                                                                            \
	E(ecn, ab_ignore)                                                                                    \
	E(ack, mvegas_ack)                                                                                   \
	E(rate, ab_ignore)                                                                                   \
	E(idle_restart, mvegas_forget_round)                                                                 \
	E(peer_join, ab_ignore)                                                                              \
	E(peer_leave, ab_ignore)                                                                             \
	E(release, ab_ignore)

#endif
