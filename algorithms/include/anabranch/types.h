/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Integer types shared by both hosts. The only header that may know which host it is compiled for.
 * `long long` is 64 bits wide on every target we build for (x86-64, arm64, riscv64, BPF).
 */
#ifndef ANABRANCH_TYPES_H
#define ANABRANCH_TYPES_H

#ifndef __VMLINUX_H__ /* a BPF build has these names from its kernel types */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
#endif

#define AB_INLINE static inline __attribute__((always_inline, unused))
#define AB_STATIC_ASSERT(condition, name) _Static_assert(condition, name)

AB_STATIC_ASSERT(sizeof(u32) == 4, "u32 is 32 bits");
AB_STATIC_ASSERT(sizeof(u64) == 8, "u64 is 64 bits");

#endif
