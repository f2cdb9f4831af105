/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * D-LIA, the dynamic LIA (Lubna, Mahmud, Cho, ICT Express 2020; definition as in the authors' module).
 *
 * The increase is LIA's. A loss keeps the share `beta` of the window, which follows how soon it came: with
 * w' the window after the last reduction,
 *   gamma = min(1, w' / w),  beta <- clamp(gamma / 4 + 3 beta / 4, 0.5, 0.9),  w <- max(beta w, 2).
 * Losses close together have gamma near 1 and cut less, losses far apart halve. Shares are whole percent,
 * divisions whole numbers, as in that module.
 *
 * We differ in:
 *  - a subflow that has never had a peer is Reno to the packet. The module asks whether the socket is plain
 *    TCP; the contract does not tell plain TCP from a connection with one subflow. Whoever has had a peer
 *    keeps the adaptive decrease when alone;
 *  - the increase is ours of LIA (lia.h), `precision` included.
 */
#ifndef ANABRANCH_DLIA_H
#define ANABRANCH_DLIA_H

#include "lia.h"

#define AB_PARAMS_dlia(P)                                                                                    \
	P(precision, AB_UNIT_CHOICE, LIA_EXACT, 0, 1,                                                        \
	  "exact|kernel: resolution of the increase, fine or that of the multipath kernel")
#define AB_COLD_BYTES_dlia 0

struct dlia_params {
	AB_PARAMS_dlia(AB_PARAM_FIELD)
};

#define DLIA_BETA_MIN   50u
#define DLIA_BETA_MAX   90u
#define DLIA_CWND_FIRST 2u /* w' before the first loss */

struct dlia_state {
	struct lia_state lia;
	u32 beta_percent; /* share of the window that the last loss left */
	u32 cwnd_reduced; /* w', the window after it */
	u32 had_peers;
};

/* beta after a loss at `cwnd`. 100 * 2^30 needs 37 bits. */
AB_INLINE u32 dlia_beta_percent(u32 beta_percent, u32 cwnd_reduced, u32 cwnd)
{
	u32 gamma = (u32)ab_min_u64((u64)100 * cwnd_reduced / ab_max_u32(cwnd, 1), 100);

	return ab_min_u32(ab_max_u32((25 * gamma + 75 * beta_percent) / 100, DLIA_BETA_MIN), DLIA_BETA_MAX);
}

AB_INLINE void dlia_init(const struct ab_cc *cc)
{
	struct dlia_state *s = (struct dlia_state *)cc->state;

	s->beta_percent = DLIA_BETA_MIN;
	s->cwnd_reduced = DLIA_CWND_FIRST;
}

AB_INLINE void dlia_ack(const struct ab_cc *cc)
{
	const struct dlia_params *p = (const struct dlia_params *)cc->params;

	lia_grow(cc, &((struct dlia_state *)cc->state)->lia, ab_coupled_members(cc), p->precision);
}

AB_INLINE u32 dlia_loss(const struct ab_cc *cc)
{
	struct dlia_state *s = (struct dlia_state *)cc->state;
	u32 cwnd = cc->view->cwnd;

	if (ab_several(ab_coupled_members(cc)))
		s->had_peers = 1;
	if (!s->had_peers)
		return ab_half_exactly(cc, &s->lia.odd);
	s->lia.odd = 0;
	s->beta_percent = dlia_beta_percent(s->beta_percent, s->cwnd_reduced, cwnd);
	s->cwnd_reduced = ab_max_u32((u32)((u64)s->beta_percent * cwnd / 100), DLIA_CWND_FIRST);
	return s->cwnd_reduced;
}

AB_INLINE void dlia_rto(const struct ab_cc *cc)
{
	struct dlia_state *s = (struct dlia_state *)cc->state;

	s->lia.odd = 0;
	s->lia.a_q12 = 0;
}

AB_INLINE void dlia_recovery_exit(const struct ab_cc *cc)
{
	struct dlia_state *s = (struct dlia_state *)cc->state;

	ab_restore_half(cc, &s->lia.odd);
	s->lia.a_q12 = 0;
}

AB_INLINE void dlia_peer_join(const struct ab_cc *cc)
{
	struct dlia_state *s = (struct dlia_state *)cc->state;

	s->had_peers = 1;
	s->lia.a_q12 = 0;
}

AB_INLINE void dlia_peer_leave(const struct ab_cc *cc)
{
	((struct dlia_state *)cc->state)->lia.a_q12 = 0;
}

#define AB_EVENTS_dlia(E)                                                                                    \
	E(init, dlia_init)                                                                                   \
	E(rtt_sample, ab_ignore)                                                                             \
	E(loss, dlia_loss)                                                                                   \
	E(rto, dlia_rto)                                                                                     \
	E(recovery_exit, dlia_recovery_exit)                                                                 \
	E(undo, ab_undo_to_prior)                                                                            \
	E(ecn, ab_ignore)                                                                                    \
	E(ack, dlia_ack)                                                                                     \
	E(rate, ab_ignore)                                                                                   \
	E(idle_restart, ab_ignore)                                                                           \
	E(peer_join, dlia_peer_join)                                                                         \
	E(peer_leave, dlia_peer_leave)                                                                       \
	E(release, ab_ignore)

#endif
