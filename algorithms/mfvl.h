/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * MFVL HCCA, the hybrid coupled congestion control of Electronics 2021, 10:711 (section 3.3, algorithm 1).
 *
 * Every subflow begins with MVegas. At the end of each period T:
 *  - subflows whose losses coincide share a bottleneck: with m and k loss events on two subflows, and
 *    `match` pairs of them less than `interval` apart, they do if match / min(m, k) > bn_thresh. They are
 *    coupled by LIA;
 *  - of the others, the one with the fewest retransmitted packets runs MFast, the rest MVegas.
 *
 * Readings taken (the ids are those of the list of paper ambiguities):
 *  - loss events (one per recovery episode) are matched one to one, at most one partner each, which is
 *    the text's "maximum number of matched pairs" (I-S0-9); `matching = all_pairs` counts every close
 *    pair;
 *  - `match` begins at 0 in every period (I-S0-6); the coupled choice is not overwritten by the
 *    comparison of retransmissions (I-S0-7); min(m, k) = 0 means no shared bottleneck, and equal
 *    retransmissions keep the assignment (I-S0-8);
 *  - `literal = true` is algorithm 1 as printed: one event per retransmitted packet, all pairs, `match`
 *    never reset, the comparison overwriting the coupled choice. A retransmission has the time of the
 *    subflow's next ACK, loss or timeout;
 *  - `initial_fast` names the subflow that begins with MFast, for reproductions that start with the final
 *    assignment (I-S0-10);
 *  - `hysteresis` h (house, I-S0-13): MFast moves only to a subflow with fewer than (1 - h) times the
 *    retransmissions of the one that has it;
 *  - a reduction for an ECN mark counts as a loss event;
 *  - more than two subflows (house): the pairs found are joined into groups, each group is coupled by LIA
 *    among its members; MFast goes to the one minimum of the rest, and without one minimum the rest keeps
 *    its assignment. A connection with one usable subflow keeps its assignment too.
 *
 * `detector = rfc8382` (house, for the open problem of the paper that its detector assumes paths of equal
 * delay, I-S0-14) groups the subflows by their delays every 0.35 s, see sbd.h. At the end of a period two
 * subflows share a bottleneck if they were in one group in more than bn_thresh of those decisions of the
 * period that both took part in; with `period` 0.35 s that is every single decision. Whoever shares none is
 * coupled no more, even if retransmissions are equal. `interval`, `matching` and `literal` belong to the
 * other detector.
 *
 * A subflow that changes its algorithm keeps cwnd, ssthresh and base RTT; everything else of the new one
 * begins anew. LIA has its exact form; FAST's parameters that are not listed have the defaults of mfast.h.
 *
 * Nothing grows with the number of losses: matching runs as events arrive, over the last 32 events of the
 * connection, and a period is evaluated at the first ACK after its end.
 */
#ifndef ANABRANCH_MFVL_H
#define ANABRANCH_MFVL_H

#include "anabranch/sbd.h"
#include "lia.h"
#include "mfast.h"
#include "mvegas.h"

enum mfvl_detector { MFVL_RETRANSMISSIONS = 0, MFVL_RFC8382 = 1 };
enum mfvl_matching { MFVL_ONE_TO_ONE = 0, MFVL_ALL_PAIRS = 1 };
enum mfvl_mode { MFVL_UNCOUPLED = 0, MFVL_COUPLED = 1 };
enum mfvl_role { MFVL_MVEGAS = 0, MFVL_MFAST = 1, MFVL_LIA = 2 };

