/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Reno: slow start and congestion avoidance of RFC 5681.
 *
 * We differ in:
 *  - ssthresh after a loss is half of the window, not of the flight (as Linux; the window is only
 *    raised while it limits the sender, so the two agree for a busy sender);
 *  - half a packet that halving leaves is kept, as RFC 5681 does and Linux does not;
 *  - the additive increase is counted in packets (section 0.1 of the algorithm reference), which is
 *    RFC 3465 byte counting for full-sized packets.
 */
#ifndef ANABRANCH_RENO_H
#define ANABRANCH_RENO_H

#include "anabranch/cc.h"

#define AB_PARAMS_reno(P)
#define AB_COLD_BYTES_reno 0

struct reno_state {
	u32 odd; /* the last halving left half a packet */
};

AB_INLINE u32 reno_loss(const struct ab_cc *cc)
{
	return ab_half_exactly(cc, &((struct reno_state *)cc->state)->odd);
}

AB_INLINE void reno_rto(const struct ab_cc *cc)
{
	((struct reno_state *)cc->state)->odd = 0;
}

AB_INLINE void reno_recovery_exit(const struct ab_cc *cc)
{
	ab_restore_half(cc, &((struct reno_state *)cc->state)->odd);
}

AB_INLINE void reno_ack(const struct ab_cc *cc)
{
	u32 cwnd, cnt = cc->view->cwnd_cnt, acked;

	if (!ab_after_slow_start(cc, &cwnd, &acked))
		return;
	ab_additive_increase(&cwnd, &cnt, cwnd, acked);
	ab_set_cwnd(cc, cwnd);
	ab_set_cwnd_cnt(cc, cnt);
}

#define AB_EVENTS_reno(E)                                                                                    \
	E(init, ab_ignore)                                                                                   \
	E(rtt_sample, ab_ignore)                                                                             \
	E(loss, reno_loss)                                                                                   \
	E(rto, reno_rto)                                                                                     \
	E(recovery_exit, reno_recovery_exit)                                                                 \
	E(undo, ab_undo_to_prior)                                                                            \
	E(ecn, ab_ignore)                                                                                    \
	E(ack, reno_ack)                                                                                     \
	E(rate, ab_ignore)                                                                                   \
	E(idle_restart, ab_ignore)                                                                           \
	E(peer_join, ab_ignore)                                                                              \
	E(peer_leave, ab_ignore)                                                                             \
	E(release, ab_ignore)

#endif
