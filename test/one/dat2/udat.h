/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Used in the place of <dat2/udat.h> by suites and programs that are compiled a second time, with
 * the headers of DAT 1.2 and for libdat.so.1: it gives the names of DAT 2.0 to what DAT 1.2 names
 * otherwise. TEST_ONE is defined for parts that a source leaves out.
 */
#ifndef TEST_ONE_UDAT_H
#define TEST_ONE_UDAT_H

#define TEST_ONE 1

/* The member of DAT_RMR_TRIPLET; its place is that of DAT 1.2. */
#define target_address virtual_address
#include <dat/udat.h>

typedef DAT_VLEN DAT_SEG_LENGTH;

/* The control structure of the fake provider, which is of DAT 2.0: both have one layout. */
typedef enum { DAT_EXTENSION_NONE } DAT_EXTENSION;

/* Declared in no header of DAT 1.2. */
DAT_RETURN dats_get_ia_handle(unsigned long handle, DAT_IA_HANDLE *other);

/* Completion events do not have the operation. */
typedef enum { DAT_DTO_SEND, DAT_DTO_RDMA_WRITE, DAT_DTO_RDMA_READ, DAT_DTO_RECEIVE } DAT_DTOS;

/* An RMR has the scope of its PZ; such a one is used in the place of one of an EP. */
typedef enum { DAT_RMR_SCOPE_EP, DAT_RMR_SCOPE_PZ } DAT_RMR_SCOPE;

#define dat_rmr_create_for_ep dat_rmr_create

/* Consumers take this mask for one of CRs. */
#define DAT_CSP_FIELD_ALL 0xf

/* Arguments that DAT 1.2 does not have are evaluated and dropped. */
typedef enum { DAT_VA_TYPE_VA } DAT_VA_TYPE;

#define dat_lmr_create(ia, type, region, length, pz, privileges, va_type, lmr, lmr_context,        \
		       rmr_context, registered_length, registered_address)                         \
	((void)(va_type),                                                                          \
	 (dat_lmr_create)(ia, type, region, length, pz, privileges, lmr, lmr_context, rmr_context, \
			  registered_length, registered_address))

#define dat_cr_reject(cr, size, data) ((void)(size), (void)(data), (dat_cr_reject)(cr))

#define dat_rmr_bind(rmr, lmr, triplet, privileges, va_type, ep, cookie, flags, context) \
	((void)(lmr), (void)(va_type),                                                   \
	 (dat_rmr_bind)(rmr, triplet, privileges, ep, cookie, flags, context))

#endif
