/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Shared-bottleneck detection by summary statistics of the one-way delay, RFC 8382.
 *
 * Flows that queue in the same place see delays of the same kind, whatever the rest of their paths adds: each
 * flow describes its delays by four figures, and flows whose figures are close share a bottleneck. Per base
 * interval T (0.35 s) a flow keeps the mean E_T of its delays, and from the last M or N intervals
 *   skew_est   (samples below E_M - samples above E_M) / samples, E_M the mean of M means before T's own:
 *              queued paths spend their time at and above the mean, idle ones below it;
 *   var_est    sum of |sample - E_T of the interval before| / samples;
 *   freq_est   how often E_T has left the band E_M +- p_v var_est on the side opposite to the last time,
 *              as a share of N intervals;
 *   pkt_loss   packets lost / packets sent, over N intervals.
 * A flow that does not pass a bottleneck is in no group; the others are split by freq_est, what is left
 * together by var_est, then by skew_est, then, where it is high, by pkt_loss.
 *
 * Readings taken:
 *  - a flow is judged from M intervals on (10.5 s with samples all along), and is in no group before;
 *  - E_M at the end of an interval, for freq_est, includes the interval; the first interval has no mean
 * before it and gives one only;
 *  - a retransmitted packet is a lost one; what was sent is what was delivered or retransmitted;
 *  - intervals without a sample do not count: the M and N intervals are the last with samples. After M T
 *    without one everything is forgotten.
 *
 * Left out: the piecewise linear weights of recent intervals (F), which shorten the reaction by seconds, and
 * the removal of noise from freq_est on paths without a bottleneck. Who could notice: flows in the first
 * N T = 17.5 s after a queue has begun to build.
 *
 * An interval counts its first 32,767 samples (94,000 per second); a deviation above 4.2 s counts as 4.2 s.
 * Where the one-way delay is not valid, round-trip times take its place; the queues of the way back count
 * then, too. A change from one to the other forgets everything.
 */
#ifndef ANABRANCH_SBD_H
#define ANABRANCH_SBD_H

#include "anabranch/cc.h"
#include "anabranch/coupled.h"
#include "anabranch/fixedpoint.h"

#define SBD_INTERVAL_US 350000 /* T */
#define SBD_MEANS       30     /* M */
#define SBD_CROSSINGS   50     /* N */
#define SBD_FORGET_US   (SBD_MEANS * SBD_INTERVAL_US)

/* Thresholds of section 3.3 as whole steps of the figures: "below" becomes "at most the floor". */
#define SBD_Q16(permille)   ((permille) * 65536u / 1000)
#define SBD_SKEW_Q16(skew)  (65536u + SBD_Q16(skew))
#define SBD_C_S_Q16         SBD_SKEW_Q16(100)
#define SBD_C_H_Q16         SBD_SKEW_Q16(300)
#define SBD_P_S_Q16         SBD_Q16(150)
#define SBD_P_L_Q16         SBD_Q16(50)
#define SBD_P_F_CROSSINGS   (SBD_CROSSINGS / 10) /* p_f = 0.1 */
#define SBD_P_V_PERMILLE    700
#define SBD_P_DIVISOR       10 /* p_mad = p_d = 1 / 10 */
#define SBD_SAMPLES_MAX     32767u
#define SBD_PACKETS_MAX     (1u << 24)       /* per interval, sent or lost: 50 sums of them are below 2^31 */
#define SBD_DEVIATION_MAX   ((1u << 22) - 1) /* us: thirty intervals of them times 1000 are below 2^53 */
#define SBD_MIDDLE          (1u << 31)       /* the delay of the first sample; others lie around it */
#define SBD_CROSSING_MASK   ((1ull << SBD_CROSSINGS) - 1)
#define SBD_OLDEST_CROSSING (SBD_CROSSINGS - 1)

enum sbd_source { SBD_NOTHING = 0, SBD_ONE_WAY = 1, SBD_ROUND_TRIP = 2 };
enum sbd_side { SBD_NEITHER = 0, SBD_ABOVE = 1, SBD_BELOW = 2 };

/* One of the last M intervals. */
struct sbd_interval {
	u64 deviations_us;
	u32 mean_us;
	u16 samples; /* those that skew and deviations are about */
	u16 skew;    /* samples + those below E_M - those above */
} __attribute__((may_alias));

