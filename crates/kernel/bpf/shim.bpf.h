/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The kernel's side of the contract: a struct_ops congestion control made of an algorithm of
 * algorithms/. The build writes one source per algorithm:
 *   #define AB_SHIM_NAME lia
 *   #define AB_SHIM_COUPLED 1
 *   #define AB_SHIM_RATE 0
 *   #include "lia.h"
 *   #include "shim.bpf.h"
 *
 * Which hook makes which event, and what this host cannot see, is in docs/kernel.md.
 */
#include "track.h"
#include "record.h"
#include "route.h"
#if AB_SHIM_COUPLED
#include "conn.h"
#endif

#define AB_KERNEL_NAME AB_PASTE(ab_, AB_SHIM_NAME)

/* AB_HANDLES_<event>: 0 if the algorithm's handler is ab_ignore. */
#define AB_MARK_ab_ignore              ~, 0
#define AB_SECOND(first, second, ...)  second
#define AB_EXPAND_SECOND(...)          AB_SECOND(__VA_ARGS__)
#define AB_HANDLES_ROW(event, handler) AB_HANDLES_##event = AB_EXPAND_SECOND(AB_MARK_##handler, 1, ~),
enum ab_handles { AB_SHIM_EVENT_TABLE(AB_HANDLES_ROW) };

AB_STATIC_ASSERT(AB_SHIM_RATE ? !AB_HANDLES_ack : !AB_HANDLES_rate,
		 "the kind of the registry is that of the events");

static __always_inline u32 ab_run(struct ab_frame *frame, enum ab_shim_event event)
{
	switch (event) {
#define AB_RUN_CASE(event_)                                                                                  \
	case AB_EVENT_##event_:                                                                              \
		return AB_HANDLES_##event_ ? ab_run_##event_(frame) : 0;
		AB_SHIM_EVENTS(AB_RUN_CASE)
	default:
		return 0;
	}
}

static __always_inline int ab_handled(enum ab_shim_event event)
{
	switch (event) {
#define AB_HANDLED_CASE(event_)                                                                              \
	case AB_EVENT_##event_:                                                                              \
		return AB_HANDLES_##event_;
		AB_SHIM_EVENTS(AB_HANDLED_CASE)
	default:
		return 0;
	}
}

/* Copies the hot state into the frame, so that a repeated call starts from the same. */
static __always_inline void ab_load_state(struct sock *sk, struct ab_subflow *s)
{
	const struct ab_priv *priv = ab_priv(sk);
	u32 k;

#pragma clang loop unroll(full) /* the private area takes constant offsets only */
	for (k = 0; k < AB_HOT_WORDS; k++)
		s->frame.state[k] = priv->state[k];
	s->frame.out = (struct ab_out){};
}

#if AB_SHIM_COUPLED
/* The cold state lives in the frame; it is copied before the first attempt at a call and back before others.
 */
static __always_inline void ab_keep_cold(struct ab_subflow *s, u32 attempt)
{
	u32 k;

	if (attempt) {
		for (k = 0; k < AB_COLD_WORDS; k++)
			s->frame.cold[k] = s->cold[k];
	} else {
		for (k = 0; k < AB_COLD_WORDS; k++)
			s->cold[k] = s->frame.cold[k];
	}
}
#endif

/* Applies the answer: state, window, ssthresh, pacing. The window is at least 1 and at most the clamp. */
static __always_inline void ab_apply(struct sock *sk, struct ab_subflow *s)
{
	struct tcp_sock *tp = ab_tp(sk);
	struct ab_priv *priv = ab_priv(sk);
	const struct ab_out *out = &s->frame.out;
	u32 k;

#pragma clang loop unroll(full)
	for (k = 0; k < AB_HOT_WORDS; k++)
		priv->state[k] = s->frame.state[k];
	if (out->mask & AB_OUT_CWND)
		tp->snd_cwnd = ab_max_u32(ab_min_u32(out->cwnd, tp->snd_cwnd_clamp), 1);
	if (out->mask & AB_OUT_CWND_CNT)
		tp->snd_cwnd_cnt = out->cwnd_cnt;
	if (out->mask & AB_OUT_SSTHRESH)
		tp->snd_ssthresh = ab_max_u32(out->ssthresh, 1);
#if AB_SHIM_RATE
	if (out->mask & AB_OUT_PACING) {
		sk->sk_pacing_rate = ab_min_u64(out->pacing_bytes_per_s, sk->sk_max_pacing_rate);
		/* Without fq on the device TCP paces itself, once it is told to. */
		if (sk->sk_pacing_status == SK_PACING_NONE)
			sk->sk_pacing_status = SK_PACING_NEEDED;
	}
#endif
}

