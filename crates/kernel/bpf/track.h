/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What the shim keeps per socket, and how it fills the view from the kernel's own structures. */
#ifndef ANABRANCH_TRACK_H
#define ANABRANCH_TRACK_H

#include "counters.h"
#include "anabranch/fixedpoint.h"
#include "frame.h"

/* What the kernel does not keep, or shows at another event only. */
struct ab_track {
	u64 last_send_us;
	u64 last_ack_us; /* last ACK of new data */
	u64 acked_bytes; /* bytes_acked at that ACK */
	u64 loss_bytes;  /* bytes_acked at the last loss */
	u64 bytes_between_losses;
	u64 conn_version;     /* of the copy in the frame */
	u64 delivered_before; /* the kernel's `delivered`, which has 32 bits, before the ACK being handled */
	u32 membership;       /* of the connection, at the last look */
	u32 generation[AB_MAX_PEERS]; /* of each slot at that look, 0: free */
	u32 round_end_seq;
	u32 delivered; /* before the ACK being handled, as the kernel counts */
	u32 lost;      /* before the ACK being handled */
	u32 loss_events;
	/* From pkts_acked to cong_avoid of the same ACK: */
	u32 rtt_us; /* 0: no sample */
	u32 acked;
	u32 acked_sacked;
	u32 rs_delivered; /* since the sampled packet was sent */
	u32 ack_gap_us;
	u32 acked_bytes_gap;
	u32 owd_us;
	u8 owd_valid;
	u8 advances; /* the ACK acknowledges something cumulatively */
	u8 round_start;
};

/*
 * Socket storage, not a per-CPU scratch area: a handler in process context can be interrupted by one of
 * another socket on the same CPU. The calls of one socket are serialised by its lock.
 */
struct ab_subflow {
	struct ab_frame frame;
	struct ab_track track;
	struct ab_peer own; /* what this subflow publishes */
	/* The cold part before the call, if it has to be repeated. Uncoupled calls never are. */
	u64 cold[AB_SHIM_COUPLED ? AB_COLD_WORDS : 0];
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct ab_subflow);
} ab_subflows SEC(".maps");

/* The socket's private area: the hot state, and the identity in what the contract leaves of 104 bytes. */
struct ab_priv {
	u64 state[AB_HOT_WORDS];
	u32 token;
	u8 slot;
	u8 has_slot;
	u8 ece; /* the ACK being handled echoes a mark */
	u8 reserved[9];
};

AB_STATIC_ASSERT(sizeof(struct ab_priv) == sizeof(((struct inet_connection_sock *)0)->icsk_ca_priv),
		 "state, token and slot fill the private area");

static __always_inline struct ab_priv *ab_priv(struct sock *sk)
{
	return (struct ab_priv *)ab_icsk(sk)->icsk_ca_priv;
}

static __always_inline struct ab_subflow *ab_storage(struct sock *sk)
{
	return bpf_sk_storage_get(&ab_subflows, sk, 0, 0);
}

/*
 * The time at which TCP began to handle the packet, timer or write that leads here. Reading the clock again
 * would cost more than most handlers.
 */
static __always_inline u64 ab_now_us(struct sock *sk)
{
	return ab_tp(sk)->tcp_mstamp;
}

/* RFC 6675's pipe, in packets. */
static __always_inline u32 ab_in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

/* The window limits the sender: the flag of the last send, or in slow start, half of it was in use. */
static __always_inline u8 ab_cwnd_limited(const struct tcp_sock *tp)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return 1;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