#define AB_PARAMS_mfvl(P)                                                                                    \
	P(period_us, AB_UNIT_US, 50000000, 1000, 3600000000u, "T, the time between two decisions")           \
	P(interval_us, AB_UNIT_US, 200000, 1, 60000000, "losses closer than this coincide")                  \
	P(bn_thresh_permille, AB_UNIT_PERMILLE, 500, 0, 1000,                                                \
	  "shared bottleneck above this share of coinciding losses or of joint intervals")                   \
	P(detector, AB_UNIT_CHOICE, MFVL_RETRANSMISSIONS, 0, 1,                                              \
	  "retransmissions|rfc8382: what shows a shared bottleneck")                                         \
	P(matching, AB_UNIT_CHOICE, MFVL_ONE_TO_ONE, 0, 1,                                                   \
	  "one_to_one|all_pairs: how coinciding losses are counted")                                         \
	P(literal, AB_UNIT_BOOL, 0, 0, 1, "algorithm 1 as printed, without the corrections")                 \
	P(hysteresis_permille, AB_UNIT_PERMILLE, 0, 0, 1000,                                                 \
	  "MFast moves only for this share of fewer retransmissions")                                        \
	P(initial_fast, AB_UNIT_COUNT, 0, 0, AB_MAX_PEERS,                                                   \
	  "subflow that begins with MFast, counted from 1; 0: none")                                         \
	P(vegas_alpha, AB_UNIT_PACKETS, 1, 1, 1000, "alpha of MVegas")                                       \
	P(vegas_beta, AB_UNIT_PACKETS, 3, 1, 1000, "beta of MVegas")                                         \
	P(vegas_gamma, AB_UNIT_PACKETS, 1, 1, 1000, "gamma of MVegas")                                       \
	P(vegas_k, AB_UNIT_COUNT, 2, 1, 100, "k of MVegas")                                                  \
	P(vegas_beta_dec, AB_UNIT_CHOICE, MVEGAS_SUB, 0, 1, "sub|mul: beta_dec of MVegas")                   \
	P(fast_alpha, AB_UNIT_PACKETS, 100, 1, 100000, "alpha of MFast")                                     \
	P(fast_gamma_q10, AB_UNIT_Q10, 512, 1, 1024, "gamma of MFast")                                       \
	P(fast_sigma_q10, AB_UNIT_Q10, 512, 1, 1024, "sigma of MFast")                                       \
	P(fast_mi_threshold_us, AB_UNIT_US, 750, 0, 1000000, "mi_threshold of MFast")
#define AB_COLD_BYTES_mfvl sizeof(struct sbd_flow)

struct mfvl_params {
	AB_PARAMS_mfvl(AB_PARAM_FIELD)
};

#define MFVL_EVENTS                  32 /* a power of two */
#define MFVL_PAIRS                   (AB_MAX_PEERS * (AB_MAX_PEERS - 1) / 2)
#define MFVL_FAST_UPDATE_INTERVAL_US 10000
#define MFVL_FAST_SS_EXIT            1

/*
 * The connection's part, in the words of struct ab_conn. `match` and `loss_events` count for rfc8382 the
 * decisions that put a pair into one group and those that a subflow took part in. An event is one u64: weight
 * (8 bits), mask of the subflows it has been matched with (8), subflow (3), 1, time in microseconds modulo
 * 2^44 (44). 0: no event.
 */
struct mfvl_conn {
	u64 events[MFVL_EVENTS]; /* ring; `next_event` is the oldest */
	u32 match[MFVL_PAIRS];   /* of this period, see mfvl_pair */
	u32 loss_events[AB_MAX_PEERS];
	u32 retrans_base[AB_MAX_PEERS]; /* peers[].retrans when the period began */
	u32 retrans_seen[AB_MAX_PEERS]; /* literal: already recorded as events */
	u8 role[AB_MAX_PEERS];
	u8 group[AB_MAX_PEERS]; /* LIA: the members, one bit each */
	u8 next_event;
	u8 started;
	u8 bottlenecked; /* rfc8382: at the last decision, one bit each */
	u8 reserved[5];
	u64 grouped_us; /* rfc8382: time of the last decision */
} __attribute__((may_alias));

AB_STATIC_ASSERT(sizeof(struct mfvl_conn) <= 8 * AB_CONN_WORDS, "mfvl: the connection's words hold its part");

