/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The maximum of a window of time, in the memory of three samples (Nichols' windowed filter): the best of the
 * window, the best after that one, and the best after both. When the first leaves the window the second takes
 * its place. The result is never below what the last quarter of the window has brought, and may be below the
 * exact maximum only after the best sample has left.
 *
 * Times are any count that only grows; they and values are u32, so the differences do not wrap.
 */
#ifndef ANABRANCH_WINDOWEDMAX_H
#define ANABRANCH_WINDOWEDMAX_H

#include "types.h"

struct ab_windowed_max {
	u32 time[3];
	u32 value[3]; /* value[0] is the maximum */
};

/* The sample takes the place of number `from` and of those after it. */
AB_INLINE void ab_windowed_max_set(struct ab_windowed_max *m, u32 from, u32 time, u32 value)
{
	u32 k;

	for (k = from; k < 3; k++) {
		m->time[k] = time;
		m->value[k] = value;
	}
}

/* The best has left the window: the others move up, and the sample is the last. */
AB_INLINE void ab_windowed_max_shift(struct ab_windowed_max *m, u32 time, u32 value)
{
	m->time[0] = m->time[1];
	m->value[0] = m->value[1];
	m->time[1] = m->time[2];
	m->value[1] = m->value[2];
	m->time[2] = time;
	m->value[2] = value;
}

/* Adds a sample of now. `time` is not before that of the last call. */
AB_INLINE void ab_windowed_max_add(struct ab_windowed_max *m, u32 window, u32 time, u32 value)
{
	u32 age;

	if (value >= m->value[0] || time - m->time[2] > window) {
		ab_windowed_max_set(m, 0, time, value);
		return;
	}
	if (value >= m->value[1])
		ab_windowed_max_set(m, 1, time, value);
	else if (value >= m->value[2])
		ab_windowed_max_set(m, 2, time, value);

	age = time - m->time[0];
	if (age > window) {
		ab_windowed_max_shift(m, time, value);
		if (time - m->time[0] > window)
			ab_windowed_max_shift(m, time, value);
	} else if (m->time[1] == m->time[0] && age > window / 4) {
		/* A quarter of the window without a second best: the latest is. */
		ab_windowed_max_set(m, 1, time, value);
	} else if (m->time[2] == m->time[1] && age > window / 2) {
		ab_windowed_max_set(m, 2, time, value);
	}
}

#endif
