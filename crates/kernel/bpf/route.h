/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Two metrics of the socket's route, `cwnd lock` and `ssthresh` of ip-route(8). Linux takes both from its
 * cache of destinations alone, which has no entry before a connection to there has ended and none at all with
 * tcp_no_metrics_save; so most connections would never hear of them.
 */
#ifndef ANABRANCH_ROUTE_H
#define ANABRANCH_ROUTE_H

#include "compat.h"

static __always_inline u32 ab_metric(const struct dst_metrics *metrics, u32 number)
{
	return metrics->metrics[number - 1];
}

/* Bounds the window and sets the slow-start threshold of a socket that has sent nothing yet. */
static __always_inline void ab_obey_route(struct sock *sk)
{
	struct tcp_sock *tp = ab_tp(sk);
	const struct dst_entry *route = AB_CAST(sk->sk_dst_cache, dst_entry);
	const struct dst_metrics *metrics = AB_CAST((void *)(route->_metrics & ~3ul), dst_metrics);
	u32 ssthresh = ab_metric(metrics, RTAX_SSTHRESH);
	int cap = (int)ab_metric(metrics, RTAX_CWND);

	/* The option sets the threshold, too, and only it may write the bound. */
	if (!ssthresh)
		ssthresh = tp->snd_ssthresh;
	if (cap > 0 && ab_metric(metrics, RTAX_LOCK) & (1u << RTAX_CWND))
		bpf_setsockopt(sk, SOL_TCP, TCP_BPF_SNDCWND_CLAMP, &cap, sizeof(cap));
	tp->snd_ssthresh = ssthresh;
}

#endif
