/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The pure formulas as functions that a test can call. Linked into nothing that does not use them. */
#include "anabranch/fixedpoint.h"
#include "ab_includes.h"

u64 ab_formula_mul_div(u64 a, u32 b, u32 c)
{
	return ab_mul_div(a, b, c);
}

u32 ab_formula_product_greater(u32 a, u64 b, u32 c, u64 d)
{
	return (u32)ab_product_greater(a, b, c, d);
}

u32 ab_formula_bit_length(u64 a)
{
	return ab_bit_length(a);
}

u32 ab_formula_cube_root(u64 a)
{
	return ab_cube_root(a);
}

u64 ab_formula_ewma(u64 average, u64 sample, u32 n)
{
	return ab_ewma(average, sample, n);
}

u32 ab_formula_cubic_k(u32 below)
{
	return cubic_k(below);
}

u64 ab_formula_cubic_window_q8(u32 origin, u32 k, u32 t, u32 precision)
{
	return cubic_window_q8(origin, k, t, precision);
}

u32 ab_formula_cubic_w_max(u32 cwnd, u32 w_max, u32 beta_q10, u32 fast_convergence)
{
	return cubic_w_max(cwnd, w_max, beta_q10, fast_convergence);
}

u32 ab_formula_vegas_diff_q8(u32 cwnd, u32 base_us, u32 rtt_us)
{
	return vegas_diff_q8(cwnd, base_us, rtt_us);
}

u64 ab_formula_vegas_diff_linux(u32 cwnd, u32 base_us, u32 rtt_us)
{
	return vegas_diff_linux(cwnd, base_us, rtt_us);
}

/* One decision of MVegas. `band` is a, b, diff_prev (all << 8) and whether there is one; updated in place. */
u32 ab_formula_mvegas_step(u32 band[4], u32 beta_dec, u32 diff_q8)
{
	const struct mvegas_params p = {.alpha = 1, .beta = 3, .gamma = 1, .k = 2, .beta_dec = beta_dec};
	struct mvegas_state s = {
	    .a_q8 = band[0], .b_q8 = band[1], .diff_prev_q8 = band[2], .has_prev = (u8)band[3]};
	u32 step = mvegas_step(&s, &p, diff_q8);

	band[0] = s.a_q8;
	band[1] = s.b_q8;
	band[2] = s.diff_prev_q8;
	band[3] = s.has_prev;
	return step;
}

u32 ab_formula_fast_equation_q10(u32 alpha, u32 gamma_q10, u32 sigma_q10, u32 w_q10, u32 old_q10, u32 base_us,
				 u64 avg_q8)
{
	const struct fast_tuning t = {.alpha = alpha, .gamma_q10 = gamma_q10, .sigma_q10 = sigma_q10};

	return fast_equation_q10(&t, w_q10, old_q10, base_us, avg_q8);
}

u32 ab_formula_quartic_root(u64 a)
{
	return ab_quartic_root(a);
}

/* One ACK of `acked` packets; `left` is the counter and its fraction. */
u32 ab_formula_weighted_increase(u32 cwnd, u32 *left, u32 weight_q10, u32 acked)
{
	ab_weighted_increase(&cwnd, &left[0], &left[1], weight_q10, acked);
	return cwnd;
}

u32 ab_formula_hybla_rho_q10(u32 rtt_us, u32 rtt0_us, u32 precision)
{
	return hybla_rho_q10(rtt_us, rtt0_us, precision);
}

u32 ab_formula_hybla_slow_start_q10(u32 rho_q10, u32 precision)
{
	return hybla_slow_start_q10(rho_q10, precision);
}

u32 ab_formula_hybla_rho2_q10(u32 rho_q10)
{
	return hybla_rho2_q10(rho_q10);
}

u32 ab_formula_hybla_increment_q7(u32 rho_q10, u32 cwnd)
{
	return hybla_increment_q7(rho_q10, cwnd);
}

u32 ab_formula_htcp_f_q10(u64 since_us, u32 precision)
{
	return htcp_f_q10(since_us, precision);
}

u32 ab_formula_htcp_scaled_q10(u32 f_q10, u32 min_rtt_us, u32 precision)
{
	return htcp_scaled_q10(f_q10, min_rtt_us, precision);
}

u32 ab_formula_htcp_alpha_q10(u32 f_q10, u32 beta_q10)
{
	return htcp_alpha_q10(f_q10, beta_q10);
}

u32 ab_formula_htcp_beta_q10(u32 min_rtt_us, u32 max_rtt_us, u32 precision)
{
	return htcp_beta_q10(min_rtt_us, max_rtt_us, precision);
}

u32 ab_formula_compound_increase_q8(u32 window, u32 precision)
{
	return compound_increase_q8(window, precision);
}

/* The delay window after a round in which the window was in use, gamma 30. */
u32 ab_formula_compound_next_dwnd_q8(u32 precision, u32 window, u32 dwnd_q8, u32 diff_q8)
{
	const struct compound_params p = {.gamma = 30, .precision = precision};

	return compound_next_dwnd_q8(&p, window, dwnd_q8, diff_q8, 1);
}

u32 ab_formula_bbr_rate(u32 delivered, u32 interval_us)
{
	return bbr_rate(delivered, interval_us);
}

u32 ab_formula_bbr_bdp(u32 bw, u32 rtt_us, u32 gain)
{
	return bbr_bdp(bw, rtt_us, gain);
}

u64 ab_formula_bbr_pacing(u32 bw, u32 mss, u32 gain)
{
	return bbr_pacing(bw, mss, gain);
}

/* Adds a sample to a filter of three times and three values; returns the maximum. */
u32 ab_formula_windowed_max(u32 filter[6], u32 window, u32 time, u32 value)
{
	struct ab_windowed_max m;
	u32 k;

	for (k = 0; k < 3; k++) {
		m.time[k] = filter[k];
		m.value[k] = filter[3 + k];
	}
	ab_windowed_max_add(&m, window, time, value);
	for (k = 0; k < 3; k++) {
		filter[k] = m.time[k];
		filter[3 + k] = m.value[k];
	}
	return m.value[0];
}

/* path: capacity, queue_max, rtt_us, rtt_min_us, rtt_max_us, mss, cwnd. what: used, queue << 8, ECD,
 * threshold. */
u64 ab_formula_stcp(const u32 path[7], u32 bandwidth, u32 what)
{
	const struct stcp_path t = {path[0], path[1], path[2], path[3], path[4], path[5], path[6]};
	const u64 all[4] = {stcp_used(&t), stcp_queue_q8(&t), stcp_ecd(&t, bandwidth), stcp_thresh(&t)};

	return all[what & 3];
}

u32 ab_formula_stcp_sample(u32 bytes, u32 gap_us)
{
	return stcp_sample(bytes, gap_us);
}

u32 ab_formula_stcp_initial_window(u32 capacity, u32 rtt_min_us, u32 mss, u32 most)
{
	return stcp_initial_window(capacity, rtt_min_us, mss, most);
}

u32 ab_formula_stcp_median(const u32 samples[10])
{
	return stcp_median(samples);
}