/* One of the last N intervals. */
struct sbd_losses {
	u32 sent;
	u32 lost;
} __attribute__((may_alias));

/* What one flow remembers: 1 kB, in the cold state. */
struct sbd_flow {
	/* The interval under way. */
	u64 start_us;
	u64 delays_us;
	u64 deviations_us;
	u32 samples;
	u32 below; /* E_M */
	u32 above;
	u32 delivered; /* when it began, modulo 2^32 */
	u32 retrans;
	/* Sums over the last M or N. */
	u32 skew;
	u32 counted; /* samples that skew and deviations are about */
	u32 sent;
	u32 lost;
	u32 crossings;
	u64 means_us;
	u64 all_deviations_us;
	u64 crossing_mask; /* the newest is bit 0 */
	u32 reference_us;  /* the first sample */
	u32 last_mean_us;
	u8 intervals; /* that have ended, at most N */
	u8 next_interval;
	u8 next_losses;
	u8 side;   /* enum sbd_side: of the last crossing */
	u8 source; /* enum sbd_source */
	u8 reserved[3];
	struct sbd_interval past[SBD_MEANS];
	struct sbd_losses losses[SBD_CROSSINGS];
} __attribute__((may_alias));

AB_STATIC_ASSERT(sizeof(struct sbd_flow) <= AB_COLD_STATE_BYTES, "sbd: a flow fits the cold state");

/* The four figures of a flow. */
struct sbd_figures {
	u32 skew_q16; /* (1 + skew_est) << 16, so that it is never negative */
	u32 var_ns;
	u32 crossings; /* freq_est times N */
	u32 loss_q16;
	u32 ready; /* there are M intervals; else the others mean nothing */
};

#define SBD_READY_SHIFT 40

/* Writes the figures into two of the words that a subflow publishes. */
AB_INLINE void sbd_publish(struct ab_out *out, const struct sbd_figures *s)
{
	out->pub[0] = s->skew_q16 | (u64)s->loss_q16 << 32;
	out->pub[1] = s->var_ns | (u64)s->crossings << 32 | (u64)s->ready << SBD_READY_SHIFT;
	out->pub[2] = 0;
	out->pub[3] = 0;
	out->mask |= AB_OUT_PUB;
}

AB_INLINE struct sbd_figures sbd_published(const struct ab_peer *peer)
{
	const struct sbd_figures s = {.skew_q16 = (u32)peer->pub[0],
				      .loss_q16 = (u32)(peer->pub[0] >> 32),
				      .var_ns = (u32)peer->pub[1],
				      .crossings = (u32)(peer->pub[1] >> 32) & 0xff,
				      .ready = (u32)(peer->pub[1] >> SBD_READY_SHIFT) & 1};

	return s;
}

/*
 * The figures. `counted` is at most 30 * 32767 < 2^20 and `skew` at most twice that, so the shift stays below
 * 2^37. Deviations: below 2^53 as said above. lost << 16 < 2^48.
 */
AB_INLINE struct sbd_figures sbd_figures(const struct sbd_flow *f)
{
	struct sbd_figures s = {0, 0, 0, 0, 0};

	if (f->counted) {
		s.skew_q16 = (u32)(((u64)f->skew << 16) / f->counted);
		s.var_ns = (u32)(f->all_deviations_us * 1000 / f->counted);
	}
	if (f->sent)
		s.loss_q16 = (u32)(((u64)f->lost << 16) / f->sent);
	s.crossings = f->crossings;
	s.ready = f->intervals >= SBD_MEANS;
	return s;
}

AB_INLINE void sbd_begin_interval(struct sbd_flow *f, const struct ab_view *v, u64 start_us)
{
	f->start_us = start_us;
	f->delays_us = 0;
	f->deviations_us = 0;
	f->samples = 0;
	f->below = 0;
	f->above = 0;
	f->delivered = (u32)v->delivered;
	f->retrans = v->total_retrans;
}

