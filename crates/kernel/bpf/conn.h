/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The shared state of one MPTCP connection: who its subflows are, what each has published, and the
 * algorithm's struct ab_conn.
 *
 * The subflows of a connection are handled on several CPUs at once; each holds only its own socket lock.
 * The spin lock here is held for copies only, because no helper may be called under it and because it
 * keeps interrupts off. A handler must nevertheless have struct ab_conn to itself, so a call is a
 * transaction:
 *   begin    lock; publish the own slot, copy the peers, ab_conn and its version into the frame; unlock
 *   run      the handler works on the frame alone (view, copies, hot and cold state, answer)
 *   commit   lock; if the version is still that of the copy, write ab_conn back and, if it has changed,
 *            raise the version; unlock
 * If another subflow has committed a change in between, nothing of the call has been applied yet: it is
 * thrown away and begun again on fresh copies. Handlers are pure functions of the frame, so the outcome is
 * that of one call after the other. Calls that leave ab_conn alone (LIA's, or MFVL's within a period) never
 * disturb each other. After AB_COMMIT_TRIES conflicts in a row the change of ab_conn is dropped, the rest
 * of the call counts, and `dropped_writes` tells.
 *
 * An entry exists from the first subflow's init to the last one's release. Whoever frees the last slot
 * marks the entry dead under the lock and deletes it; a subflow that finds a dead entry waits for the
 * deletion by trying again. Tokens are unique per host, not per namespace.
 */
#ifndef ANABRANCH_CONN_H
#define ANABRANCH_CONN_H

#include "track.h"

#define AB_COMMIT_TRIES    8
#define AB_JOIN_TRIES      4
#define AB_CONNECTIONS_MAX 65536

struct ab_slot {
	struct ab_peer peer; /* all zero while free */
	u32 generation;      /* 0 while free, else different for every subflow */
	u32 reserved;
};

struct ab_connection {
	struct bpf_spin_lock lock;
	u32 token;
	u32 n_slots; /* taken */
	u32 dead;
	u32 membership; /* joins and leaves so far; every join's number is its slot's generation */
	u32 reserved;
	u64 version;
	struct ab_slot slots[AB_MAX_PEERS];
	struct ab_conn conn;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, AB_CONNECTIONS_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32);
	__type(value, struct ab_connection);
} ab_conns SEC(".maps");

/* A new entry: too large for the stack. */
const volatile u64 ab_new_connection[sizeof(struct ab_connection) / 8] = {0};
AB_STATIC_ASSERT(sizeof(struct ab_connection) % 8 == 0, "the template has the size of an entry");

/* The connection of a subflow that has a slot; *slot is below AB_MAX_PEERS then. */
static __always_inline struct ab_connection *ab_connection(struct sock *sk, u32 *slot)
{
	struct ab_priv *priv = ab_priv(sk);
	u32 token = priv->token;

	*slot = priv->slot;
	if (!priv->has_slot || *slot >= AB_MAX_PEERS)
		return 0;
	return bpf_map_lookup_elem(&ab_conns, &token);
}

/* Lock held: takes a slot of `c`. Returns its index, AB_MAX_PEERS if all are taken. */
static __always_inline u32 ab_take_slot(struct ab_connection *c, u32 token)
{
	u32 k;

	for (k = 0; k < AB_MAX_PEERS; k++) {
		if (c->slots[k].generation)
			continue;
		c->token = token;
		c->n_slots++;
		c->membership++;
		c->slots[k].generation = c->membership;
		return k;
	}
	return AB_MAX_PEERS;
}

enum ab_look { AB_NOBODY = 0, AB_SOMEBODY_JOINED = 1, AB_SOMEBODY_LEFT = 2 };

/* Compares the slots of the peers with those of the last look and remembers them. */
static __noinline u32 ab_look(struct sock *sk, struct ab_subflow *s)
{
	struct ab_track *t = &s->track;
	u32 slot, k, now, before, found = AB_NOBODY;
	struct ab_connection *c = ab_connection(sk, &slot);

	if (!c || c->membership == t->membership)
		return AB_NOBODY;
	bpf_spin_lock(&c->lock);
	t->membership = c->membership;
	for (k = 0; k < AB_MAX_PEERS; k++) {
		now = c->slots[k].generation;
		before = t->generation[k];
		t->generation[k] = now;
		if (k == slot || now == before)
			continue;
		if (now)
			found |= AB_SOMEBODY_JOINED;
		if (before)
			found |= AB_SOMEBODY_LEFT;
	}
	bpf_spin_unlock(&c->lock);
	return found;
}

