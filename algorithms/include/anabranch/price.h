/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What energy-aware algorithms share: the price of a subflow, its energy per bit in nanojoules.
 *
 * The host gives it (struct ab_peer: energy_nj_per_bit). The simulator reckons it from the radios of a
 * scenario; the kernel knows no radio and says 0. Parameters overrule the host, by the subflow's index: that
 * is how prices come into the kernel. 0 means unknown, and if any member's price is unknown none counts.
 */
#ifndef ANABRANCH_PRICE_H
#define ANABRANCH_PRICE_H

#include "anabranch/coupled.h"

#define AB_PRICE_MAX 1000000000u /* one joule per bit */
#define AB_PRICE_PARAMS(P)                                                                                   \
	P(price_1, AB_UNIT_COUNT, 0, 0, AB_PRICE_MAX,                                                        \
	  "nJ per bit of the first subflow; 0: what the host says")                                          \
	P(price_2, AB_UNIT_COUNT, 0, 0, AB_PRICE_MAX, "nJ per bit of the second subflow")                    \
	P(price_3, AB_UNIT_COUNT, 0, 0, AB_PRICE_MAX, "nJ per bit of the third subflow")                     \
	P(price_4, AB_UNIT_COUNT, 0, 0, AB_PRICE_MAX, "nJ per bit of the fourth subflow")                    \
	P(price_5, AB_UNIT_COUNT, 0, 0, AB_PRICE_MAX, "nJ per bit of the fifth subflow")                     \
	P(price_6, AB_UNIT_COUNT, 0, 0, AB_PRICE_MAX, "nJ per bit of the sixth subflow")                     \
	P(price_7, AB_UNIT_COUNT, 0, 0, AB_PRICE_MAX, "nJ per bit of the seventh subflow")                   \
	P(price_8, AB_UNIT_COUNT, 0, 0, AB_PRICE_MAX, "nJ per bit of the eighth subflow")

struct ab_price_params {
	AB_PRICE_PARAMS(AB_PARAM_FIELD)
};

AB_STATIC_ASSERT(sizeof(struct ab_price_params) == AB_MAX_PEERS * sizeof(u32), "one price per slot");

/* Energy per bit of subflow k in nJ; 0: unknown. The algorithm's parameters are the prices. */
AB_INLINE u32 ab_price(const struct ab_cc *cc, u32 k)
{
	const u32 *prices = (const u32 *)cc->params;
	u32 given = prices[k % AB_MAX_PEERS];

	return ab_forget(given ? given : cc->peers[k % AB_MAX_PEERS].energy_nj_per_bit);
}

/* Are the prices of all members known? */
AB_INLINE int ab_prices_known(const struct ab_cc *cc, u32 members)
{
	u32 k, unknown = 0;

	for (k = 0; k < AB_MAX_PEERS; k++) {
		if ((members & 1u << k) && !ab_price(cc, k))
			unknown = ab_forget(1);
	}
	return !ab_forget(unknown);
}

#endif
