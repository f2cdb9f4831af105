/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The congestion-control contract.
 *
 * An algorithm is a set of `static inline` functions over one `struct ab_cc`. It has no floats, no
 * allocation, no clock, no host pointers and no `#ifdef` on the host. The simulator and the BPF shim
 * fill the same structures and call the same functions in the same order.
 *
 * Units: windows in packets of `mss` bytes, times in microseconds, pacing in bytes per second.
 * Ranges: cwnd and cwnd_clamp 1 .. 2^30, acked at most 2^30, now_us below 2^53 and never going back.
 *
 * Call order (that of the Linux TCP stack; the simulator follows it):
 *   init            once, before the first data packet
 *   per ACK         rtt_sample (every valid sample, in recovery too), then one of
 *                     ack   window algorithms, only outside recovery, when packets were newly acked
 *                     rate  rate algorithms, always: in recovery and for duplicates too, after the change of
 *                           ca_state that the ACK has caused
 *   fast retransmit loss -> ssthresh, once per recovery episode; then ca_state becomes RECOVERY
 *   timeout         loss -> ssthresh (first timeout of an episode only), the host sets cwnd to 1,
 *                   then rto, every timeout; rto may overwrite cwnd and ssthresh
 *   end of recovery the host sets cwnd to ssthresh, then recovery_exit
 *   spurious        undo -> the window to return to
 *   ECN echo        ecn, once per window of data; a window algorithm's loss has been called before
 *   idle            idle_restart, before the first packet after idle_us of silence
 *   coupling        peer_join and peer_leave on every other subflow of the connection
 *   release         once, last
 *
 * Rate algorithms own the window: a host sets it at a timeout and at undo only, and does not reduce it in
 * recovery, after a mark or after idleness. It calls loss, keeps the ssthresh it returns, does not call
 * recovery_exit, and shows the episode in ca_state; packet conservation is up to the algorithm.
 *
 * Pacing: the last rate that a rate algorithm has set (AB_OUT_PACING) holds until the next. Data leaves in
 * bursts of about 1 ms at that rate, at least two segments, or one below AB_ONE_SEGMENT_BELOW. A window
 * algorithm's rate is heeded by the simulator only: Linux computes its own after every call.
 */
#ifndef ANABRANCH_CC_H
#define ANABRANCH_CC_H

#include "types.h"

#define AB_MAX_PEERS         8  /* subflows that can be coupled; further ones run uncoupled */
#define AB_HOT_STATE_BYTES   88 /* ICSK_CA_PRIV_SIZE is 104; the shim keeps token and slot there too */
#define AB_COLD_STATE_BYTES  2048
#define AB_CONN_WORDS        64
#define AB_PUBLIC_WORDS      4
#define AB_SSTHRESH_INFINITE 0x7fffffffu
#define AB_MAX_PARAMS        17
#define AB_ONE_SEGMENT_BELOW 150000u /* bytes per second: a burst of a rate algorithm is then one segment */

/* Same values as the kernel's TCP_CA_*. */
enum ab_ca_state {
	AB_CA_OPEN = 0,
	AB_CA_DISORDER = 1,
	AB_CA_CWR = 2,
	AB_CA_RECOVERY = 3,
	AB_CA_LOSS = 4,
};

/* What the host knows at this event. Fields marked "valid" mean nothing while their flag is 0. */
struct ab_view {
	u64 now_us;
	u64 bytes_acked;        /* since the connection began */
	u64 rs_prior_delivered; /* packets delivered when the sampled packet was sent */
	u64 delivered;          /* packets delivered so far */

	u32 cwnd;
	u32 cwnd_cnt;
	u32 cwnd_clamp;
	u32 ssthresh;
	u32 prior_cwnd; /* cwnd when the current or last recovery began */
	u32 in_flight;
	u32 prior_in_flight; /* before this ACK */
	u32 acked;           /* packets this ACK acknowledges cumulatively and none before had reported */
	u32 acked_sacked;    /* the same, plus newly SACKed */
	u32 newly_lost;      /* packets marked lost by this ACK */
	u32 total_retrans;
	u32 mss;

	u32 rtt_us;     /* newest sample; needs rtt_valid */
	u32 srtt8_us;   /* 8 x smoothed RTT, as in the kernel; 0 before the first sample */
	u32 mdev4_us;   /* 4 x mean deviation */
	u32 min_rtt_us; /* 0 before the first sample */
	u32 idle_us;    /* idle_restart only */

	u32 delivered_ce; /* packets delivered with a congestion mark so far */

	/*
	 * Rate sample of this ACK (draft-cheng-iccrg-delivery-rate-estimation), at `rate` only; interval 0:
	 * none, or not reliable, because it is shorter than min_rtt_us.
	 */
	u32 rs_delivered;
	u32 rs_interval_us;
	u32 rs_snd_us;
	u32 rs_rcv_us;
	u32 rs_losses;