/* The view of an event that no ACK of new data has caused. */
static __noinline void ab_fill_view(struct sock *sk, struct ab_subflow *s)
{
	struct tcp_sock *tp = ab_tp(sk);
	struct ab_view *v = &s->frame.view;
	u32 min_rtt_us = tp->rtt_min.s[0].v;

	v->now_us = ab_now_us(sk);
	v->bytes_acked = tp->bytes_acked;
	v->delivered = s->track.delivered_before + (u32)(tp->delivered - s->track.delivered);
	v->cwnd = tp->snd_cwnd;
	v->cwnd_cnt = tp->snd_cwnd_cnt;
	v->cwnd_clamp = tp->snd_cwnd_clamp;
	v->ssthresh = tp->snd_ssthresh;
	v->prior_cwnd = tp->prior_cwnd;
	v->in_flight = ab_in_flight(tp);
	v->total_retrans = tp->total_retrans;
	v->mss = tp->mss_cache;
	v->srtt8_us = tp->srtt_us;
	v->mdev4_us = tp->mdev_us;
	v->min_rtt_us = min_rtt_us == ~0u ? 0 : min_rtt_us;
	v->delivered_ce = tp->delivered_ce;
	v->random = bpf_get_prandom_u32();
	v->ca_state = BPF_CORE_READ_BITFIELD(ab_icsk(sk), icsk_ca_state);
	v->cwnd_limited = ab_cwnd_limited(tp);
	v->app_limited = tp->app_limited != 0;

	v->prior_in_flight = v->in_flight;
	v->rs_prior_delivered = 0;
	v->acked = 0;
	v->acked_sacked = 0;
	v->newly_lost = 0;
	v->rtt_us = 0;
	v->rtt_valid = 0;
	v->round_start = 0;
	v->ack_gap_us = 0;
	v->acked_bytes_gap = 0;
	v->idle_us = 0;
	v->owd_us = 0;
	v->owd_valid = 0;
	v->ece = 0;
	v->self = 0;
	v->n_usable = 1;
}

/* Adds what is known about the ACK being handled, with `acked_sacked` packets newly acknowledged or SACKed.
 */
static __always_inline void ab_fill_ack(struct sock *sk, struct ab_subflow *s)
{
	const struct ab_track *t = &s->track;
	struct ab_view *v = &s->frame.view;

	v->rs_prior_delivered = v->delivered - ab_min_u64(t->rs_delivered, v->delivered);
	v->acked = t->acked;
	v->acked_sacked = t->acked_sacked;
	v->newly_lost = ab_tp(sk)->lost - t->lost;
	/* What is not in flight any more was, before this ACK; what it made the sender send is not yet out.
	 */
	v->prior_in_flight = v->in_flight + v->acked_sacked + v->newly_lost;
	v->rtt_us = t->rtt_us;
	v->rtt_valid = t->rtt_us > 0;
	v->round_start = t->round_start;
	v->ack_gap_us = t->ack_gap_us;
	v->acked_bytes_gap = t->acked_bytes_gap;
	v->owd_us = t->owd_us;
	v->owd_valid = t->owd_valid;
}

/*
 * The peer's time of sending the ACK minus the own time of sending what it echoes (RFC 7323), if the ACK has
 * the timestamps option. The peer's clock begins anywhere, so only differences mean anything; times 1000 they
 * remain right modulo 2^32.
 */
static __always_inline void ab_track_delay(struct sock *sk, struct ab_track *t)
{
	struct tcp_sock *tp = ab_tp(sk);

	t->owd_us = (tp->rx_opt.rcv_tsval - tp->rx_opt.rcv_tsecr) * ab_timestamp_tick_us(sk);
	t->owd_valid = BPF_CORE_READ_BITFIELD(tp, rx_opt.saw_tstamp) && tp->rx_opt.rcv_tsecr;
}

#if AB_SHIM_RATE
/* Adds the kernel's rate sample of the ACK. */
static __always_inline void ab_fill_rate(struct sock *sk, struct ab_subflow *s, const struct rate_sample *rs)
{
	struct ab_view *v = &s->frame.view;

	v->acked_sacked = rs->acked_sacked;
	v->prior_in_flight = rs->prior_in_flight;
	v->rs_losses = rs->losses > 0 ? (u32)rs->losses : 0;
	v->rs_app_limited = rs->is_app_limited;
	v->rs_snd_us = rs->snd_interval_us;
	v->rs_rcv_us = rs->rcv_interval_us;
	v->rs_delivered = 0;
	v->rs_interval_us = 0;
	if (rs->delivered < 0 || rs->interval_us <= 0)
		return;
	v->rs_delivered = (u32)rs->delivered;
	v->rs_interval_us = (u32)rs->interval_us;
	v->rs_prior_delivered = v->delivered - (u32)(ab_tp(sk)->delivered - rs->prior_delivered);
}
#endif