#define MFVL_WEIGHT_MAX    255u
#define MFVL_MATCHED_SHIFT 8
#define MFVL_SUBFLOW_SHIFT 16
#define MFVL_VALID         (1u << 19)
#define MFVL_TIME_SHIFT    20
#define MFVL_TIME_MASK     ((1ull << 44) - 1)

struct mfvl_state {
	union {
		struct mvegas_state mvegas;
		struct fast_state fast;
		struct lia_state lia;
	} u;
	u32 base_rtt_us; /* kept when the role changes */
	u8 role;         /* the one that `u` is for */
};

/* Does algorithm 1 apply as printed? */
AB_INLINE int mfvl_literal(const struct mfvl_params *p)
{
	return p->literal && p->detector == MFVL_RETRANSMISSIONS;
}

AB_INLINE struct mfvl_conn *mfvl_conn(const struct ab_cc *cc)
{
	return (struct mfvl_conn *)cc->conn->words;
}

/* Index of the pair of two different subflows. */
AB_INLINE u32 mfvl_pair(u32 j, u32 k)
{
	u32 pair = j < k ? k * (k - 1) / 2 + j : j * (j - 1) / 2 + k;

	return ab_min_u32(pair, MFVL_PAIRS - 1); /* no effect, but the verifier wants to see the bound */
}

AB_INLINE struct mvegas_params mfvl_mvegas_params(const struct ab_cc *cc)
{
	const struct mfvl_params *p = (const struct mfvl_params *)cc->params;
	const struct mvegas_params vegas = {.alpha = p->vegas_alpha,
					    .beta = p->vegas_beta,
					    .gamma = p->vegas_gamma,
					    .k = p->vegas_k,
					    .beta_dec = p->vegas_beta_dec};

	return vegas;
}

AB_INLINE struct fast_tuning mfvl_fast_tuning(const struct ab_cc *cc)
{
	const struct mfvl_params *p = (const struct mfvl_params *)cc->params;
	const struct fast_tuning fast = {.alpha = p->fast_alpha,
					 .beta = 0,
					 .gamma_q10 = p->fast_gamma_q10,
					 .sigma_q10 = p->fast_sigma_q10,
					 .mi_threshold_us = p->fast_mi_threshold_us,
					 .update_interval_us = MFVL_FAST_UPDATE_INTERVAL_US,
					 .ss_exit = MFVL_FAST_SS_EXIT};

	return fast;
}

/*
 * Two events of different subflows less than `interval` apart: counts them as the detector says. Returns
 * `event` of this subflow, marked if it has now a partner on the other one.
 */
AB_INLINE u64 mfvl_match(struct mfvl_conn *c, u64 *other, u64 event, u32 self, u32 all_pairs)
{
	u32 peer = (u32)(*other >> MFVL_SUBFLOW_SHIFT) & 7;
	u64 peer_bit = 1ull << (MFVL_MATCHED_SHIFT + peer), self_bit = 1ull << (MFVL_MATCHED_SHIFT + self);
	u32 *match = &c->match[mfvl_pair(self, peer)];

	if (all_pairs) {
		*match += (u32)(*other & MFVL_WEIGHT_MAX) * (u32)(event & MFVL_WEIGHT_MAX);
	} else if (!(*other & self_bit) && !(event & peer_bit)) {
		*match += 1;
		*other |= self_bit;
		event |= peer_bit;
	}
	return event;
}

/*
 * `weight` losses on this subflow now. Oldest events first: for points on a line with a fixed distance,
 * pairing each event with the oldest free one in reach gives the largest number of pairs.
 */
