/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What the shim counts. Mirrored by src/counters.rs; per CPU, so adding costs no shared cache line. */
#ifndef ANABRANCH_COUNTERS_H
#define ANABRANCH_COUNTERS_H

#include "anabranch/cc.h"
#include "compat.h"

#define AB_SHIM_EVENTS(X)                                                                                    \
	X(init)                                                                                              \
	X(rtt_sample)                                                                                        \
	X(loss)                                                                                              \
	X(rto)                                                                                               \
	X(recovery_exit)                                                                                     \
	X(undo)                                                                                              \
	X(ecn)                                                                                               \
	X(ack)                                                                                               \
	X(rate)                                                                                              \
	X(idle_restart)                                                                                      \
	X(peer_join)                                                                                         \
	X(peer_leave)                                                                                        \
	X(release)

#define AB_SHIM_EVENT_ENUM(event) AB_EVENT_##event,
enum ab_shim_event { AB_SHIM_EVENTS(AB_SHIM_EVENT_ENUM) AB_EVENT_COUNT };

struct ab_counters {
	u64 events[AB_EVENT_COUNT];      /* calls per event, handled by the algorithm or not */
	u64 by_usable[AB_MAX_PEERS + 1]; /* handler calls by number of usable subflows (coupled algorithms) */
	u64 joined;                      /* subflows that got a slot of their connection */
	u64 plain_tcp;                   /* sockets of a coupled algorithm that are not MPTCP */
	u64 no_slot;                     /* subflows beyond AB_MAX_PEERS: uncoupled */
	u64 map_full;                    /* subflows of a connection that got no map entry: uncoupled */
	u64 no_memory;                   /* sockets that got no storage: half the window on loss, no growth */
	u64 conflicts;                   /* handler calls repeated because a peer had changed ab_conn */
	u64 dropped_writes;              /* changes of ab_conn given up after AB_COMMIT_TRIES conflicts */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct ab_counters);
} ab_counters SEC(".maps");

/* Atomic, because a softirq may interrupt the same counter on the same CPU. */
#define AB_COUNT(field)                                                                                      \
	do {                                                                                                 \
		u32 zero_ = 0;                                                                               \
		struct ab_counters *counters_ = bpf_map_lookup_elem(&ab_counters, &zero_);                   \
		if (counters_)                                                                               \
			__sync_fetch_and_add(&counters_->field, 1);                                          \
	} while (0)

#endif
