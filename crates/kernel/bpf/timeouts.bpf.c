/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Tells of each retransmission timeout of a subflow of Multipath TCP of one network namespace, when its
 * packet has been sent again.
 *
 * It is attached to the tracepoint tcp:tcp_retransmit_skb, which every kernel with tracepoints has, whatever
 * the compiler has made of the functions around it. TCP_CA_Loss with at least one timeout in a row is a
 * timeout, or a further retransmission before anything has been acknowledged: the count says which. Not told:
 * timeouts whose packet could not be sent (the link is down, which rtnetlink tells), and a probe of the tail
 * (TLP), which is no timeout.
 */
#include "kernel_types.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

enum { TCP_CA_LOSS = 4 };

/* What kernel_types.h leaves out; the part of a name behind three underscores does not count. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	u32 inum;
};

struct net {
	struct ns_common ns;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct sock_common {
	__be16 skc_dport;
	u16 skc_num;
	possible_net_t skc_net;
};

struct sock___common {
	struct sock_common __sk_common;
};

struct inet_connection_sock___timeouts {
	void *icsk_ulp_data;
	u8 icsk_retransmits;
	u8 icsk_ca_state : 5;
};

#pragma clang attribute pop

/* The same in crates/kernel/src/timeouts.rs. */
struct ab_timeout {
	u32 token;
	u32 timeouts; /* in a row */
	u16 local_port;
	u16 remote_port; /* in network order */
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 65536);
} ab_timeouts SEC(".maps");

/* The number of the namespace (/proc/self/ns/net), written by the loader. */
const volatile u32 ab_net SEC(".rodata.net") = 0;

SEC("tp_btf/tcp_retransmit_skb") int ab_timeout(u64 *ctx)
{
	const struct sock___common *sk = (const void *)ctx[0];
	const struct inet_connection_sock___timeouts *icsk = (const void *)sk;
	const struct tcp_sock *tp = (const void *)sk;
	const struct mptcp_subflow_context *subflow;
	const struct mptcp_sock *conn;
	struct ab_timeout told = {};

	if (BPF_CORE_READ_BITFIELD_PROBED(icsk, icsk_ca_state) != TCP_CA_LOSS)
		return 0;
	told.timeouts = BPF_CORE_READ(icsk, icsk_retransmits);
	if (told.timeouts == 0 || !BPF_CORE_READ(tp, is_mptcp))
		return 0;
	if (BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum) != ab_net)
		return 0;
	subflow = BPF_CORE_READ(icsk, icsk_ulp_data);
	if (!subflow)
		return 0;
	conn = (const void *)BPF_CORE_READ(subflow, conn);
	if (!conn)
		return 0;
	told.token = BPF_CORE_READ(conn, token);
	told.local_port = BPF_CORE_READ(sk, __sk_common.skc_num);
	told.remote_port = BPF_CORE_READ(sk, __sk_common.skc_dport);
	/* If nobody reads, the rest is not told: the reader looks now and then anyway. */
	bpf_ringbuf_output(&ab_timeouts, &told, sizeof(told), 0);
	return 0;
}

char ab_license[] SEC("license") = "Dual MIT/GPL";
