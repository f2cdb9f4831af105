/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The simulator's side of the contract: one table entry per line of the registries. */
#include "ab_includes.h" /* generated, as ab_registry.def: every algorithm and every line */

struct ab_param_desc {
	const char *name;
	const char *doc;
	u32 unit, def, min, max;
};

struct ab_algorithm {
	const char *name;
	const char *tag;
	const char *title;
	const struct ab_param_desc *params;
	u32 n_params, kind, coupling, hosts, state_bytes, cold_bytes;
	struct ab_ops ops;
};

#define AB_PARAM_ROW(field, unit, def, min, max, doc) {#field, doc, unit, def, min, max},
#define AB_EVENT_ROW(event, handler)                  .event = handler,

#define AB_ALGORITHM(name, kind, coupling, hosts, tag, title)                                                \
	static const struct ab_param_desc ab_params_##name[] = {                                             \
	    AB_PARAMS_##name(AB_PARAM_ROW){0, 0, 0, 0, 0, 0}};                                               \
	AB_STATIC_ASSERT(sizeof(struct name##_state) <= AB_HOT_STATE_BYTES, #name ": hot state too large");  \
	AB_STATIC_ASSERT(sizeof(ab_params_##name) / sizeof(struct ab_param_desc) <= AB_MAX_PARAMS + 1,       \
			 #name ": too many parameters");                                                     \
	AB_STATIC_ASSERT(sizeof(#name) - 1 <= 12, #name ": name too long");
#include "ab_registry.def"
#undef AB_ALGORITHM

const struct ab_algorithm ab_registry[] = {
#define AB_ALGORITHM(name, kind, coupling, hosts, tag, title)                                                \
	{                                                                                                    \
	    #name,                                                                                           \
	    #tag,                                                                                            \
	    title,                                                                                           \
	    ab_params_##name,                                                                                \
	    sizeof(ab_params_##name) / sizeof(struct ab_param_desc) - 1,                                     \
	    kind,                                                                                            \
	    coupling,                                                                                        \
	    hosts,                                                                                           \
	    sizeof(struct name##_state),                                                                     \
	    AB_COLD_BYTES_##name,                                                                            \
	    {AB_EVENTS_##name(AB_EVENT_ROW)},                                                                \
	},
#include "ab_registry.def"
#undef AB_ALGORITHM
};

const u32 ab_registry_len = sizeof(ab_registry) / sizeof(ab_registry[0]);

/* What an algorithm's table says where it has no handler. */
const ab_handler ab_ignored = ab_ignore;

/* Layout, compared with the Rust mirror by a test. */
#define OFF(type, field) (u32) __builtin_offsetof(struct type, field)
const u32 ab_layout[] = {
    sizeof(struct ab_view), OFF(ab_view, cwnd),     OFF(ab_view, rtt_us),   OFF(ab_view, rs_delivered),
    OFF(ab_view, random),   OFF(ab_view, ca_state), OFF(ab_view, n_usable), sizeof(struct ab_peer),
    OFF(ab_peer, pub),      OFF(ab_peer, cwnd),     OFF(ab_peer, usable),   OFF(ab_peer, ca_state),
    sizeof(struct ab_conn), OFF(ab_conn, words),    sizeof(struct ab_out),  OFF(ab_out, mask),
    OFF(ab_out, ssthresh),  sizeof(struct ab_cc),
};
const u32 ab_layout_len = sizeof(ab_layout) / sizeof(ab_layout[0]);
