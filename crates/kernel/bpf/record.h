/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Recording, in the objects of the live replay test only (AB_SHIM_RECORD): every call of a handler with what
 * it was given and what it gave, so that the host build can be asked the same.
 */
#ifndef ANABRANCH_RECORD_H
#define ANABRANCH_RECORD_H

#include "track.h"

#if AB_SHIM_RECORD

/* Mirrored by tests/live_replay.rs. */
struct ab_record {
	u64 socket; /* the same for all calls of a socket; a later socket may have it again, after init */
	u32 event;
	u32 answer;
	struct ab_view view;
	struct ab_out out;
	u64 state[AB_HOT_WORDS]; /* after the call */
#if AB_SHIM_COUPLED
	struct ab_peer peers[AB_MAX_PEERS];
	struct ab_conn before;
	struct ab_conn after;
#endif
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 * 1024 * 1024);
} ab_records SEC(".maps");

u64 ab_records_lost SEC(".data.lost") = 0;

static __always_inline struct ab_record *ab_record_begin(void)
{
	struct ab_record *record = bpf_ringbuf_reserve(&ab_records, sizeof(*record), 0);

	if (!record)
		__sync_fetch_and_add(&ab_records_lost, 1);
	return record;
}

/* Before the handler runs: what a repeated call may change. */
static __always_inline void ab_record_before(struct ab_record *record, const struct ab_subflow *s)
{
	if (!record)
		return;
#if AB_SHIM_COUPLED
	__builtin_memcpy(record->peers, s->frame.peers, sizeof(record->peers));
	__builtin_memcpy(&record->before, &s->frame.conn, sizeof(record->before));
#else
	(void)s;
#endif
}

static __always_inline void ab_record_end(struct ab_record *record, struct sock *sk,
					  const struct ab_subflow *s, u32 event, u32 answer)
{
	if (!record)
		return;
	record->socket = (u64)sk;
	record->event = event;
	record->answer = answer;
	__builtin_memcpy(&record->view, &s->frame.view, sizeof(record->view));
	__builtin_memcpy(&record->out, &s->frame.out, sizeof(record->out));
	__builtin_memcpy(record->state, s->frame.state, sizeof(record->state));
#if AB_SHIM_COUPLED
	__builtin_memcpy(&record->after, &s->frame.conn, sizeof(record->after));
#endif
	bpf_ringbuf_submit(record, 0);
}

#else

struct ab_record;
#define ab_record_begin()                           0
#define ab_record_before(record, s)                 ((void)(record))
#define ab_record_end(record, sk, s, event, answer) ((void)(record))

#endif
#endif