/* One handler call on a filled view: its answer for `loss` and `undo`, else 0. */
static __noinline u32 ab_call(struct sock *sk, struct ab_subflow *s, u32 event)
{
	struct ab_record *record = ab_record_begin();
	u32 answer = 0;
#if AB_SHIM_COUPLED
	const struct ab_out *out = &s->frame.out;
	u32 attempt, usable;

	for (attempt = 0; attempt < AB_COMMIT_TRIES; attempt++) {
		ab_load_state(sk, s);
		ab_keep_cold(s, attempt);
		ab_begin(sk, s);
		ab_record_before(record, s);
		answer = ab_run(&s->frame, event);
		if (event == AB_EVENT_loss)
			s->own.ssthresh = answer;
		if (event == AB_EVENT_undo)
			s->own.cwnd = answer;
		if (out->mask & AB_OUT_CWND)
			s->own.cwnd = out->cwnd;
		if (out->mask & AB_OUT_SSTHRESH)
			s->own.ssthresh = out->ssthresh;
		if (out->mask & AB_OUT_PUB)
			__builtin_memcpy(s->own.pub, out->pub, sizeof(out->pub));
		if (ab_commit(sk, s))
			break;
	}
	if (attempt == AB_COMMIT_TRIES)
		AB_COUNT(dropped_writes);
	usable = s->frame.view.n_usable;
	asm volatile("" : "+r"(usable)); /* the verifier bounds a register, not what is read again */
	if (usable <= AB_MAX_PEERS)
		AB_COUNT(by_usable[usable]);
#else
	ab_load_state(sk, s);
	answer = ab_run(&s->frame, event);
#endif
	ab_record_end(record, sk, s, event, answer);
	ab_apply(sk, s);
	return answer;
}

/* An event on a filled view; joins and leaves of peers since the last one come first. */
static __always_inline u32 ab_event(struct sock *sk, struct ab_subflow *s, enum ab_shim_event event)
{
	AB_COUNT(events[event]);
#if AB_SHIM_COUPLED
	ab_fill_own(sk, s);
	if (!ab_handled(event)) {
		ab_publish(sk, s);
		return 0;
	}
#endif
	return ab_handled(event) ? ab_call(sk, s, event) : 0;
}

/* Reports peers that have come or gone since the last look, one event for all of them. Fills the view. */
static __always_inline void ab_peer_events(struct sock *sk, struct ab_subflow *s)
{
#if AB_SHIM_COUPLED
	u32 found = ab_look(sk, s);

	ab_fill_view(sk, s);
	if (found & AB_SOMEBODY_LEFT)
		ab_event(sk, s, AB_EVENT_peer_leave);
	if (found & AB_SOMEBODY_JOINED)
		ab_event(sk, s, AB_EVENT_peer_join);
	if (!found)
		return;
#endif
	ab_fill_view(sk, s);
}

SEC("struct_ops") void ab_hook_init(u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct ab_priv *priv = ab_priv(sk);
	struct ab_subflow *s;
	u32 k;

#pragma clang loop unroll(full)
	for (k = 0; k < AB_HOT_WORDS; k++)
		priv->state[k] = 0;
	priv->has_slot = 0;
	priv->ece = 0;
	ab_obey_route(sk);
	bpf_sk_storage_delete(&ab_subflows, sk);
	s = bpf_sk_storage_get(&ab_subflows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!s) {
		AB_COUNT(no_memory);
		return;
	}
	ab_track_init(sk, &s->track);
#if AB_SHIM_COUPLED
	ab_join(sk, s);
#endif
	ab_fill_view(sk, s);
	ab_event(sk, s, AB_EVENT_init);
}

SEC("struct_ops") void ab_hook_release(u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct ab_subflow *s = ab_storage(sk);

	if (s) {
		ab_peer_events(sk, s);
		ab_event(sk, s, AB_EVENT_release);
	}
#if AB_SHIM_COUPLED
	ab_leave(sk);
#endif
	bpf_sk_storage_delete(&ab_subflows, sk);
}

SEC("struct_ops") void ab_hook_pkts_acked(u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	const struct ack_sample *sample = (const struct ack_sample *)ctx[1];
	struct ab_subflow *s = ab_storage(sk);

	if (!s)
		return;
	ab_track_ack(sk, &s->track, sample);
	if (!s->track.rtt_us)
		return;
	if (AB_SHIM_COUPLED || AB_HANDLES_rtt_sample) { /* else nobody looks at the view */
		ab_peer_events(sk, s);
		ab_fill_ack(sk, s);
	}
	ab_event(sk, s, AB_EVENT_rtt_sample);
}

SEC("struct_ops") void ab_hook_in_ack_event(u64 *ctx)
{
	ab_priv((struct sock *)ctx[0])->ece = (ctx[1] & CA_ACK_ECE) != 0;
}