	u32 owd_us;          /* one-way delay plus an unknown constant, modulo 2^32; coupled subflows only */
	u32 ack_gap_us;      /* since the previous ACK of data, or init; needs acked_bytes_gap */
	u32 acked_bytes_gap; /* bytes this ACK acknowledges, or 0 */
	u32 random;

	u8 ca_state;
	u8 cwnd_limited;
	u8 app_limited;
	u8 rs_app_limited;
	u8 rtt_valid;
	u8 owd_valid;
	u8 round_start; /* this ACK is the first of a new round trip */
	u8 ece;
	u8 self;     /* own index in peers[] */
	u8 n_usable; /* usable subflows, this one included; 1 for plain TCP */
	u8 reserved[2];
};

/* What a subflow publishes for the others. A copy: values may be one ACK old. */
struct ab_peer {
	u64 bytes_since_loss;     /* OLIA's l2 */
	u64 bytes_between_losses; /* OLIA's l1: between the last two losses */
	u64 pub[AB_PUBLIC_WORDS]; /* the algorithm's own */
	u32 cwnd;
	u32 ssthresh;
	u32 mss;
	u32 srtt8_us;
	u32 base_rtt_us;
	u32 loss_events;
	u32 retrans;
	u32 energy_nj_per_bit;
	u8 usable; /* established and able to send */
	u8 backup;
	u8 in_slow_start;
	u8 ca_state;
	u8 reserved[4];
};

/* Per connection, owned by the algorithm; nobody else writes it during a call. */
struct ab_conn {
	u64 period_start_us;
	u32 n;
	u32 mode;
	u32 epoch;          /* decisions so far */
	u32 coupled_epochs; /* those of them that coupled subflows */
	u64 words[AB_CONN_WORDS];
};

enum ab_out_field {
	AB_OUT_CWND = 1u << 0,
	AB_OUT_CWND_CNT = 1u << 1,
	AB_OUT_SSTHRESH = 1u << 2,
	AB_OUT_PACING = 1u << 3,
	AB_OUT_PUB = 1u << 4,
};

/* What the algorithm wants changed; a field counts only if its bit is in `mask`. */
struct ab_out {
	u64 pacing_bytes_per_s;
	u64 pub[AB_PUBLIC_WORDS]; /* published to the peers */
	u32 mask;
	u32 cwnd;
	u32 cwnd_cnt;
	u32 ssthresh;
};

/* One call. `peers` and `conn` are never NULL for a coupled algorithm and never read by others. */
struct ab_cc {
	const struct ab_view *view;
	const struct ab_peer *peers; /* AB_MAX_PEERS of them */
	struct ab_conn *conn;
	struct ab_out *out;
	const void *params;
	void *state; /* zeroed by the host before init */
	void *cold;  /* zeroed before init; NULL unless the algorithm declares a cold part */
};

AB_STATIC_ASSERT(sizeof(struct ab_view) <= 200, "the view fits the 512-byte BPF stack with room");
AB_STATIC_ASSERT(sizeof(struct ab_out) <= 64, "so does the answer");
AB_STATIC_ASSERT(sizeof(struct ab_peer) == 88, "eight peers are 704 bytes");

/* The event table: every algorithm file ends with AB_EVENTS_<name>(E), E(event, handler) for each. */
typedef void (*ab_handler)(const struct ab_cc *cc);
typedef u32 (*ab_handler_u32)(const struct ab_cc *cc);

struct ab_ops {
	ab_handler init, rtt_sample, rto, recovery_exit, ecn, ack, rate, idle_restart, peer_join, peer_leave,
	    release;
	ab_handler_u32 loss; /* returns ssthresh */
	ab_handler_u32 undo; /* returns cwnd */
};

enum ab_kind { AB_WINDOW = 0, AB_RATE = 1 };
enum ab_coupling { AB_SINGLE = 0, AB_COUPLED = 1 };
enum ab_hosts { AB_SIM = 0, AB_BOTH = 1 };

/*
 * Parameters: every algorithm file has AB_PARAMS_<name>(P) with one line per parameter,
 *   P(field, unit, default, min, max, "what it is")
 * where the field is a u32 of `struct <name>_params { AB_PARAMS_<name>(AB_PARAM_FIELD) }` and `unit` says
 * how the integer is to be read (and how a scenario writes it).
 */
#define AB_PARAM_FIELD(field, unit, def, min, max, doc) u32 field;

enum ab_unit {
	AB_UNIT_COUNT = 0,    /* a plain number */
	AB_UNIT_PACKETS = 1,  /* "100 packets" */
	AB_UNIT_US = 2,       /* "200 ms", stored in microseconds */
	AB_UNIT_Q10 = 3,      /* 0.5, stored times 1024 */
	AB_UNIT_BOOL = 4,     /* false | true */
	AB_UNIT_CHOICE = 5,   /* one of the names that open the description: "name|name: what it is" */
	AB_UNIT_Q16 = 6,      /* 0.5, stored times 65536 */
	AB_UNIT_PERMILLE = 7, /* 0.5, stored times 1000 */
};

