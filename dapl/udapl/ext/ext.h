/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Room `ext`: the InfiniBand extension: atomics, immediate data, datagrams, counters.
 *
 * Each operation takes its arguments from the list, in the order of its macro. Posts end in the path of ep/request.h.
 * Locks: those of the object that an operation is for; the kernel's counters have one, for the values at their start.
 */
#ifndef DAPL_EXT_H
#define DAPL_EXT_H

#include <stdarg.h>
#include <dat2/dat_ib_extensions.h>
#include "dapl/udapl/base/ia.h"
#include "dapl/udapl/base/provider.h"

/* The handle is a live object of the kind that the table of ia/ext_table.c requires, if it requires one. */
DAT_RETURN ext_fetch_and_add(DAT_HANDLE ep, va_list args);
DAT_RETURN ext_cmp_and_swap(DAT_HANDLE ep, va_list args);
DAT_RETURN ext_rdma_write_immed(DAT_HANDLE ep, va_list args);
DAT_RETURN ext_send_ud(DAT_HANDLE ep, va_list args);
DAT_RETURN ext_ud_cm_free(DAT_HANDLE ep, va_list args);
DAT_RETURN ext_ud_ah_free(DAT_HANDLE ep, va_list args);
DAT_RETURN ext_start_counters(DAT_HANDLE ia, va_list args);
DAT_RETURN ext_stop_counters(DAT_HANDLE ia, va_list args);
void ext_kernel_free(struct dapl_ia *ia); /* frees the samples of a start */
/* handles of an IA, EP or EVD, which the operations check themselves */
DAT_RETURN ext_query_counters(DAT_HANDLE handle, va_list args);
DAT_RETURN ext_print_counters(DAT_HANDLE handle, va_list args);

#endif