/* Notes what an ACK brings. A round ends when data sent after its beginning is acknowledged (snd_nxt then).
 */
static __always_inline void ab_track_ack(struct sock *sk, struct ab_track *t, const struct ack_sample *sample)
{
	struct tcp_sock *tp = ab_tp(sk);
	u64 now_us = ab_now_us(sk), bytes = tp->bytes_acked - t->acked_bytes;
	u32 una = tp->snd_una, mss = tp->mss_cache, delivered = tp->delivered;

	t->rtt_us = sample->rtt_us > 0 ? (u32)sample->rtt_us : 0;
	t->acked_sacked = delivered - t->delivered;
	/* The sample counts what earlier ACKs have SACKed too. */
	t->acked = ab_min_u32(sample->pkts_acked, t->acked_sacked);
	t->advances = sample->pkts_acked > 0;
	t->delivered_before += t->acked_sacked;
	t->delivered = delivered;
	t->lost = tp->lost;
	t->last_send_us = tp->tcp_wstamp_ns / 1000;
	/* The sample's in_flight is what was delivered since its packet was sent, in bytes of whole packets.
	 */
	t->rs_delivered = mss ? sample->in_flight / mss : 0;
	t->round_start = 0;
	t->ack_gap_us = 0;
	t->acked_bytes_gap = 0;
	ab_track_delay(sk, t);
	if (!bytes)
		return;
	if ((int)(una - t->round_end_seq) >= 0) {
		t->round_start = 1;
		t->round_end_seq = tp->snd_nxt;
	}
	t->ack_gap_us = (u32)(now_us - t->last_ack_us);
	t->acked_bytes_gap = (u32)bytes;
	t->last_ack_us = now_us;
	t->acked_bytes += bytes;
}

static __always_inline void ab_track_init(struct sock *sk, struct ab_track *t)
{
	struct tcp_sock *tp = ab_tp(sk);

	t->last_send_us = bpf_ktime_get_ns() / 1000; /* TCP may not have looked at the clock yet */
	t->last_ack_us = t->last_send_us;
	t->acked_bytes = tp->bytes_acked;
	t->loss_bytes = tp->bytes_acked;
	t->round_end_seq = tp->snd_nxt;
	t->delivered = tp->delivered;
	t->delivered_before = tp->delivered;
	t->lost = tp->lost;
}

static __always_inline void ab_track_loss(struct sock *sk, struct ab_track *t)
{
	u64 bytes = ab_tp(sk)->bytes_acked;

	t->bytes_between_losses = bytes - t->loss_bytes;
	t->loss_bytes = bytes;
	t->loss_events++;
}

/* What the peers will see of this subflow. */
static __always_inline void ab_fill_own(struct sock *sk, struct ab_subflow *s)
{
	const struct ab_view *v = &s->frame.view;
	const struct ab_track *t = &s->track;
	struct ab_peer *own = &s->own;

	own->bytes_since_loss = v->bytes_acked - t->loss_bytes;
	own->bytes_between_losses = t->bytes_between_losses;
	own->cwnd = v->cwnd;
	own->ssthresh = v->ssthresh;
	own->mss = v->mss;
	own->srtt8_us = v->srtt8_us;
	own->base_rtt_us = v->min_rtt_us;
	own->loss_events = t->loss_events;
	own->retrans = v->total_retrans;
	own->usable = 1;
	own->backup = ab_mptcp_backup(sk);
	own->in_slow_start = v->cwnd < v->ssthresh;
	own->ca_state = v->ca_state;
}

#endif
