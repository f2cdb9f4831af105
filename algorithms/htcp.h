/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * H-TCP (Leith, Shorten 2004): additive increase that quickens with the time D since the last loss, and a
 * decrease that leaves the queue just empty.
 *
 *   increase per window  alpha = 2 (1 - beta) f(D)
 *                        f = 1 for D <= 1 s, 1 + 10 (D - 1) + ((D - 1) / 2)^2 beyond
 *   decrease             beta = minRTT / maxRTT within [0.5, 0.8]; but 0.5 at the first loss,
 *                        where minRTT <= 10 ms, and where the largest throughput changed by
 *                        more than a fifth from one loss to the next
 *
 * `rtt_scaling` divides f by 100 ms / minRTT, within [0.5, 10], and keeps it at least 1, so that flows of
 * different RTT grow by as much per second.
 *
 * `precision = exact`, the default, has f with 10 fraction bits; `kernel` has whole numbers and alpha and
 * beta with 7 bits, as Linux.
 *
 * We differ in:
 *  - throughput is that of whole round trips outside recovery, averaged with weight 1/4 (the paper takes the
 *    throughput at the loss; Linux averages alike over a window of packets);
 *  - maxRTT is the largest smoothed RTT since the connection began, takes steps of at most 20 ms, and loses a
 *    twentieth of its distance to minRTT at each loss (Linux, which has a smoothed minRTT too);
 *  - the loss after one at which the throughput changed may decrease by minRTT / maxRTT;
 *    Linux waits for one more;
 *  - D begins at the loss, not at the end of its recovery, and with the connection before the first;
 *  - silence is no time of D (see RFC 9438 section 4.2, of CUBIC): a flow that comes back does not burst.
 */
#ifndef ANABRANCH_HTCP_H
#define ANABRANCH_HTCP_H

#include "anabranch/cc.h"
#include "anabranch/increase.h"

enum htcp_precision { HTCP_EXACT = 0, HTCP_KERNEL = 1 };

#define AB_PARAMS_htcp(P)                                                                                    \
	P(rtt_scaling, AB_UNIT_BOOL, 1, 0, 1, "slow the increase on paths shorter than 100 ms")              \
	P(bandwidth_switch, AB_UNIT_BOOL, 1, 0, 1, "halve when the throughput has changed by a fifth")       \
	P(precision, AB_UNIT_CHOICE, HTCP_EXACT, 0, 1, "exact|kernel: resolution of f, fine or that of Linux")
#define AB_COLD_BYTES_htcp 0

struct htcp_params {
	AB_PARAMS_htcp(AB_PARAM_FIELD)
};

#define HTCP_ONE_Q10        1024u
#define HTCP_DELTA_L_US     1000000u
#define HTCP_DELTA_MAX_US   1000000000u /* 1000 s count as long as anything */
#define HTCP_BETA_MIN_Q10   512u        /* 0.5 */
#define HTCP_BETA_MAX_Q10   819u        /* 0.8 */
#define HTCP_SHORT_US       10000u      /* up to this RTT beta is 0.5 */
#define HTCP_REFERENCE_US   100000u
#define HTCP_RTT_STEP_US    20000u
#define HTCP_THROUGHPUT_MAX (1u << 28) /* packets/s; six times it fits u32 */

/* What a loss ends, and a spurious one brings back. */
struct htcp_epoch {
	u64 start_us;   /* the last loss */
	u32 max_rtt_us; /* 0: no sample yet */
	u32 old_peak;   /* largest throughput up to the loss before, packets/s; 0: none */
	u32 beta_q10;   /* of the last loss */
};

struct htcp_state {
	struct htcp_epoch epoch;
	struct htcp_epoch before_loss;
	u64 round_us;        /* when the round began; 0: none has */
	u64 round_delivered; /* packets delivered by then */
	u32 throughput;      /* average, packets/s */
	u32 peak;            /* its largest since the last loss */
	u32 rest_q10;        /* of the counter of acknowledged packets */
};

/* f(D), 10 fraction bits, for D in microseconds: D <= 2^20 / 1024 s, so 10 D < 2^24 and (D / 2)^2 < 2^28. */
AB_INLINE u32 htcp_f_q10(u64 since_us, u32 precision)
{
	u64 d_us = ab_min_u64(since_us, HTCP_DELTA_MAX_US), d, f_q10;

	if (d_us <= HTCP_DELTA_L_US)
		return HTCP_ONE_Q10;
	d_us -= HTCP_DELTA_L_US;
	d = d_us * HTCP_ONE_Q10 / 1000000;
	f_q10 = HTCP_ONE_Q10 + 10 * d + (d * d >> 12);
	if (precision == HTCP_KERNEL) {
		d = d_us / 1000;
		f_q10 = (1 + (10 * d + (d / 2) * (d / 2) / 1000) / 1000) << 10;
	}
	return (u32)f_q10;
}