AB_INLINE void mfvl_record(const struct ab_cc *cc, u32 weight)
{
	const struct mfvl_params *p = (const struct mfvl_params *)cc->params;
	struct mfvl_conn *c = mfvl_conn(cc);
	u32 self = cc->view->self, step;
	u64 now_us = cc->view->now_us & MFVL_TIME_MASK, *other;
	u64 event = now_us << MFVL_TIME_SHIFT | MFVL_VALID | self << MFVL_SUBFLOW_SHIFT |
		    ab_min_u32(weight, MFVL_WEIGHT_MAX);

	for (step = 0; step < MFVL_EVENTS; step++) {
		other = &c->events[(c->next_event + step) % MFVL_EVENTS];
		if (!*other || (*other >> MFVL_SUBFLOW_SHIFT & 7) == self)
			continue;
		if (((now_us + MFVL_TIME_MASK + 1 - (*other >> MFVL_TIME_SHIFT)) & MFVL_TIME_MASK) <
		    p->interval_us)
			event = mfvl_match(c, other, event, self,
					   mfvl_literal(p) || p->matching == MFVL_ALL_PAIRS);
	}
	c->events[c->next_event % MFVL_EVENTS] = event;
	c->next_event = (u8)((c->next_event + 1) % MFVL_EVENTS);
}

/* Packets that subflow k has retransmitted in this period. */
AB_INLINE u32 mfvl_retrans(const struct ab_cc *cc, const struct mfvl_conn *c, u32 k)
{
	u32 total = cc->peers[k].retrans;

	return total > c->retrans_base[k] ? total - c->retrans_base[k] : 0;
}

/* Do the losses of j and k coincide often enough, or were they in one group often enough? */
AB_INLINE int mfvl_shared(const struct ab_cc *cc, const struct mfvl_conn *c, u32 j, u32 k)
{
	const struct mfvl_params *p = (const struct mfvl_params *)cc->params;
	u32 m = mfvl_literal(p) ? mfvl_retrans(cc, c, j) : c->loss_events[j];
	u32 n = mfvl_literal(p) ? mfvl_retrans(cc, c, k) : c->loss_events[k];
	u32 fewer = ab_min_u32(m, n);

	return fewer && (u64)c->match[mfvl_pair(j, k)] * 1000 > (u64)p->bn_thresh_permille * fewer;
}

/* Fills `group` with the members of each subflow's group; returns the subflows in groups of two and more. */
AB_INLINE u32 mfvl_groups(const struct ab_cc *cc, const struct mfvl_conn *c, u32 usable,
			  u8 group[AB_MAX_PEERS])
{
	u32 j, k, grouped = 0, shared;

	for (k = 0; k < AB_MAX_PEERS; k++)
		group[k] = (u8)(1u << k);
	for (k = 1; k < AB_MAX_PEERS; k++) {
		for (j = 0; j < k; j++) {
			shared = ab_forget((u32)mfvl_shared(cc, c, j, k));
			grouped |= ab_join_groups(group, j, k, shared & usable >> j & usable >> k);
		}
	}
	return ab_forget(grouped);
}

/*
 * The subflow of `rest` that is to run MFast: the one with fewest retransmissions; AB_MAX_PEERS if several
 * have the fewest or the holder keeps it by hysteresis.
 */
AB_INLINE u32 mfvl_fastest(const struct ab_cc *cc, const struct mfvl_conn *c, u32 rest)
{
	const struct mfvl_params *p = (const struct mfvl_params *)cc->params;
	u32 k, retrans, best = AB_MAX_PEERS, fewest = AB_U32_MAX, holder = AB_MAX_PEERS, ties = 0;

	for (k = 0; k < AB_MAX_PEERS; k++) {
		if (!(rest & 1u << k))
			continue;
		if (c->role[k] == MFVL_MFAST)
			holder = k;
		retrans = mfvl_retrans(cc, c, k);
		ties = retrans == fewest ? ties + 1 : retrans < fewest ? 0 : ties;
		best = ab_forget(retrans < fewest ? k : best);
		holder = ab_forget(holder);
		ties = ab_forget(ties);
		fewest = ab_forget(ab_min_u32(retrans, fewest));
	}
	if (ties)
		return AB_MAX_PEERS;
	if (holder >= AB_MAX_PEERS || holder == best)
		return best;
	retrans = mfvl_retrans(cc, c, ab_forget_index(holder, AB_MAX_PEERS));
	if ((u64)fewest * 1000 >= (u64)retrans * (1000 - p->hysteresis_permille))
		return AB_MAX_PEERS;
	return best;
}

