/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Calls every handler of every algorithm with values from the edges of the contract's ranges, millions of
 * times. Built with trapping sanitizers by tests/undefined.rs: an undefined operation ends it with a signal.
 * A window outside 1 .. cwnd_clamp ends it with 1 and the algorithm's number in the registry on the way out.
 */
#include "../../host/registry.c"

#define CALLS       400000u
#define WINDOW_MAX  (1u << 30)
#define TIME_MAX_US (1ull << 53)

#if defined(__clang__)
__attribute__((no_sanitize("integer")))
#endif
static u64 next_random(u64 *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* Anything up to `max`: an edge, a small number, or any magnitude. */
static u64 extreme(u64 *seed, u64 max)
{
	u64 value = next_random(seed) >> (next_random(seed) & 63);

	switch (next_random(seed) & 7) {
	case 0:
		return max;
	case 1:
		return 0;
	case 2:
		return next_random(seed) & 3 & max;
	default:
		return value <= max ? value : max;
	}
}

static u32 extreme_u32(u64 *seed, u32 max)
{
	return (u32)extreme(seed, max);
}

static u32 extreme_window(u64 *seed)
{
	return ab_max_u32(extreme_u32(seed, WINDOW_MAX), 1);
}

static void fill_peer(u64 *seed, struct ab_peer *peer)
{
	u32 i;

	for (i = 0; i < AB_PUBLIC_WORDS; i++)
		peer->pub[i] = extreme(seed, AB_U64_MAX);
	peer->energy_nj_per_bit = extreme_u32(seed, AB_U32_MAX);
	peer->bytes_since_loss = next_random(seed);
	peer->bytes_between_losses = next_random(seed);
	peer->cwnd = extreme_window(seed);
	peer->ssthresh = extreme_u32(seed, AB_SSTHRESH_INFINITE);
	peer->mss = extreme_u32(seed, 65535);
	peer->srtt8_us = extreme_u32(seed, AB_U32_MAX);
	peer->base_rtt_us = extreme_u32(seed, AB_U32_MAX);
	peer->loss_events = extreme_u32(seed, AB_U32_MAX);
	peer->retrans = extreme_u32(seed, AB_U32_MAX);
	peer->usable = (u8)(next_random(seed) & 1);
	peer->ca_state = (u8)(next_random(seed) % 5);
}

/* A time moves on by anything; so does the window of a host that does as it likes. */
static void fill_view(u64 *seed, struct ab_view *v)
{
	v->now_us = ab_min_u64(v->now_us + extreme(seed, 1ull << (next_random(seed) % 40)), TIME_MAX_US);
	v->cwnd_clamp = extreme_window(seed);
	v->cwnd = ab_min_u32(next_random(seed) & 3 ? v->cwnd : extreme_window(seed), v->cwnd_clamp);
	v->cwnd_cnt = next_random(seed) & 7 ? v->cwnd_cnt : extreme_u32(seed, WINDOW_MAX);
	v->ssthresh = next_random(seed) & 7 ? ab_max_u32(v->ssthresh, 2) : AB_SSTHRESH_INFINITE;
	v->prior_cwnd = extreme_u32(seed, WINDOW_MAX);
	v->in_flight = extreme_u32(seed, WINDOW_MAX);
	v->prior_in_flight = extreme_u32(seed, WINDOW_MAX);
	v->acked = extreme_u32(seed, WINDOW_MAX);
	v->acked_sacked = v->acked;
	v->mss = extreme_u32(seed, 65535);
	v->total_retrans = extreme_u32(seed, AB_U32_MAX);
	v->owd_us = extreme_u32(seed, AB_U32_MAX);
	v->owd_valid = (u8)(next_random(seed) & 7 ? 1 : 0);
	v->rtt_us = extreme_u32(seed, AB_U32_MAX);
	v->srtt8_us = extreme_u32(seed, AB_U32_MAX);
	v->min_rtt_us = extreme_u32(seed, AB_U32_MAX);
	v->idle_us = extreme_u32(seed, AB_U32_MAX);
	v->random = extreme_u32(seed, AB_U32_MAX);
	v->delivered = ab_min_u64(v->delivered + v->acked_sacked, 1ull << 62);
	v->rs_prior_delivered = extreme(seed, v->delivered);
	v->rs_delivered = extreme_u32(seed, AB_U32_MAX);
	v->rs_interval_us = extreme_u32(seed, AB_U32_MAX);
	v->rs_losses = extreme_u32(seed, WINDOW_MAX);
	v->rs_app_limited = (u8)(next_random(seed) & 1);
	v->app_limited = (u8)(next_random(seed) & 1);
	v->ack_gap_us = extreme_u32(seed, AB_U32_MAX);
	v->acked_bytes_gap = extreme_u32(seed, AB_U32_MAX);
	v->ca_state = (u8)(next_random(seed) % 5);
	v->cwnd_limited = (u8)(next_random(seed) & 1);
	v->rtt_valid = (u8)(next_random(seed) & 1);
	v->round_start = (u8)(next_random(seed) & 1);
}

/* Parameters at an edge or anywhere in their ranges. */
static void fill_params(u64 *seed, const struct ab_algorithm *a, u32 *params)
{
	u32 i;

	for (i = 0; i < a->n_params; i++) {
		const struct ab_param_desc *p = &a->params[i];

		params[i] = next_random(seed) & 1 ? p->def : p->min + extreme_u32(seed, p->max - p->min);
	}
}

static u32 call(const struct ab_algorithm *a, const struct ab_cc *cc, u32 event)
{
	const ab_handler handlers[] = {a->ops.rtt_sample,    a->ops.ack,        a->ops.rto,
				       a->ops.recovery_exit, a->ops.ecn,        a->ops.idle_restart,
				       a->ops.peer_join,     a->ops.peer_leave, a->ops.rate};

	if (event < sizeof(handlers) / sizeof(handlers[0])) {
		handlers[event](cc);
		return 2;
	}
	return event & 1 ? a->ops.loss(cc) : a->ops.undo(cc);
}

/* Returns 0 if the windows stay in range. */
static int run(const struct ab_algorithm *a, u64 *seed)
{
	static u64 state[AB_HOT_STATE_BYTES / 8], cold[AB_COLD_STATE_BYTES / 8];
	static struct ab_peer peers[AB_MAX_PEERS];
	struct ab_view view = {.now_us = 1, .cwnd = 10, .ssthresh = AB_SSTHRESH_INFINITE, .self = 0};
	struct ab_conn conn = {.n = 1};
	u32 params[AB_MAX_PARAMS], i, k, event;
	/* rtt_sample, ack and rate, in the order of call(). */
	static const u32 mostly[3] = {0, 1, 8};
	struct ab_out out;
	const struct ab_cc cc = {&view, peers, &conn, &out, params, state, a->cold_bytes ? cold : (void *)0};

	for (i = 0; i < AB_HOT_STATE_BYTES / 8; i++)
		state[i] = 0;
	for (i = 0; i < AB_COLD_STATE_BYTES / 8; i++)
		cold[i] = 0;
	fill_params(seed, a, params);
	view.self = (u8)(next_random(seed) % 10);
	fill_view(seed, &view);
	out.mask = 0;
	a->ops.init(&cc);
	for (i = 0; i < 1000; i++) {
		fill_view(seed, &view);
		k = (u32)(next_random(seed) % AB_MAX_PEERS);
		fill_peer(seed, &peers[k]);
		event = next_random(seed) & 3 ? mostly[next_random(seed) % 3] : (u32)(next_random(seed) % 11);
		out.mask = 0;
		if (!call(a, &cc, event))
			return 1;
		if (out.mask & AB_OUT_CWND) {
			if (out.cwnd < 1 || out.cwnd > view.cwnd_clamp)
				return 1;
			view.cwnd = out.cwnd;
		}
		if (out.mask & AB_OUT_CWND_CNT)
			view.cwnd_cnt = out.cwnd_cnt;
		if (out.mask & AB_OUT_SSTHRESH)
			view.ssthresh = out.ssthresh;
	}
	return 0;
}

int main(void)
{
	u64 seed = 0x9e3779b97f4a7c15ull;
	u32 a, i;

	for (a = 0; a < ab_registry_len; a++) {
		for (i = 0; i < CALLS / 1000; i++) {
			if (run(&ab_registry[a], &seed))
				return (int)(a + 1);
		}
	}
	return 0;
}
