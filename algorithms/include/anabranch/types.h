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

#define AB_INLINE                         static inline __attribute__((always_inline, unused))
#define AB_STATIC_ASSERT(condition, name) _Static_assert(condition, name)

/*
 * ab_forget(x) is x. The BPF verifier follows every value a variable can have on its own path, so a mask
 * or an index that is chosen in a loop multiplies the paths at every turn. What it cannot know it does
 * not follow: pass such a value through ab_forget when the loop is over, and an index through
 * ab_forget_index, which also shows that it stays below `size` (a power of two).
 */
#ifdef __bpf__
u32 ab_forget(u32 x); /* the shim has it: the verifier does not look through a global function */
#else
AB_INLINE u32 ab_forget(u32 x)
{
	return x;
}
#endif

AB_INLINE u32 ab_forget_index(u32 index, u32 size)
{
	return ab_forget(index) & (size - 1);
}

AB_STATIC_ASSERT(sizeof(u32) == 4, "u32 is 32 bits");
AB_STATIC_ASSERT(sizeof(u64) == 8, "u64 is 64 bits");

#endif