/*
 * f by RTT scaling, at least 1: 2^29 * 2^10 < 2^64. 100 ms / minRTT has 10 fraction bits, 3 as Linux
 * (`(8 * 1000) / (10 * minRTT in ms)`).
 */
AB_INLINE u32 htcp_scaled_q10(u32 f_q10, u32 min_rtt_us, u32 precision)
{
	u32 scale_q10, ms;

	if (!min_rtt_us)
		return f_q10;
	scale_q10 = HTCP_REFERENCE_US * HTCP_ONE_Q10 / min_rtt_us;
	if (precision == HTCP_KERNEL) {
		ms = ab_max_u32(min_rtt_us / 1000, 1);
		scale_q10 = 800 / ms << 7;
	}
	scale_q10 = ab_min_u32(ab_max_u32(scale_q10, HTCP_ONE_Q10 / 2), 10 * HTCP_ONE_Q10);
	f_q10 = (u32)(((u64)f_q10 << 10) / scale_q10);
	if (precision == HTCP_KERNEL)
		f_q10 = f_q10 >> 10 << 10;
	return ab_max_u32(f_q10, HTCP_ONE_Q10);
}

/* 2 (1 - beta) f: 2^10 * 2^30 < 2^64; f <= 2^30 with the scale of 1/2, so the result is at most 2^30. */
AB_INLINE u32 htcp_alpha_q10(u32 f_q10, u32 beta_q10)
{
	return (u32)((u64)(2 * (HTCP_ONE_Q10 - beta_q10)) * f_q10 >> 10);
}

/* minRTT / maxRTT within the bounds: 2^32 * 2^10 < 2^64. */
AB_INLINE u32 htcp_beta_q10(u32 min_rtt_us, u32 max_rtt_us, u32 precision)
{
	u64 beta_q10 = max_rtt_us ? (u64)min_rtt_us * HTCP_ONE_Q10 / max_rtt_us : 0;

	beta_q10 = ab_min_u64(ab_max_u64(beta_q10, HTCP_BETA_MIN_Q10), HTCP_BETA_MAX_Q10);
	if (precision == HTCP_KERNEL)
		beta_q10 = beta_q10 >> 3 << 3;
	return (u32)beta_q10;
}

/* Have two throughputs more than a fifth of the old one between them? Both below 2^28. */
AB_INLINE int htcp_changed(u32 peak, u32 old_peak)
{
	return 5 * peak < 4 * old_peak || 5 * peak > 6 * old_peak;
}

AB_INLINE void htcp_new_round(const struct ab_cc *cc, struct htcp_state *s)
{
	s->round_us = cc->view->now_us;
	s->round_delivered = cc->view->delivered;
}

/* A round has ended: its packets, at most 2^32, times 10^6, over its time. */
AB_INLINE void htcp_measure(const struct ab_cc *cc, struct htcp_state *s)
{
	u64 took_us = cc->view->now_us - s->round_us, packets = 0, rate;

	if (s->round_us && took_us) {
		if (cc->view->delivered > s->round_delivered)
			packets = ab_min_u64(cc->view->delivered - s->round_delivered, AB_U32_MAX);
		rate = ab_min_u64(packets * 1000000 / took_us, HTCP_THROUGHPUT_MAX);
		s->throughput = s->throughput ? (u32)((3 * (u64)s->throughput + rate) / 4) : (u32)rate;
		s->peak = ab_max_u32(s->peak, s->throughput);
	}
	htcp_new_round(cc, s);
}

AB_INLINE void htcp_init(const struct ab_cc *cc)
{
	struct htcp_state *s = (struct htcp_state *)cc->state;

	s->epoch.start_us = cc->view->now_us;
	s->epoch.beta_q10 = HTCP_BETA_MIN_Q10;
}

AB_INLINE void htcp_rtt_sample(const struct ab_cc *cc)
{
	struct htcp_epoch *e = &((struct htcp_state *)cc->state)->epoch;
	const struct ab_view *v = cc->view;
	u32 srtt_us = v->srtt8_us >> 3;

	if (v->ca_state != AB_CA_OPEN)
		return;
	e->max_rtt_us = ab_max_u32(e->max_rtt_us, v->min_rtt_us);
	if (srtt_us > e->max_rtt_us && srtt_us - e->max_rtt_us <= HTCP_RTT_STEP_US)
		e->max_rtt_us = srtt_us;
}

