/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The kernel types the shim touches, with only the fields it uses. `preserve_access_index` makes the
 * compiler record every access by name; the loader rewrites the offsets for the running kernel from its
 * BTF. Bit-fields are read with BPF_CORE_READ_BITFIELD only: a plain access would use the offsets here.
 */
#ifndef ANABRANCH_KERNEL_TYPES_H
#define ANABRANCH_KERNEL_TYPES_H

#include "anabranch/types.h"

/* Names that the headers of libbpf expect. */
typedef u8 __u8;
typedef u16 __u16;
typedef u32 __u32;
typedef u64 __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef u16 __be16;
typedef u32 __be32;
typedef u32 __wsum;

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
};

enum { BPF_NOEXIST = 1, BPF_F_NO_PREALLOC = 1, BPF_SK_STORAGE_GET_F_CREATE = 1 };

struct bpf_spin_lock {
	u32 val;
};

enum tcp_ca_event {
	CA_EVENT_TX_START = 0,
	CA_EVENT_CWND_RESTART = 1,
	CA_EVENT_COMPLETE_CWR = 2,
};

enum { CA_ACK_ECE = 4 };
/* Of setsockopt(2), and what BPF adds to it. */
enum { SOL_TCP = 6, TCP_BPF_SNDCWND_CLAMP = 1002 };
/* Of rtnetlink(7): numbers of a route's metrics, each one more than its place in the array. */
enum { RTAX_LOCK = 1, RTAX_SSTHRESH = 6, RTAX_CWND = 7 };
enum { TCP_CONG_NON_RESTRICTED = 1 };
enum { SK_PACING_NONE = 0, SK_PACING_NEEDED = 1 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct dst_metrics {
	u32 metrics[17];
};

struct dst_entry {
	unsigned long _metrics; /* a pointer with flags in its two lowest bits */
};

struct sock {
	struct dst_entry *sk_dst_cache;
	unsigned long sk_pacing_rate; /* bytes per second */
	unsigned long sk_max_pacing_rate;
	u32 sk_pacing_status;
};

struct inet_connection_sock {
	void *icsk_ulp_data;
	u8 icsk_ca_state : 5;
	u64 icsk_ca_priv[13];
};

struct minmax_sample {
	u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_options_received {
	u16 saw_tstamp : 1;
	u32 rcv_tsval;
	u32 rcv_tsecr;
};

struct tcp_sock {
	u64 bytes_acked;
	u64 tcp_wstamp_ns;
	u64 tcp_mstamp;
	u32 snd_cwnd;
	u32 snd_cwnd_cnt;
	u32 snd_cwnd_clamp;
	u32 snd_ssthresh;
	u32 prior_cwnd;
	u32 snd_una;
	u32 snd_nxt;
	u32 packets_out;
	u32 max_packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 total_retrans;
	u32 delivered;
	u32 delivered_ce;
	u32 lost;
	u32 app_limited;
	u32 mss_cache;
	u32 srtt_us;
	u32 mdev_us;
	struct minmax rtt_min;
	struct tcp_options_received rx_opt;
	u8 tcp_usec_ts : 1;
	u8 is_cwnd_limited : 1;
	_Bool is_mptcp;
};

struct ack_sample {
	u32 pkts_acked;
	int rtt_us;
	u32 in_flight;
};

struct rate_sample {
	u32 prior_delivered;
	int delivered;
	long interval_us; /* negative: not reliable */
	u32 snd_interval_us;
	u32 rcv_interval_us;
	int losses;
	u32 acked_sacked;
	u32 prior_in_flight;
	_Bool is_app_limited;
};

struct mptcp_sock {
	u32 token;
};

struct mptcp_subflow_context {
	struct sock *conn;
	u32 backup : 1;
	u32 request_bkup : 1;
};

/* The members named here are matched by name with the kernel's table; it has more. */
struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*min_tso_segs)(struct sock *sk);
	void (*cong_control)(struct sock *sk, u32 ack, int flag,
			     const struct rate_sample *rs); /* since 6.10 */
	u32 (*undo_cwnd)(struct sock *sk);
	u32 (*sndbuf_expand)(struct sock *sk);
	char name[16];
	u32 flags;
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
};

#pragma clang attribute pop

#endif
