/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The table of extension operations and the kind of object that each applies to. */
#include "dapl/udapl/cno/cno.h"
#include "dapl/udapl/cno/pset.h"
#include "dapl/udapl/evd/evd.h"
#include "dapl/udapl/ext/ext.h"
#include "dapl/udapl/ia/open_query.h"
#include "dapl/udapl/base/obj.h"

struct operation {
	enum obj_kind kind; /* kind of the handle; OBJ_KINDS: the operation checks it itself */
	DAT_UINT32 subtype; /* of the error for another handle */
	/* NULL if there is no such operation */
	DAT_RETURN (*call)(DAT_HANDLE handle, va_list args);
};

#define NONE                       \
	{                          \
		OBJ_KINDS, 0, NULL \
	}

/* The operations of InfiniBand; those that open and those that close have numbers of their own. */
static const struct operation ib_operations[] = {
	[DAT_IB_FETCH_AND_ADD_OP] = { OBJ_EP, DAT_INVALID_HANDLE_EP, ext_fetch_and_add },
	[DAT_IB_CMP_AND_SWAP_OP] = { OBJ_EP, DAT_INVALID_HANDLE_EP, ext_cmp_and_swap },
	[DAT_IB_RDMA_WRITE_IMMED_OP] = { OBJ_EP, DAT_INVALID_HANDLE_EP, ext_rdma_write_immed },
	[DAT_IB_QUERY_COUNTERS_OP] = { OBJ_KINDS, 0, ext_query_counters },
	[DAT_IB_PRINT_COUNTERS_OP] = { OBJ_KINDS, 0, ext_print_counters },
	[DAT_IB_UD_SEND_OP] = { OBJ_EP, DAT_INVALID_HANDLE_EP, ext_send_ud },
	[DAT_IB_UD_CM_FREE_OP] = { OBJ_EP, DAT_INVALID_HANDLE_EP, ext_ud_cm_free },
	[DAT_IB_UD_AH_FREE_OP] = { OBJ_EP, DAT_INVALID_HANDLE_EP, ext_ud_ah_free },
	[DAT_IB_PRINT_COUNTERS_OP + 1 ... DAT_IB_START_COUNTERS_OP - 1] = NONE,
	[DAT_IB_START_COUNTERS_OP] = { OBJ_IA, DAT_INVALID_HANDLE_IA, ext_start_counters },
	[DAT_IB_STOP_COUNTERS_OP] = { OBJ_IA, DAT_INVALID_HANDLE_IA, ext_stop_counters },
};
static const struct operation closing = { OBJ_IA, DAT_INVALID_HANDLE_IA, ext_close_query };

#define EV(op) ((op)-DAT_EV_VERSION_OP)