AB_INLINE void sbd_restart(struct sbd_flow *f, const struct ab_view *v, u32 sample_us, u32 source)
{
	sbd_begin_interval(f, v, v->now_us);
	f->skew = 0;
	f->counted = 0;
	f->sent = 0;
	f->lost = 0;
	f->crossings = 0;
	f->means_us = 0;
	f->all_deviations_us = 0;
	f->crossing_mask = 0;
	f->reference_us = sample_us;
	f->last_mean_us = 0;
	f->intervals = 0;
	f->next_interval = 0;
	f->next_losses = 0;
	f->side = SBD_NEITHER;
	f->source = (u8)source;
}

/* E_M, of the intervals that have ended. */
AB_INLINE u32 sbd_long_mean_us(const struct sbd_flow *f)
{
	u32 n = ab_min_u32(f->intervals, SBD_MEANS);

	return n ? (u32)(f->means_us / n) : 0;
}

/* Puts the interval in place of the one M before it. */
AB_INLINE void sbd_keep_interval(struct sbd_flow *f, u32 mean_us)
{
	u32 slot = ab_min_u32(f->next_interval, SBD_MEANS - 1); /* no effect, but a bound to see */
	struct sbd_interval *kept = &f->past[slot];

	if (f->intervals >= SBD_MEANS) {
		f->means_us -= kept->mean_us;
		f->all_deviations_us -= kept->deviations_us;
		f->counted -= kept->samples;
		f->skew -= kept->skew;
	}
	kept->mean_us = mean_us;
	kept->deviations_us = f->deviations_us;
	kept->samples = (u16)(f->intervals ? f->samples : 0);
	kept->skew = (u16)(kept->samples + f->below - f->above);
	f->means_us += kept->mean_us;
	f->all_deviations_us += kept->deviations_us;
	f->counted += kept->samples;
	f->skew += kept->skew;
	f->next_interval = (u8)(slot + 1 < SBD_MEANS ? slot + 1 : 0);
}

AB_INLINE void sbd_keep_losses(struct sbd_flow *f, const struct ab_view *v)
{
	u32 slot = ab_min_u32(f->next_losses, SBD_CROSSINGS - 1);
	struct sbd_losses *kept = &f->losses[slot];

	if (f->intervals >= SBD_CROSSINGS) {
		f->sent -= kept->sent;
		f->lost -= kept->lost;
	}
	kept->lost = ab_min_u32(ab_since(v->total_retrans, f->retrans), SBD_PACKETS_MAX);
	kept->sent = ab_min_u32(ab_since((u32)v->delivered, f->delivered), SBD_PACKETS_MAX) + kept->lost;
	f->sent += kept->sent;
	f->lost += kept->lost;
	f->next_losses = (u8)(slot + 1 < SBD_CROSSINGS ? slot + 1 : 0);
}

/* Has the mean of an interval left the band, on the other side than the last time? var_ns * 700 < 2^42. */
AB_INLINE void sbd_note_crossing(struct sbd_flow *f, u32 mean_us, u32 var_ns)
{
	u64 band_us = (u64)var_ns * SBD_P_V_PERMILLE / 1000000, middle_us = sbd_long_mean_us(f);
	u32 side = mean_us > middle_us + band_us   ? SBD_ABOVE
		   : mean_us + band_us < middle_us ? SBD_BELOW
						   : SBD_NEITHER;
	u32 crosses = side && f->side && side != f->side;

	f->crossings -= (u32)(f->crossing_mask >> SBD_OLDEST_CROSSING & 1);
	f->crossings += crosses;
	f->crossing_mask = (f->crossing_mask << 1 | crosses) & SBD_CROSSING_MASK;
	if (side)
		f->side = (u8)side;
}

AB_INLINE void sbd_end_interval(struct sbd_flow *f, const struct ab_view *v)
{
	u32 mean_us = f->samples ? (u32)(f->delays_us / f->samples) : f->last_mean_us;

	sbd_keep_interval(f, mean_us);
	sbd_keep_losses(f, v);
	if (f->intervals < SBD_CROSSINGS)
		f->intervals++;
	sbd_note_crossing(f, mean_us, sbd_figures(f).var_ns);
	f->last_mean_us = mean_us;
}

/*
 * One sample, at rtt_sample. Returns 1 if it is the first of an interval, so that there are new figures.
 * delays_us: 32767 * 2^32 < 2^47.
 */
