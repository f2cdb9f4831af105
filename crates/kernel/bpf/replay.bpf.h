/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The BPF arm of the replay test: makes a batch of calls on frames that user space has filled and leaves
 * the frames as the algorithm left them.
 */
#include "frame.h"
#include "counters.h"

#define AB_REPLAY_BATCH 256

struct ab_replay_call {
	u32 event;
	u32 answer;
	struct ab_frame frame;
};

struct ab_replay_call ab_calls[AB_REPLAY_BATCH] SEC(".data.calls") = {};

static int ab_replay_one(u32 index, void *unused)
{
	struct ab_replay_call *call = &ab_calls[index & (AB_REPLAY_BATCH - 1)];

	(void)unused;
	switch (call->event) {
#define AB_REPLAY_CASE(event_)                                                                               \
	case AB_EVENT_##event_:                                                                              \
		call->answer = ab_run_##event_(&call->frame);                                                \
		break;
		AB_SHIM_EVENTS(AB_REPLAY_CASE)
	}
	return 0;
}

SEC("syscall") int ab_replay(void *ctx)
{
	(void)ctx;
	bpf_loop(AB_REPLAY_BATCH, ab_replay_one, 0, 0);
	return 0;
}

char ab_license[] SEC("license") = "Dual MIT/GPL";