static const struct operation ev_operations[] = {
	[EV(DAT_EV_VERSION_OP)] = { OBJ_IA, DAT_INVALID_HANDLE1, ext_ev_version },
	[EV(DAT_EVD_GET_FD_OP)] = { OBJ_EVD, DAT_INVALID_HANDLE_EVD_REQUEST, ext_evd_get_fd },
	[EV(DAT_EVD_ARM_OP)] = { OBJ_EVD, DAT_INVALID_HANDLE_EVD_REQUEST, ext_evd_arm },
	[EV(DAT_EVD_DEQUEUE_N_OP)] = { OBJ_EVD, DAT_INVALID_HANDLE_EVD_REQUEST, ext_evd_dequeue_n },
	[EV(DAT_EVD_PENDING_OP)] = { OBJ_EVD, DAT_INVALID_HANDLE_EVD_REQUEST, ext_evd_pending },
	[EV(DAT_EVD_SIGNAL_OP)] = { OBJ_EVD, DAT_INVALID_HANDLE_EVD_REQUEST, ext_evd_signal },
	[EV(DAT_EVD_WAIT_POLICY_OP)] = { OBJ_EVD, DAT_INVALID_HANDLE_EVD_REQUEST,
					 ext_evd_wait_policy },
	[EV(DAT_EVD_WAIT_POLICY_OP) + 1 ... EV(DAT_CNO_GET_FD_OP) - 1] = NONE,
	[EV(DAT_CNO_GET_FD_OP)] = { OBJ_CNO, DAT_INVALID_HANDLE_CNO, ext_cno_get_fd },
	[EV(DAT_CNO_ARM_OP)] = { OBJ_CNO, DAT_INVALID_HANDLE_CNO, ext_cno_arm },
	[EV(DAT_CNO_SIGNAL_OP)] = { OBJ_CNO, DAT_INVALID_HANDLE_CNO, ext_cno_signal },
	[EV(DAT_CNO_POLL_OP)] = { OBJ_CNO, DAT_INVALID_HANDLE_CNO, ext_cno_poll },
	[EV(DAT_CNO_GET_POLLFDS_OP)] = { OBJ_CNO, DAT_INVALID_HANDLE_CNO, ext_cno_get_pollfds },
	[EV(DAT_CNO_GET_POLLFDS_OP) + 1 ... EV(DAT_TRYWAIT_OP) - 1] = NONE,
	[EV(DAT_TRYWAIT_OP)] = { OBJ_IA, DAT_INVALID_HANDLE1, ext_trywait },
	[EV(DAT_WAIT_MEM_OP)] = { OBJ_KINDS, 0, ext_wait_mem },
	[EV(DAT_WAIT_MEM_OP) + 1 ... EV(DAT_PSET_CREATE_OP) - 1] = NONE,
	[EV(DAT_PSET_CREATE_OP)] = { OBJ_IA, DAT_INVALID_HANDLE1, ext_pset_create },
	[EV(DAT_PSET_ADD_OP)] = { OBJ_PSET, DAT_INVALID_HANDLE1, ext_pset_add },
	[EV(DAT_PSET_DEL_OP)] = { OBJ_PSET, DAT_INVALID_HANDLE1, ext_pset_del },
	[EV(DAT_PSET_POLL_OP)] = { OBJ_PSET, DAT_INVALID_HANDLE1, ext_pset_poll },
	[EV(DAT_PSET_FREE_OP)] = { OBJ_PSET, DAT_INVALID_HANDLE1, ext_pset_free },
};

#undef EV

#define ENTRIES(table) (sizeof(table) / sizeof((table)[0]))

/*
 * Returns the error for a handle of another kind, or of no required kind, or for an unknown
 * operation.
 */
static __attribute__((noinline)) DAT_RETURN other(DAT_HANDLE handle, va_list args,
						  const struct operation *operation)
{
	if (operation->kind != OBJ_KINDS)
		return DAT_ERROR(DAT_INVALID_HANDLE, operation->subtype);
	return operation->call ? operation->call(handle, args) : dapl_not_implemented();
}

static inline DAT_RETURN call(DAT_HANDLE handle, va_list args, const struct operation *operation)
{
	if (__builtin_expect(obj_is(handle, operation->kind), 1))
		return operation->call(handle, args);
	return other(handle, args, operation);
}

static __attribute__((noinline)) DAT_RETURN ib_extensions(DAT_HANDLE handle, unsigned op,
							  va_list args)
{
	if (__builtin_expect(op < ENTRIES(ib_operations), 1))
		return call(handle, args, &ib_operations[op]);
	if (op == DAT_IB_OPEN_QUERY_OP)
		return ext_open_query(handle, args);
	return op == DAT_IB_CLOSE_QUERY_OP ? call(handle, args, &closing) : dapl_not_implemented();
}

__attribute__((visibility("default"))) DAT_RETURN dapl_extensions(DAT_HANDLE handle,
								  DAT_EXTENDED_OP op, va_list args)
{
	unsigned ev = (unsigned)op - DAT_EV_VERSION_OP;

	if (ev < ENTRIES(ev_operations))
		return call(handle, args, &ev_operations[ev]);
	return ib_extensions(handle, (unsigned)op, args);
}
