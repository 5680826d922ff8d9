/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Extension operations: which there are, and the kind of object that each is for. */
#include "dapl/udapl/ext.h"
#include "dapl/udapl/obj.h"

/* Every endpoint here is one of connections. */
static DAT_RETURN ext_no_datagrams(DAT_HANDLE ep, va_list args)
{
	(void)ep;
	(void)args;
	return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
}

static const struct {
	int op;
	enum obj_kind kind;		/* of the handle; OBJ_FREE: the operation looks itself */
	DAT_UINT32 subtype;		/* of another handle */
	DAT_RETURN (*call)(DAT_HANDLE handle, va_list args);
} operations[] = {
	{ DAT_IB_FETCH_AND_ADD_OP, OBJ_EP, DAT_INVALID_HANDLE_EP, ext_fetch_and_add },
	{ DAT_IB_CMP_AND_SWAP_OP, OBJ_EP, DAT_INVALID_HANDLE_EP, ext_cmp_and_swap },
	{ DAT_IB_RDMA_WRITE_IMMED_OP, OBJ_EP, DAT_INVALID_HANDLE_EP, ext_rdma_write_immed },
	{ DAT_IB_QUERY_COUNTERS_OP, OBJ_FREE, 0, ext_query_counters },
	{ DAT_IB_PRINT_COUNTERS_OP, OBJ_FREE, 0, ext_print_counters },
	{ DAT_IB_UD_SEND_OP, OBJ_EP, DAT_INVALID_HANDLE_EP, ext_no_datagrams },
	{ DAT_IB_UD_CM_FREE_OP, OBJ_EP, DAT_INVALID_HANDLE_EP, ext_no_datagrams },
	{ DAT_IB_UD_AH_FREE_OP, OBJ_EP, DAT_INVALID_HANDLE_EP, ext_no_datagrams },
	{ DAT_IB_OPEN_QUERY_OP, OBJ_FREE, 0, ext_open_query },
	{ DAT_IB_CLOSE_QUERY_OP, OBJ_IA, DAT_INVALID_HANDLE_IA, ext_close_query },
};

__attribute__((visibility("default")))
DAT_RETURN dapl_extensions(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list args)
{
	size_t i;

	for (i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
		if (operations[i].op != (int)op)
			continue;
		if (operations[i].kind != OBJ_FREE && !obj_from(handle, operations[i].kind))
			return DAT_ERROR(DAT_INVALID_HANDLE, operations[i].subtype);
		return operations[i].call(handle, args);
	}
	return dapl_not_implemented();
}