/* Finds or makes the connection's entry and takes a slot in it; without one the subflow runs uncoupled. */
static __noinline void ab_join(struct sock *sk, struct ab_subflow *s)
{
	struct ab_priv *priv = ab_priv(sk);
	u32 token = ab_mptcp_token(sk), slot = AB_MAX_PEERS, attempt;
	struct ab_connection *c;

	if (!token) {
		AB_COUNT(plain_tcp);
		return;
	}
	for (attempt = 0; attempt < AB_JOIN_TRIES; attempt++) {
		c = bpf_map_lookup_elem(&ab_conns, &token);
		if (!c) {
			bpf_map_update_elem(&ab_conns, &token, (const void *)ab_new_connection, BPF_NOEXIST);
			c = bpf_map_lookup_elem(&ab_conns, &token);
		}
		if (!c)
			continue;
		bpf_spin_lock(&c->lock);
		/* A deleted entry's memory may belong to another connection by now: its token tells. */
		if (c->dead || (c->n_slots && c->token != token)) {
			bpf_spin_unlock(&c->lock);
			continue;
		}
		slot = ab_take_slot(c, token);
		bpf_spin_unlock(&c->lock);
		if (slot >= AB_MAX_PEERS) {
			AB_COUNT(no_slot);
			return;
		}
		priv->token = token;
		priv->slot = (u8)slot;
		priv->has_slot = 1;
		AB_COUNT(joined);
		ab_look(sk, s);
		return;
	}
	AB_COUNT(map_full);
}

static __noinline void ab_leave(struct sock *sk)
{
	struct ab_priv *priv = ab_priv(sk);
	u32 slot, token = priv->token, last;
	struct ab_connection *c = ab_connection(sk, &slot);

	if (!c)
		return;
	bpf_spin_lock(&c->lock);
	c->slots[slot].peer = (struct ab_peer){};
	c->slots[slot].generation = 0;
	c->membership++;
	c->n_slots--;
	last = !c->n_slots;
	c->dead = last;
	bpf_spin_unlock(&c->lock);
	priv->has_slot = 0;
	if (last)
		bpf_map_delete_elem(&ab_conns, &token);
}

/* Makes the own slot visible, and nothing else. */
static __noinline void ab_publish(struct sock *sk, struct ab_subflow *s)
{
	u32 slot;
	struct ab_connection *c = ab_connection(sk, &slot);

	if (!c)
		return;
	bpf_spin_lock(&c->lock);
	c->slots[slot].peer = s->own;
	bpf_spin_unlock(&c->lock);
}

/* Fills peers, conn, self and n_usable of the frame. Without a slot, the subflow is its only peer. */
static __noinline void ab_begin(struct sock *sk, struct ab_subflow *s)
{
	struct ab_frame *f = &s->frame;
	u32 slot, k, usable = 0;
	struct ab_connection *c = ab_connection(sk, &slot);

	if (!c) {
		f->peers[0] = s->own;
		f->view.self = 0;
		f->view.n_usable = 1;
		return;
	}
	bpf_spin_lock(&c->lock);
	c->slots[slot].peer = s->own;
	for (k = 0; k < AB_MAX_PEERS; k++)
		f->peers[k] = c->slots[k].peer;
	f->conn = c->conn;
	s->track.conn_version = c->version;
	bpf_spin_unlock(&c->lock);
	for (k = 0; k < AB_MAX_PEERS; k++)
		usable += f->peers[k].usable;
	f->view.self = (u8)slot;
	f->view.n_usable = (u8)usable;
}

/* Publishes the own slot and writes ab_conn back. Returns 0 if the call has to be repeated. */
static __noinline u32 ab_commit(struct sock *sk, struct ab_subflow *s)
{
	const u64 *mine = (const u64 *)&s->frame.conn;
	u64 *shared, difference = 0;
	u32 slot, k;
	struct ab_connection *c = ab_connection(sk, &slot);

	if (!c)
		return 1;
	shared = (u64 *)&c->conn;
	bpf_spin_lock(&c->lock);
	if (c->version != s->track.conn_version) {
		bpf_spin_unlock(&c->lock);
		AB_COUNT(conflicts);
		return 0;
	}
	for (k = 0; k < sizeof(struct ab_conn) / 8; k++) {
		difference |= shared[k] ^ mine[k];
		shared[k] = mine[k];
	}
	c->version += difference != 0;
	c->slots[slot].peer = s->own;
	bpf_spin_unlock(&c->lock);
	return 1;
}

#endif
