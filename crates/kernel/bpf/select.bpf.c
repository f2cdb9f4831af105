/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Chooses a congestion control for the TCP sockets of a control group: when they connect, and when they have
 * accepted a connection; subflows of MPTCP are such sockets. What an application chooses before that
 * is overridden, what it chooses later holds. If the name is not registered, sockets keep what they have.
 */
#include "kernel_types.h"
#include <bpf/bpf_helpers.h>

#define AB_NAME_MAX 16

enum { AB_SOL_TCP = 6, AB_TCP_CONGESTION = 13 };

/* As in linux/bpf.h, which has no BTF of its own in the kernel: its layout is fixed. */
struct bpf_sock_ops {
	u32 op;
};
enum { BPF_SOCK_OPS_TCP_CONNECT_CB = 3, BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB = 5 };

/* Written by the loader, zeros behind it. */
const volatile char ab_choice[AB_NAME_MAX] SEC(".rodata.choice") = {0};

SEC("sockops") int ab_select(struct bpf_sock_ops *ops)
{
	char name[AB_NAME_MAX];
	u32 k;

	if (ops->op != BPF_SOCK_OPS_TCP_CONNECT_CB && ops->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		return 1;
	for (k = 0; k < AB_NAME_MAX; k++)
		name[k] = ab_choice[k];
	bpf_setsockopt(ops, AB_SOL_TCP, AB_TCP_CONGESTION, name, sizeof(name));
	return 1;
}

char ab_license[] SEC("license") = "Dual MIT/GPL";
