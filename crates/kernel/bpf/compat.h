/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Everything that depends on the version or configuration of the kernel, each with the version.
 * Offsets and bit positions need no entry here: CO-RE follows them.
 */
#ifndef ANABRANCH_COMPAT_H
#define ANABRANCH_COMPAT_H

#include "kernel_types.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

/* 6.2: reads a kernel object through a typed pointer; a bad pointer reads as zero. */
extern void *bpf_rdonly_cast(const void *object, u32 btf_id) __ksym;
#define AB_CAST(pointer, type)                                                                               \
	((struct type *)bpf_rdonly_cast((pointer), bpf_core_type_id_kernel(struct type)))

static __always_inline struct tcp_sock *ab_tp(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline struct inet_connection_sock *ab_icsk(struct sock *sk)
{
	return (struct inet_connection_sock *)sk;
}

/* 5.6: the MPTCP context of a subflow. 0 for plain TCP and on a kernel built without CONFIG_MPTCP. */
static __always_inline struct mptcp_subflow_context *ab_subflow_context(struct sock *sk)
{
	if (!bpf_core_field_exists(struct tcp_sock, is_mptcp) || !ab_tp(sk)->is_mptcp)
		return 0;
	return AB_CAST(ab_icsk(sk)->icsk_ulp_data, mptcp_subflow_context);
}

/* 5.6: the connection's token, as `ss -M` shows it; 0 if there is none. */
static __always_inline u32 ab_mptcp_token(struct sock *sk)
{
	struct mptcp_subflow_context *context = ab_subflow_context(sk);

	return context ? AB_CAST(context->conn, mptcp_sock)->token : 0;
}

/* 5.7: either side has declared the subflow a backup (MP_JOIN flag B or MP_PRIO). */
static __always_inline u8 ab_mptcp_backup(struct sock *sk)
{
	struct mptcp_subflow_context *context = ab_subflow_context(sk);

	if (!context)
		return 0;
	return BPF_CORE_READ_BITFIELD(context, backup) || BPF_CORE_READ_BITFIELD(context, request_bkup);
}

extern int LINUX_KERNEL_VERSION __kconfig; /* the loader fills it in, and the verifier sees a constant */
#define AB_VERSION(major, minor) (((major) << 16) + ((minor) << 8))

/* 6.10: cong_control(sk, rs) became cong_control(sk, ack, flag, rs). */
static __always_inline const struct rate_sample *ab_rate_sample(const u64 *ctx)
{
	const struct rate_sample *rs;

	/* Two loads at constant offsets: the verifier takes no other of the context. */
	if (LINUX_KERNEL_VERSION >= AB_VERSION(6, 10)) {
		rs = (const struct rate_sample *)ctx[3];
		asm volatile("" : "+r"(rs));
	} else {
		rs = (const struct rate_sample *)ctx[1];
		asm volatile("" : "+r"(rs));
	}
	return rs;
}

/* 6.7: timestamps of a route with the feature tcp_usec_ts tick in microseconds; else in milliseconds. */
static __always_inline u32 ab_timestamp_tick_us(struct sock *sk)
{
	struct tcp_sock *tp = ab_tp(sk);

	return bpf_core_field_exists(tp->tcp_usec_ts) && BPF_CORE_READ_BITFIELD(tp, tcp_usec_ts) ? 1 : 1000;
}

/*
 * 6.15: in_ack_event moved behind pkts_acked within the handling of one ACK. It is before cong_avoid and
 * before any change of state in all versions, so its flags are used there only.
 */

#endif