#if AB_SHIM_RATE
SEC("struct_ops") void ab_hook_cong_control(u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	const struct rate_sample *rs = ab_rate_sample(ctx);
	struct ab_subflow *s = ab_storage(sk);

	if (!s)
		return;
	ab_peer_events(sk, s);
	ab_fill_ack(sk, s);
	ab_fill_rate(sk, s, rs);
	s->frame.view.ece = ab_priv(sk)->ece;
	ab_event(sk, s, AB_EVENT_rate);
}

/* At least so many segments in a burst. */
SEC("struct_ops") u32 ab_hook_min_tso_segs(u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];

	return sk->sk_pacing_rate < AB_ONE_SEGMENT_BELOW ? 1 : 2;
}

/* Windows for the send buffer: one in flight, one to be paced, one for the recovery of what is lost. */
SEC("struct_ops") u32 ab_hook_sndbuf_expand(u64 *ctx)
{
	(void)ctx;
	return 3;
}
#else
SEC("struct_ops") void ab_hook_cong_avoid(u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct ab_subflow *s = ab_storage(sk);

	if (!s || !s->track.advances)
		return;
	ab_peer_events(sk, s);
	s->track.acked_sacked = (u32)ctx[2];
	s->track.acked = ab_min_u32(s->track.acked, s->track.acked_sacked);
	ab_fill_ack(sk, s);
	s->frame.view.ece = ab_priv(sk)->ece;
	ab_event(sk, s, AB_EVENT_ack);
}
#endif

SEC("struct_ops") u32 ab_hook_ssthresh(u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct ab_subflow *s = ab_storage(sk);

	if (!s)
		return ab_max_u32(ab_tp(sk)->snd_cwnd >> 1, 2);
	ab_peer_events(sk, s);
	ab_track_loss(sk, &s->track);
	return ab_max_u32(ab_event(sk, s, AB_EVENT_loss), 1);
}

SEC("struct_ops") u32 ab_hook_undo_cwnd(u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct tcp_sock *tp = ab_tp(sk);
	struct ab_subflow *s = ab_storage(sk);

	if (!s)
		return ab_max_u32(tp->snd_cwnd, tp->prior_cwnd);
	ab_peer_events(sk, s);
	return ab_max_u32(ab_event(sk, s, AB_EVENT_undo), 1);
}

SEC("struct_ops") void ab_hook_set_state(u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	u8 state = (u8)ctx[1];
	struct ab_subflow *s = ab_storage(sk);

	if (!s)
		return;
	ab_peer_events(sk, s);
	s->frame.view.ca_state = state; /* the socket still shows the state it leaves */
	if (state == AB_CA_LOSS) {
		ab_event(sk, s, AB_EVENT_rto);
	} else if (state == AB_CA_CWR && ab_priv(sk)->ece) {
		s->frame.view.ece = 1;
		ab_event(sk, s, AB_EVENT_ecn);
	} else {
#if AB_SHIM_COUPLED
		ab_fill_own(sk, s);
		ab_publish(sk, s);
#endif
	}
}

SEC("struct_ops") void ab_hook_cwnd_event(u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	u32 what = (u32)ctx[1];
	struct ab_subflow *s;
	u64 idle_us;

	if (what != CA_EVENT_COMPLETE_CWR && what != CA_EVENT_TX_START)
		return;
	s = ab_storage(sk);
	if (!s)
		return;
	ab_peer_events(sk, s);
	if (what == CA_EVENT_COMPLETE_CWR) {
		ab_event(sk, s, AB_EVENT_recovery_exit);
		return;
	}
	idle_us = s->frame.view.now_us - s->track.last_send_us;
	s->frame.view.idle_us = (u32)ab_min_u64(idle_us, AB_U32_MAX);
	ab_event(sk, s, AB_EVENT_idle_restart);
}

SEC(".struct_ops")
struct tcp_congestion_ops AB_KERNEL_NAME = {
    .init = (void *)ab_hook_init,
    .release = (void *)ab_hook_release,
    .pkts_acked = (void *)ab_hook_pkts_acked,
    .in_ack_event = (void *)ab_hook_in_ack_event,
#if AB_SHIM_RATE
    .cong_control = (void *)ab_hook_cong_control,
    .min_tso_segs = (void *)ab_hook_min_tso_segs,
    .sndbuf_expand = (void *)ab_hook_sndbuf_expand,
#else
    .cong_avoid = (void *)ab_hook_cong_avoid,
#endif
    .ssthresh = (void *)ab_hook_ssthresh,
    .undo_cwnd = (void *)ab_hook_undo_cwnd,
    .set_state = (void *)ab_hook_set_state,
    .cwnd_event = (void *)ab_hook_cwnd_event,
    .flags = TCP_CONG_NON_RESTRICTED,
    .name = AB_STRING(AB_KERNEL_NAME),
};

char ab_license[] SEC("license") = "Dual MIT/GPL";