/* The decision at the end of a period. */
AB_INLINE void mfvl_decide(const struct ab_cc *cc, struct mfvl_conn *c)
{
	const struct mfvl_params *p = (const struct mfvl_params *)cc->params;
	u32 k, usable = 1u << cc->view->self, grouped, rest, fastest;
	u8 group[AB_MAX_PEERS];

	for (k = 0; k < AB_MAX_PEERS; k++)
		usable |= (cc->peers[k].usable ? 1u : 0u) << k;
	usable = ab_forget(usable);
	if (!(usable & ~(1u << cc->view->self)))
		return;
	grouped = mfvl_groups(cc, c, usable, group);
	if (mfvl_literal(p) && mfvl_fastest(cc, c, usable) < AB_MAX_PEERS)
		grouped = 0; /* lines 33 to 40 overwrite line 31 */
	rest = usable & ~grouped;
	fastest = ab_forget(mfvl_fastest(cc, c, rest));
	for (k = 0; k < AB_MAX_PEERS; k++) {
		if (grouped & 1u << k) {
			c->role[k] = MFVL_LIA;
			c->group[k] = group[k];
		} else if (!(rest & 1u << k) || fastest == AB_MAX_PEERS) {
			c->group[k] &= (u8)~grouped;
			if (p->detector == MFVL_RFC8382 && c->role[k] == MFVL_LIA)
				c->role[k] = MFVL_MVEGAS;
		} else {
			c->role[k] = k == fastest ? MFVL_MFAST : MFVL_MVEGAS;
			c->group[k] = 0;
		}
	}
}

AB_INLINE void mfvl_begin_period(const struct ab_cc *cc, struct mfvl_conn *c)
{
	const struct mfvl_params *p = (const struct mfvl_params *)cc->params;
	u32 k;

	cc->conn->mode = MFVL_UNCOUPLED;
	for (k = 0; k < AB_MAX_PEERS; k++) {
		c->loss_events[k] = 0;
		c->retrans_base[k] = cc->peers[k].retrans;
		if (c->role[k] == MFVL_LIA)
			cc->conn->mode = MFVL_COUPLED;
	}
	for (k = 0; k < MFVL_PAIRS; k++)
		c->match[k] = mfvl_literal(p) ? c->match[k] : 0;
	for (k = 0; k < MFVL_EVENTS; k++)
		c->events[k] = 0;
	cc->conn->epoch++;
	cc->conn->coupled_epochs += cc->conn->mode == MFVL_COUPLED;
}

/* The role of this subflow; one without a slot runs MVegas alone. */
AB_INLINE u32 mfvl_role(const struct ab_cc *cc)
{
	return cc->view->self < AB_MAX_PEERS ? mfvl_conn(cc)->role[cc->view->self] : MFVL_MVEGAS;
}

/* Starts the algorithm of `role` from the window as it is and the base RTT known so far. */
AB_INLINE void mfvl_start_role(const struct ab_cc *cc, struct mfvl_state *s, u32 role)
{
	const struct mvegas_params vegas = mfvl_mvegas_params(cc);

	s->role = (u8)role;
	if (role == MFVL_MVEGAS) {
		mvegas_start(&s->u.mvegas, &vegas, s->base_rtt_us);
	} else if (role == MFVL_MFAST) {
		fast_start(&s->u.fast, s->base_rtt_us);
	} else {
		s->u.lia.rest_q8 = 0;
		s->u.lia.a_q12 = 0;
	}
}

/* What comes before any event: notice retransmissions (literal), and a role that has been changed. */
AB_INLINE struct mfvl_state *mfvl_enter(const struct ab_cc *cc)
{
	const struct mfvl_params *p = (const struct mfvl_params *)cc->params;
	struct mfvl_state *s = (struct mfvl_state *)cc->state;
	struct mfvl_conn *c = mfvl_conn(cc);
	u32 self = cc->view->self, role = mfvl_role(cc), retrans;

	if (self < AB_MAX_PEERS) {
		retrans = cc->peers[self].retrans;
		if (mfvl_literal(p) && retrans > c->retrans_seen[self])
			mfvl_record(cc, retrans - c->retrans_seen[self]);
		c->retrans_seen[self] = retrans;
	}
	if (s->role != role)
		mfvl_start_role(cc, s, role);
	return s;
}