AB_INLINE u32 sbd_sample(struct sbd_flow *f, const struct ab_view *v)
{
	u32 source = v->owd_valid ? SBD_ONE_WAY : SBD_ROUND_TRIP;
	u32 sample_us = v->owd_valid ? v->owd_us : v->rtt_us, delay_us, mean_us, ended = 0;
	u64 elapsed_us = v->now_us - f->start_us;

	if (f->source != source || elapsed_us >= SBD_FORGET_US) {
		sbd_restart(f, v, sample_us, source);
		ended = 1;
	} else if (elapsed_us >= SBD_INTERVAL_US) {
		sbd_end_interval(f, v);
		sbd_begin_interval(f, v, v->now_us - elapsed_us % SBD_INTERVAL_US);
		ended = 1;
	}
	if (f->samples >= SBD_SAMPLES_MAX)
		return ended;
	delay_us = ab_since(sample_us, ab_since(f->reference_us, SBD_MIDDLE));
	f->samples++;
	f->delays_us += delay_us;
	if (!f->intervals)
		return ended;
	mean_us = sbd_long_mean_us(f);
	f->below += delay_us < mean_us;
	f->above += delay_us > mean_us;
	mean_us = f->last_mean_us;
	f->deviations_us +=
	    ab_min_u32(delay_us > mean_us ? delay_us - mean_us : mean_us - delay_us, SBD_DEVIATION_MAX);
	return ended;
}

/* Does the flow pass a bottleneck, given whether it did at the last decision? */
AB_INLINE u32 sbd_passes_bottleneck(const struct sbd_figures *s, u32 did)
{
	return s->ready && (s->skew_q16 <= SBD_C_S_Q16 || (did && s->skew_q16 <= SBD_C_H_Q16) ||
			    s->loss_q16 > SBD_P_L_Q16);
}

/* The steps of the split, in order. */
enum sbd_step { SBD_BY_FREQ = 0, SBD_BY_VAR = 1, SBD_BY_SKEW = 2, SBD_BY_LOSS = 3, SBD_STEPS = 4 };

/*
 * Are two flows neighbours at this step? To split a sorted row where neighbours are too far apart is to join
 * all pairs that are close: of three in a row, the outer two are close only if the middle one is close to
 * both, and that holds for the relative distances too.
 */
AB_INLINE u32 sbd_close(u32 step, const struct sbd_figures *a, const struct sbd_figures *b)
{
	u32 x = a->crossings, y = b->crossings, larger, apart;

	if (step == SBD_BY_VAR) {
		x = a->var_ns;
		y = b->var_ns;
	} else if (step == SBD_BY_SKEW) {
		x = a->skew_q16;
		y = b->skew_q16;
	} else if (step == SBD_BY_LOSS) {
		x = a->loss_q16;
		y = b->loss_q16;
	}
	larger = ab_max_u32(x, y);
	apart = larger - ab_min_u32(x, y);
	if (step == SBD_BY_FREQ)
		return apart < SBD_P_F_CROSSINGS;
	if (step == SBD_BY_SKEW)
		return apart <= SBD_P_S_Q16;
	return (u64)apart * SBD_P_DIVISOR < larger || (step == SBD_BY_LOSS && larger <= SBD_P_L_Q16);
}

/* The members of each flow's group: those of `flows` that pass a bottleneck, by the figures they publish. */
AB_INLINE void sbd_groups(const struct ab_peer *peers, u32 flows, u8 group[AB_MAX_PEERS])
{
	u32 step, j, k, close;
	struct sbd_figures a, b;
	u8 before[AB_MAX_PEERS];

	for (k = 0; k < AB_MAX_PEERS; k++)
		group[k] = (u8)((flows >> k & 1) * flows);
	for (step = 0; step < SBD_STEPS; step++) {
		for (k = 0; k < AB_MAX_PEERS; k++) {
			before[k] = group[k];
			group[k] = (u8)(1u << k);
		}
		for (k = 1; k < AB_MAX_PEERS; k++) {
			b = sbd_published(&peers[k]);
			for (j = 0; j < k; j++) {
				a = sbd_published(&peers[j]);
				close = ab_forget(sbd_close(step, &a, &b) & (u32)before[k] >> j);
				ab_join_groups(group, j, k, close);
			}
		}
	}
}

#endif