/* Defaults shared by the algorithms. */

AB_INLINE void ab_set_cwnd(const struct ab_cc *cc, u32 cwnd)
{
	cc->out->cwnd = cwnd < cc->view->cwnd_clamp ? cwnd : cc->view->cwnd_clamp;
	cc->out->mask |= AB_OUT_CWND;
}

AB_INLINE void ab_set_cwnd_cnt(const struct ab_cc *cc, u32 cnt)
{
	cc->out->cwnd_cnt = cnt;
	cc->out->mask |= AB_OUT_CWND_CNT;
}

AB_INLINE void ab_set_ssthresh(const struct ab_cc *cc, u32 ssthresh)
{
	cc->out->ssthresh = ssthresh;
	cc->out->mask |= AB_OUT_SSTHRESH;
}

AB_INLINE int ab_in_slow_start(const struct ab_view *v)
{
	return v->cwnd < v->ssthresh;
}

AB_INLINE u32 ab_max_u32(u32 a, u32 b)
{
	return a > b ? a : b;
}

AB_INLINE u32 ab_min_u32(u32 a, u32 b)
{
	return a < b ? a : b;
}

/* A window that a recovery inflates is not a window to couple with (section "Common rules", part B). */
AB_INLINE u32 ab_effective_cwnd(const struct ab_peer *peer)
{
	return peer->ca_state == AB_CA_RECOVERY || peer->ca_state == AB_CA_CWR ? peer->ssthresh : peer->cwnd;
}

AB_INLINE int ab_peer_counts(const struct ab_peer *peer)
{
	return peer->usable && peer->srtt8_us > 0;
}

AB_INLINE void ab_ignore(const struct ab_cc *cc)
{
	(void)cc;
}

AB_INLINE u32 ab_undo_to_prior(const struct ab_cc *cc)
{
	return ab_max_u32(cc->view->cwnd, cc->view->prior_cwnd);
}

/* RFC 5681 section 3.1, equation 4, with the window for FlightSize as Linux does. */
AB_INLINE u32 ab_half_cwnd(const struct ab_cc *cc)
{
	return ab_max_u32(cc->view->cwnd >> 1, 2);
}

/*
 * The same with the half packet of an odd window, which RFC 5681 has too: its FlightSize is whole packets,
 * its ssthresh bytes. *odd keeps it for ab_restore_half. Without it an integer Reno starts every other cycle
 * half a packet low.
 */
AB_INLINE u32 ab_half_exactly(const struct ab_cc *cc, u32 *odd)
{
	*odd = cc->view->cwnd > 4 ? cc->view->cwnd & 1 : 0;
	return ab_half_cwnd(cc);
}

/* Recovery is over: the half packet counts again. */
AB_INLINE void ab_restore_half(const struct ab_cc *cc, u32 *odd)
{
	ab_set_cwnd_cnt(cc, *odd ? cc->view->cwnd >> 1 : 0);
	*odd = 0;
}

/*
 * Slow start (RFC 5681 section 3.1, RFC 3465): one packet per packet acked, not beyond ssthresh.
 * Returns the acked packets that are left for congestion avoidance; *cwnd is the new window.
 */
AB_INLINE u32 ab_slow_start(const struct ab_view *v, u32 acked, u32 *cwnd)
{
	u32 room = v->ssthresh - v->cwnd; /* caller: cwnd < ssthresh */
	u32 used = acked < room ? acked : room;

	*cwnd = v->cwnd + used;
	return acked - used;
}

/*
 * How Reno and its relatives begin at an ACK, with slow start: returns whether the window may also grow by
 * congestion avoidance, with *cwnd the window and *acked the packets that are left for it.
 */
AB_INLINE int ab_after_slow_start(const struct ab_cc *cc, u32 *cwnd, u32 *acked)
{
	const struct ab_view *v = cc->view;

	*cwnd = v->cwnd;
	*acked = v->acked;
	if (!v->cwnd_limited)
		return 0;
	if (!ab_in_slow_start(v))
		return 1;
	*acked = ab_slow_start(v, v->acked, cwnd);
	if (*acked)
		return 1;
	ab_set_cwnd(cc, *cwnd);
	return 0;
}

/* Additive increase: one packet per `per` packets acked. `cwnd` and `cnt` are updated in place. */
AB_INLINE void ab_additive_increase(u32 *cwnd, u32 *cnt, u32 per, u32 acked)
{
	u32 steps;

	per = ab_max_u32(per, 1);
	if (*cnt >= per) {
		*cnt = 0;
		*cwnd += 1;
	}
	*cnt += acked;
	if (*cnt >= per) {
		steps = *cnt / per;
		*cnt -= steps * per;
		*cwnd += steps;
	}
}

#endif
