/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Extension operations: each takes its arguments from the list, in the order of its macro. */
#ifndef DAPL_EXT_H
#define DAPL_EXT_H

#include <stdarg.h>
#include <dat2/dat_ib_extensions.h>
#include "dapl/udapl/provider.h"

/* The handle is a live object of the kind that the table of ext.c names, if it names one. */
DAT_RETURN ext_fetch_and_add(DAT_HANDLE ep, va_list args);
DAT_RETURN ext_cmp_and_swap(DAT_HANDLE ep, va_list args);
DAT_RETURN ext_rdma_write_immed(DAT_HANDLE ep, va_list args);
/* of an IA, EP or EVD, which they find out themselves */
DAT_RETURN ext_query_counters(DAT_HANDLE handle, va_list args);
DAT_RETURN ext_print_counters(DAT_HANDLE handle, va_list args);
/* `name` in the place of a handle */
DAT_RETURN ext_open_query(DAT_HANDLE name, va_list args);
DAT_RETURN ext_close_query(DAT_HANDLE ia, va_list args);

#endif