/* At the first ACK after the end of a period: decide. Whole periods without an ACK are skipped. */
AB_INLINE void mfvl_check_period(const struct ab_cc *cc)
{
	const struct mfvl_params *p = (const struct mfvl_params *)cc->params;
	u64 elapsed_us = cc->view->now_us - cc->conn->period_start_us;

	if (cc->view->self >= AB_MAX_PEERS || elapsed_us < p->period_us)
		return;
	mfvl_decide(cc, mfvl_conn(cc));
	mfvl_begin_period(cc, mfvl_conn(cc));
	cc->conn->period_start_us += elapsed_us - elapsed_us % p->period_us;
}

/* rfc8382: every base interval, at the first sample of any subflow, groups the subflows and counts. */
AB_INLINE void mfvl_group_by_delay(const struct ab_cc *cc, struct mfvl_conn *c)
{
	u32 j, k, usable = 1u << cc->view->self, ready = 0, passes = 0;
	u8 group[AB_MAX_PEERS];
	struct sbd_figures s;

	if (cc->view->now_us < c->grouped_us + SBD_INTERVAL_US)
		return;
	c->grouped_us = cc->view->now_us;
	for (k = 0; k < AB_MAX_PEERS; k++) {
		s = sbd_published(&cc->peers[k]);
		usable |= (cc->peers[k].usable ? 1u : 0u) << k;
		ready |= s.ready << k;
		passes |= (ab_forget(sbd_passes_bottleneck(&s, c->bottlenecked >> k & 1)) & 1) << k;
	}
	usable = ab_forget(usable);
	ready &= usable;
	passes &= usable;
	c->bottlenecked = (u8)passes;
	sbd_groups(cc->peers, passes, group);
	for (k = 0; k < AB_MAX_PEERS; k++) {
		c->loss_events[k] += ready >> k & 1;
		for (j = 0; j < k; j++)
			c->match[mfvl_pair(j, k)] += (u32)group[k] >> j & 1;
	}
}

/* rfc8382: takes the sample's delay in and publishes new figures. */
AB_INLINE void mfvl_note_delay(const struct ab_cc *cc)
{
	struct sbd_flow *f = (struct sbd_flow *)cc->cold;
	struct sbd_figures s;

	if (sbd_sample(f, cc->view)) {
		s = sbd_figures(f);
		sbd_publish(cc->out, &s);
	}
	if (cc->view->self < AB_MAX_PEERS)
		mfvl_group_by_delay(cc, mfvl_conn(cc));
}

AB_INLINE void mfvl_init(const struct ab_cc *cc)
{
	const struct mfvl_params *p = (const struct mfvl_params *)cc->params;
	struct mfvl_conn *c = mfvl_conn(cc);
	u32 self = cc->view->self, k;

	if (self < AB_MAX_PEERS) {
		if (!c->started) {
			c->started = 1;
			cc->conn->period_start_us = cc->view->now_us;
		}
		c->role[self] = self + 1 == p->initial_fast ? MFVL_MFAST : MFVL_MVEGAS;
		c->group[self] = 0;
		c->loss_events[self] = 0;
		c->retrans_base[self] = cc->peers[self].retrans;
		c->retrans_seen[self] = cc->peers[self].retrans;
		for (k = 0; k < AB_MAX_PEERS; k++) {
			if (k != self)
				c->match[mfvl_pair(self, k)] = 0;
		}
	}
	mfvl_start_role(cc, (struct mfvl_state *)cc->state, mfvl_role(cc));
}

