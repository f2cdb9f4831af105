/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Finds the algorithm that the first argument names in the table of host/registry.c, and gives it an ACK. */
#include "anabranch/cc.h"
#include <stdio.h>
#include <string.h>

/* As in host/registry.c. */
struct ab_algorithm {
	const char *name;
	const char *tag;
	const char *title;
	const void *params;
	u32 n_params, kind, coupling, hosts, state_bytes, cold_bytes;
	struct ab_ops ops;
};
extern const struct ab_algorithm ab_registry[];
extern const u32 ab_registry_len;

int main(int count, char **arguments)
{
	u64 state[AB_HOT_STATE_BYTES / 8] = {0};
	struct ab_view view = {.cwnd = 20, .ssthresh = 2, .cwnd_clamp = 1000, .acked = 1, .cwnd_limited = 1};
	struct ab_out out = {0};
	struct ab_cc cc = {.view = &view, .out = &out, .state = state};
	u32 k;

	for (k = 0; count == 2 && k < ab_registry_len; k++) {
		if (strcmp(ab_registry[k].name, arguments[1]))
			continue;
		ab_registry[k].ops.ack(&cc);
		printf("%s: %s; a window of 20 became %u\n", ab_registry[k].name, ab_registry[k].title,
		       out.cwnd);
		return 0;
	}
	return 1;
}
