/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The memory of one call and the thirteen functions that make it. Shim and replay test share this file, so
 * the test exercises the code that the kernel runs.
 *
 * The functions are global: the verifier checks each once, for any contents of the frame, instead of once
 * per path that leads to it.
 *
 * Expects AB_SHIM_NAME (the algorithm, its header already included) and AB_SHIM_COUPLED (0 or 1).
 */
#ifndef ANABRANCH_FRAME_H
#define ANABRANCH_FRAME_H

#include "anabranch/cc.h"
#include "compat.h"

#define AB_PASTE_(a, b) a##b
#define AB_PASTE(a, b)  AB_PASTE_(a, b)
#define AB_STRING_(a)   #a
#define AB_STRING(a)    AB_STRING_(a)

#define AB_SHIM_EVENT_TABLE AB_PASTE(AB_EVENTS_, AB_SHIM_NAME)
#define AB_SHIM_PARAM_TABLE AB_PASTE(AB_PARAMS_, AB_SHIM_NAME)
#define AB_COLD_WORDS       ((AB_PASTE(AB_COLD_BYTES_, AB_SHIM_NAME) + 7) / 8)
#define AB_HOT_WORDS        (AB_HOT_STATE_BYTES / 8)

AB_STATIC_ASSERT(sizeof(struct AB_PASTE(AB_SHIM_NAME, _state)) <= AB_HOT_STATE_BYTES, "hot state too large");
AB_STATIC_ASSERT(AB_COLD_WORDS * 8 <= AB_COLD_STATE_BYTES, "cold state too large");

/* 1.6 kB and the cold part if coupled: more than the 512-byte stack, so it lives in socket storage. */
struct ab_frame {
	struct ab_view view;
	struct ab_out out;
	u64 state[AB_HOT_WORDS];
#if AB_SHIM_COUPLED
	struct ab_peer peers[AB_MAX_PEERS];
	struct ab_conn conn;
#endif
	u64 cold[AB_COLD_WORDS];
};

/*
 * The parameters: a section of its own, so that a loader can write over the defaults before it loads.
 */
struct ab_params {
	AB_SHIM_PARAM_TABLE(AB_PARAM_FIELD)
	u32 end; /* a section must not be empty */
};

#define AB_PARAM_DEFAULT(field, unit, def, min, max, doc) .field = (def),
const volatile struct ab_params ab_params SEC(".rodata.params") = {
    AB_SHIM_PARAM_TABLE(AB_PARAM_DEFAULT).end = 0};

/* A global function is checked alone, and its callers know nothing about its result. */
__noinline u32 ab_forget(u32 x)
{
	asm volatile("" : "+r"(x));
	return x;
}

static __always_inline void ab_bind(struct ab_frame *frame, struct ab_cc *cc)
{
	const void *params = (const void *)&ab_params;

	asm volatile("" : "+r"(params)); /* the values are those of load time, not the ones above */
	cc->view = &frame->view;
	cc->out = &frame->out;
	cc->params = params;
	cc->state = frame->state;
	cc->cold = AB_COLD_WORDS ? frame->cold : 0;
#if AB_SHIM_COUPLED
	cc->peers = frame->peers;
	cc->conn = &frame->conn;
#else
	cc->peers = 0;
	cc->conn = 0;
#endif
}

/* ab_run_<event>(frame): 0, or the answer of `loss` (ssthresh) and `undo` (cwnd). */
#define AB_RUN(event, call)                                                                                  \
	__noinline u32 ab_run_##event(struct ab_frame *frame)                                                \
	{                                                                                                    \
		struct ab_cc cc;                                                                             \
		u32 answer = 0;                                                                              \
		if (!frame)                                                                                  \
			return 0;                                                                            \
		ab_bind(frame, &cc);                                                                         \
		call;                                                                                        \
		return answer;                                                                               \
	}
#define AB_RUN_VOID(event, handler) AB_RUN(event, handler(&cc))
#define AB_RUN_U32(event, handler)  AB_RUN(event, answer = handler(&cc))

#define AB_RUN_init          AB_RUN_VOID
#define AB_RUN_rtt_sample    AB_RUN_VOID
#define AB_RUN_loss          AB_RUN_U32
#define AB_RUN_rto           AB_RUN_VOID
#define AB_RUN_recovery_exit AB_RUN_VOID
#define AB_RUN_undo          AB_RUN_U32
#define AB_RUN_ecn           AB_RUN_VOID
#define AB_RUN_ack           AB_RUN_VOID
#define AB_RUN_rate          AB_RUN_VOID
#define AB_RUN_idle_restart  AB_RUN_VOID
#define AB_RUN_peer_join     AB_RUN_VOID
#define AB_RUN_peer_leave    AB_RUN_VOID
#define AB_RUN_release       AB_RUN_VOID

#define AB_RUN_ROW(event, handler) AB_RUN_##event(event, handler)
AB_SHIM_EVENT_TABLE(AB_RUN_ROW)

#endif