AB_INLINE void mfvl_rtt_sample(const struct ab_cc *cc)
{
	const struct mfvl_params *p = (const struct mfvl_params *)cc->params;
	struct mfvl_state *s;

	if (p->detector == MFVL_RFC8382)
		mfvl_note_delay(cc);
	mfvl_check_period(cc);
	s = mfvl_enter(cc);
	if (!s->base_rtt_us || cc->view->rtt_us < s->base_rtt_us)
		s->base_rtt_us = ab_max_u32(cc->view->rtt_us, 1);
	if (s->role == MFVL_MVEGAS)
		vegas_sample(cc, &s->u.mvegas.vegas);
	else if (s->role == MFVL_MFAST)
		fast_sample(cc, &s->u.fast, FAST_SMOOTH_NS2);
}

AB_INLINE void mfvl_ack(const struct ab_cc *cc)
{
	struct mvegas_params vegas;
	struct fast_tuning fast;
	struct mfvl_state *s;
	u32 self;

	mfvl_check_period(cc);
	s = mfvl_enter(cc);
	if (s->role == MFVL_MVEGAS) {
		vegas = mfvl_mvegas_params(cc);
		mvegas_grow(cc, &s->u.mvegas, &vegas);
	} else if (s->role == MFVL_MFAST) {
		fast = mfvl_fast_tuning(cc);
		fast_grow(cc, &s->u.fast, &fast);
	} else {
		self = cc->view->self % AB_MAX_PEERS; /* no effect: without a slot the role is MVegas */
		lia_grow(cc, &s->u.lia, ab_coupled_members(cc) & mfvl_conn(cc)->group[self], LIA_EXACT);
	}
}

AB_INLINE u32 mfvl_loss(const struct ab_cc *cc)
{
	const struct mfvl_params *p = (const struct mfvl_params *)cc->params;
	struct mfvl_state *s = mfvl_enter(cc);

	if (cc->view->self < AB_MAX_PEERS && p->detector == MFVL_RETRANSMISSIONS && !p->literal) {
		mfvl_conn(cc)->loss_events[cc->view->self]++;
		mfvl_record(cc, 1);
	}
	if (s->role == MFVL_MVEGAS)
		return vegas_reduce(cc, &s->u.mvegas.vegas);
	if (s->role == MFVL_MFAST)
		return fast_reduce(cc, &s->u.fast);
	return ab_half_cwnd(cc);
}

AB_INLINE void mfvl_rto(const struct ab_cc *cc)
{
	const struct mvegas_params vegas = mfvl_mvegas_params(cc);
	struct mfvl_state *s = mfvl_enter(cc);

	if (s->role == MFVL_MVEGAS)
		mvegas_restart(cc, &s->u.mvegas, &vegas);
	else if (s->role == MFVL_MFAST)
		fast_restart(cc, &s->u.fast);
}

/* The end of a recovery or of a pause: no round and no update is under way. */
AB_INLINE void mfvl_forget(const struct ab_cc *cc)
{
	struct mfvl_state *s = mfvl_enter(cc);

	if (s->role == MFVL_MVEGAS)
		vegas_new_round(&s->u.mvegas.vegas);
	else if (s->role == MFVL_MFAST)
		fast_settle(&s->u.fast);
}

#define AB_EVENTS_mfvl(E)                                                                                    \
	E(init, mfvl_init)                                                                                   \
	E(rtt_sample, mfvl_rtt_sample)                                                                       \
	E(loss, mfvl_loss)                                                                                   \
	E(rto, mfvl_rto)                                                                                     \
	E(recovery_exit, mfvl_forget)                                                                        \
	E(undo, ab_undo_to_prior)                                                                            \
	E(ecn, ab_ignore)                                                                                    \
	E(ack, mfvl_ack)                                                                                     \
	E(rate, ab_ignore)                                                                                   \
	E(idle_restart, mfvl_forget)                                                                         \
	E(peer_join, ab_ignore)                                                                              \
	E(peer_leave, ab_ignore)                                                                             \
	E(release, ab_ignore)

#endif
