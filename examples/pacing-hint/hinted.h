/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Reno (RFC 5681) whose pacing rate is a hint for Linux's packet scheduler of MPTCP: an instrument, not an
 * algorithm to use.
 *
 * The scheduler `default` gives data to the subflow whose queue drains first, by its bytes in the queue over
 * its pacing rate. Linux itself paces at 1.2 times the window per round trip, twice in slow start, and
 * reckons that anew after each call of a window algorithm; so this one is of the kind that owns the rate.
 * Here the rate is that of Linux times a factor, which each of the first two subflows has of its own. A
 * factor above 1 binds nothing, for the window does; one below 1 (5/6 after slow start) also holds the
 * subflow to less than its window allows.
 *
 * Left out of Linux's Reno: proportional rate reduction; the window is ssthresh from the first packet of a
 * recovery on, so that it sends nothing until that much has left the network.
 */
#ifndef ANABRANCH_HINTED_H
#define ANABRANCH_HINTED_H

#include "anabranch/cc.h"

#define AB_PARAMS_hinted(P)                                                                                  \
	P(first_permille, AB_UNIT_PERMILLE, 1000, 10, 100000, "factor of the first subflow's pacing rate")   \
	P(second_permille, AB_UNIT_PERMILLE, 1000, 10, 100000, "factor of the second subflow's pacing rate")
#define AB_COLD_BYTES_hinted 0

#define HINTED_WINDOW_MAX (1u << 20) /* packets that count for the rate */
#define HINTED_RATE_MAX   (1ull << 36)

struct hinted_params {
	AB_PARAMS_hinted(AB_PARAM_FIELD)
};

struct hinted_state {
	u32 is_recovering;
};

/*
 * Linux's rate in bytes per second. 2^20 packets * 2^16 bytes * 8,000,000 us < 2^59, the factor of 20 tenths
 * is applied to at most 2^36.
 */
AB_INLINE u64 hinted_linux_rate(const struct ab_view *v)
{
	u64 window = (u64)ab_min_u32(v->cwnd, HINTED_WINDOW_MAX) * ab_min_u32(v->mss, 65535);
	u64 per_s = window * 8000000u / ab_max_u32(v->srtt8_us, 1);
	u64 tenths = v->cwnd < v->ssthresh / 2 ? 20 : 12;

	return (per_s < HINTED_RATE_MAX ? per_s : HINTED_RATE_MAX) * tenths / 10;
}

/* The rate is below 2^37, a factor below 2^17. */
AB_INLINE void hinted_pace(const struct ab_cc *cc)
{
	const struct hinted_params *p = (const struct hinted_params *)cc->params;
	u32 permille = 1000;

	if (!cc->view->srtt8_us)
		return;
	if (cc->view->self == 0)
		permille = p->first_permille;
	if (cc->view->self == 1)
		permille = p->second_permille;
	cc->out->pacing_bytes_per_s = hinted_linux_rate(cc->view) * permille / 1000;
	cc->out->mask |= AB_OUT_PACING;
}

AB_INLINE void hinted_rate(const struct ab_cc *cc)
{
	struct hinted_state *s = (struct hinted_state *)cc->state;
	const struct ab_view *v = cc->view;
	u32 is_recovering = v->ca_state == AB_CA_RECOVERY || v->ca_state == AB_CA_CWR;
	u32 cwnd, cnt = v->cwnd_cnt, acked;

	if (is_recovering) {
		if (!s->is_recovering)
			ab_set_cwnd(cc, ab_max_u32(v->ssthresh, 2));
	} else if (v->acked && ab_after_slow_start(cc, &cwnd, &acked)) {
		ab_additive_increase(&cwnd, &cnt, cwnd, acked);
		ab_set_cwnd(cc, cwnd);
		ab_set_cwnd_cnt(cc, cnt);
	}
	s->is_recovering = is_recovering;
	hinted_pace(cc);
}

#define AB_EVENTS_hinted(E)                                                                                  \
	E(init, ab_ignore)                                                                                   \
	E(rtt_sample, ab_ignore)                                                                             \
	E(loss, ab_half_cwnd)                                                                                \
	E(rto, ab_ignore)                                                                                    \
	E(recovery_exit, ab_ignore)                                                                          \
	E(undo, ab_undo_to_prior)                                                                            \
	E(ecn, ab_ignore)                                                                                    \
	E(ack, ab_ignore)                                                                                    \
	E(rate, hinted_rate)                                                                                 \
	E(idle_restart, ab_ignore)                                                                           \
	E(peer_join, ab_ignore)                                                                              \
	E(peer_leave, ab_ignore)                                                                             \
	E(release, ab_ignore)

#endif
