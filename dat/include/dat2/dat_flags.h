/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * For C++: flags combine with | and |=, lose some with &= ~, and keep their type, so that no cast is
 * needed where a call takes several. Constant expressions from C++11 on. A program that has such operators of its own,
 * or that needs constant expressions in C++98, defines DAT_NO_FLAG_OPERATORS.
 */
#ifndef _DAT_FLAGS_H_
#define _DAT_FLAGS_H_

#if defined(__cplusplus) && !defined(DAT_NO_FLAG_OPERATORS)

#if __cplusplus >= 201103L
#define DAT_FLAG_CONSTEXPR constexpr
#else
#define DAT_FLAG_CONSTEXPR
#endif

/* The sum of `a` and `b` is an `a`. */
#define DAT_FLAG_OPERATORS(a, b)                               \
	inline DAT_FLAG_CONSTEXPR a operator|(a left, b right) \
	{                                                      \
		return static_cast<a>(int(left) | int(right)); \
	}                                                      \
	inline a &operator|=(a &left, b right)                 \
	{                                                      \
		return left = left | right;                    \
	}

/* Sums, and what is left of one. */
#define DAT_FLAG_TYPE(a)                                    \
	DAT_FLAG_OPERATORS(a, a)                            \
	inline a &operator&=(a &left, int right)            \
	{                                                   \
		return left = static_cast<a>(left & right); \
	}

extern "C++" {
DAT_FLAG_TYPE(DAT_COMPLETION_FLAGS)
DAT_FLAG_TYPE(DAT_CONNECT_FLAGS)
DAT_FLAG_TYPE(DAT_EVD_FLAGS)
DAT_FLAG_TYPE(DAT_MEM_PRIV_FLAGS)
DAT_FLAG_TYPE(DAT_QOS)

/* The masks of queries and modifications; those of IA, provider and EP are integers, and that of a CNO
 * is no sum. */
DAT_FLAG_TYPE(DAT_CR_PARAM_MASK)
DAT_FLAG_TYPE(DAT_CSP_PARAM_MASK)
DAT_FLAG_TYPE(DAT_EVD_PARAM_MASK)
DAT_FLAG_TYPE(DAT_LMR_PARAM_MASK)
DAT_FLAG_TYPE(DAT_PSP_PARAM_MASK)
DAT_FLAG_TYPE(DAT_PZ_PARAM_MASK)
DAT_FLAG_TYPE(DAT_RMR_PARAM_MASK)
DAT_FLAG_TYPE(DAT_RSP_PARAM_MASK)
DAT_FLAG_TYPE(DAT_SRQ_PARAM_MASK)
}

#endif

#endif /* _DAT_FLAGS_H_ */
