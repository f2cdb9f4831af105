/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * GAIMD, general additive increase and multiplicative decrease (Yang, Lam 2000, "General AIMD Congestion
 * Control"): the window falls to b times itself at a loss and grows by
 *   a = 3 (1 - b) / (1 + b)
 * packets per round trip, with which it takes about the share of a Reno TCP, but smoother the nearer b is
 * to 1.
 *
 * We differ in: a follows the deterministic saw tooth, without the paper's term for timeouts.
 */
#ifndef ANABRANCH_GAIMD_H
#define ANABRANCH_GAIMD_H

#include "anabranch/cc.h"

#define AB_PARAMS_gaimd(P)                                                                                   \
	P(keep_permille, AB_UNIT_PERMILLE, 700, 500, 950, "part of the window that is kept at a loss, b")
#define AB_COLD_BYTES_gaimd 0

struct gaimd_params {
	AB_PARAMS_gaimd(AB_PARAM_FIELD)
};

struct gaimd_state {
	u32 unused; /* the contract wants a state; the window and its counter are all there is */
};

/* Packets to be acknowledged per increase: w / a. (2^30 * 1950) / (3 * 50) < 2^34 is cut to 32 bits. */
AB_INLINE u32 gaimd_per(u32 cwnd, u32 keep_permille)
{
	u64 per = (u64)cwnd * (1000 + keep_permille) / (3 * (1000 - keep_permille));

	return per < 0xffffffffu ? (u32)per : 0xffffffffu;
}

AB_INLINE u32 gaimd_loss(const struct ab_cc *cc)
{
	const struct gaimd_params *p = (const struct gaimd_params *)cc->params;

	return ab_max_u32((u32)((u64)cc->view->cwnd * p->keep_permille / 1000), 2);
}

AB_INLINE void gaimd_ack(const struct ab_cc *cc)
{
	const struct gaimd_params *p = (const struct gaimd_params *)cc->params;
	u32 cwnd, cnt = cc->view->cwnd_cnt, acked;

	if (!ab_after_slow_start(cc, &cwnd, &acked))
		return;
	ab_additive_increase(&cwnd, &cnt, gaimd_per(cwnd, p->keep_permille), acked);
	ab_set_cwnd(cc, cwnd);
	ab_set_cwnd_cnt(cc, cnt);
}

#define AB_EVENTS_gaimd(E)                                                                                   \
	E(init, ab_ignore)                                                                                   \
	E(rtt_sample, ab_ignore)                                                                             \
	E(loss, gaimd_loss)                                                                                  \
	E(rto, ab_ignore)                                                                                    \
	E(recovery_exit, ab_ignore)                                                                          \
	E(undo, ab_undo_to_prior)                                                                            \
	E(ecn, ab_ignore)                                                                                    \
	E(ack, gaimd_ack)                                                                                    \
	E(rate, ab_ignore)                                                                                   \
	E(idle_restart, ab_ignore)                                                                           \
	E(peer_join, ab_ignore)                                                                              \
	E(peer_leave, ab_ignore)                                                                             \
	E(release, ab_ignore)

#endif