AB_INLINE u32 htcp_increase_q10(const struct ab_cc *cc, const struct htcp_epoch *e)
{
	const struct htcp_params *p = (const struct htcp_params *)cc->params;
	u32 f_q10 = htcp_f_q10(cc->view->now_us - e->start_us, p->precision);

	if (p->rtt_scaling)
		f_q10 = htcp_scaled_q10(f_q10, cc->view->min_rtt_us, p->precision);
	return htcp_alpha_q10(f_q10, e->beta_q10);
}

AB_INLINE void htcp_ack(const struct ab_cc *cc)
{
	struct htcp_state *s = (struct htcp_state *)cc->state;
	const struct ab_view *v = cc->view;
	u32 cwnd, cnt = v->cwnd_cnt, acked;

	if (v->round_start)
		htcp_measure(cc, s);
	if (!ab_after_slow_start(cc, &cwnd, &acked))
		return;
	ab_weighted_increase(&cwnd, &cnt, &s->rest_q10, htcp_increase_q10(cc, &s->epoch), acked);
	ab_set_cwnd(cc, cwnd);
	ab_set_cwnd_cnt(cc, cnt);
}

/* The share of the window that is kept at this loss; no throughput before it: the first one. */
AB_INLINE u32 htcp_decide_beta_q10(const struct ab_cc *cc, const struct htcp_state *s)
{
	const struct htcp_params *p = (const struct htcp_params *)cc->params;
	u32 min_rtt_us = cc->view->min_rtt_us, old_peak = s->epoch.old_peak;

	if (!old_peak || min_rtt_us <= HTCP_SHORT_US ||
	    (p->bandwidth_switch && htcp_changed(s->peak, old_peak)))
		return HTCP_BETA_MIN_Q10;
	return htcp_beta_q10(min_rtt_us, s->epoch.max_rtt_us, p->precision);
}

AB_INLINE u32 htcp_loss(const struct ab_cc *cc)
{
	struct htcp_state *s = (struct htcp_state *)cc->state;
	struct htcp_epoch *e = &s->epoch;
	u32 min_rtt_us = cc->view->min_rtt_us;

	s->before_loss = *e;
	e->beta_q10 = htcp_decide_beta_q10(cc, s);
	e->old_peak = s->peak;
	e->start_us = cc->view->now_us;
	if (e->max_rtt_us > min_rtt_us)
		e->max_rtt_us = min_rtt_us + (u32)((u64)(e->max_rtt_us - min_rtt_us) * 95 / 100);
	s->peak = 0;
	s->throughput = 0;
	return ab_max_u32((u32)((u64)cc->view->cwnd * e->beta_q10 >> 10), 2);
}

AB_INLINE void htcp_rto(const struct ab_cc *cc)
{
	struct htcp_state *s = (struct htcp_state *)cc->state;

	s->epoch.start_us = cc->view->now_us;
	htcp_new_round(cc, s);
}

/* What a recovery delivers is no throughput of the path. */
AB_INLINE void htcp_recovery_exit(const struct ab_cc *cc)
{
	htcp_new_round(cc, (struct htcp_state *)cc->state);
}

AB_INLINE u32 htcp_undo(const struct ab_cc *cc)
{
	struct htcp_state *s = (struct htcp_state *)cc->state;

	s->peak = s->epoch.old_peak;
	s->epoch = s->before_loss;
	return ab_undo_to_prior(cc);
}

AB_INLINE void htcp_idle_restart(const struct ab_cc *cc)
{
	struct htcp_state *s = (struct htcp_state *)cc->state;

	s->epoch.start_us = ab_min_u64(s->epoch.start_us + cc->view->idle_us, cc->view->now_us);
	htcp_new_round(cc, s);
}

#define AB_EVENTS_htcp(E)                                                                                    \
	E(init, htcp_init)                                                                                   \
	E(rtt_sample, htcp_rtt_sample)                                                                       \
	E(loss, htcp_loss)                                                                                   \
	E(rto, htcp_rto)                                                                                     \
	E(recovery_exit, htcp_recovery_exit)                                                                 \
	E(undo, htcp_undo)                                                                                   \
	E(ecn, ab_ignore)                                                                                    \
	E(ack, htcp_ack)                                                                                     \
	E(rate, ab_ignore)                                                                                   \
	E(idle_restart, htcp_idle_restart)                                                                   \
	E(peer_join, ab_ignore)                                                                              \
	E(peer_leave, ab_ignore)                                                                             \
	E(release, ab_ignore)

#endif
