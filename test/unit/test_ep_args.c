/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Each check of creating and connecting endpoints, alone and with each later one. */
#include "test/unit/spoil.h"

/* ---- dat_ep_create, dat_ep_create_with_srq ---- */

struct ep_args {
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE recv, request, connect;
	DAT_SRQ_HANDLE srq;
	DAT_EP_ATTR values;
	const DAT_EP_ATTR *attr;
	DAT_EP_HANDLE *ep;
};

static void ep_good(void *args)
{
	struct ep_args *a = args;

	*a = (struct ep_args){ .ia = things.ia,
			       .pz = things.pz,
			       .recv = things.rig.recv,
			       .request = things.rig.request,
			       .connect = things.evd,
			       .srq = things.srq,
			       .values = rig_attr(),
			       .attr = &a->values,
			       .ep = &things_out.handle };
}

static DAT_RETURN ep_call(void *args)
{
	struct ep_args *a = args;

	return dat_ep_create(a->ia, a->pz, a->recv, a->request, a->connect, a->attr, a->ep);
}

static DAT_RETURN ep_srq_call(void *args)
{
	struct ep_args *a = args;

	return dat_ep_create_with_srq(a->ia, a->pz, a->recv, a->request, a->connect, a->srq,
				      a->attr, a->ep);
}

static void ep_undo(void *args)
{
	OK(dat_ep_free(*((struct ep_args *)args)->ep));
}

SPOIL(ep_args, ep_bad_ia, a->ia = things.evd)
SPOIL(ep_args, ep_bad_pz, a->pz = things.evd)
SPOIL(ep_args, ep_bad_connect, a->connect = things.software)
SPOIL(ep_args, ep_bad_recv, a->recv = things.requests)
SPOIL(ep_args, ep_bad_request, a->request = things.evd)
SPOIL(ep_args, ep_no_output, a->ep = NULL)
SPOIL(ep_args, ep_misaligned, a->attr = (const DAT_EP_ATTR *)((uintptr_t)a->attr | 1))
SPOIL(ep_args, ep_type, a->values.service_type = (DAT_SERVICE_TYPE)77)
SPOIL(ep_args, ep_negative, a->values.max_recv_dtos = -1)
SPOIL(ep_args, ep_recv_dtos, a->values.max_recv_dtos = FAKE_MAX_WR + 1)
SPOIL(ep_args, ep_request_dtos, a->values.max_request_dtos = FAKE_MAX_WR + 1)
SPOIL(ep_args, ep_recv_iov, a->values.max_recv_iov = FAKE_MAX_SGE + 1)
SPOIL(ep_args, ep_request_iov, a->values.max_request_iov = FAKE_MAX_SGE + 1)
SPOIL(ep_args, ep_read_in, a->values.max_rdma_read_in = 17)
SPOIL(ep_args, ep_read_out, a->values.max_rdma_read_out = 16)
SPOIL(ep_args, ep_read_iov, a->values.max_rdma_read_iov = 3)
SPOIL(ep_args, ep_message, a->values.max_message_size = (DAT_VLEN)FAKE_MAX_MESSAGE + 1)
SPOIL(ep_args, ep_rdma, a->values.max_rdma_size = (DAT_VLEN)FAKE_MAX_MESSAGE + 1)
SPOIL(ep_args, ep_qos, a->values.qos = DAT_QOS_LOW_LATENCY)
SPOIL(ep_args, ep_recv_flags, a->values.recv_completion_flags = DAT_COMPLETION_SUPPRESS_FLAG)
SPOIL(ep_args, ep_request_flags, a->values.request_completion_flags = (DAT_COMPLETION_FLAGS)0x20)
SPOIL(ep_args, ep_two_flags,
      a->values.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG |
					DAT_COMPLETION_SOLICITED_WAIT_FLAG)
SPOIL(ep_args, ep_disagree, a->values.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG)

/* All rows about the attributes concern one argument. */
#define ATTR_ROWS(arg, number)                                                            \
	{ "type", ep_type, E(INVALID_PARAMETER, arg), number },                           \
		{ "negative", ep_negative, E(INVALID_PARAMETER, arg), number },           \
		{ "request dtos", ep_request_dtos, E(INVALID_PARAMETER, arg), number },   \
		{ "request iov", ep_request_iov, E(INVALID_PARAMETER, arg), number },     \
		{ "read in", ep_read_in, E(INVALID_PARAMETER, arg), number },             \
		{ "read out", ep_read_out, E(INVALID_PARAMETER, arg), number },           \
		{ "read iov", ep_read_iov, E(INVALID_PARAMETER, arg), number },           \
		{ "message size", ep_message, E(INVALID_PARAMETER, arg), number },        \
		{ "rdma size", ep_rdma, E(INVALID_PARAMETER, arg), number },              \
		{ "qos", ep_qos, E(INVALID_PARAMETER, arg), number },                     \
		{ "recv flags", ep_recv_flags, E(INVALID_PARAMETER, arg), number },       \
		{ "request flags", ep_request_flags, E(INVALID_PARAMETER, arg), number }, \
		{ "two flags", ep_two_flags, E(INVALID_PARAMETER, arg), number },         \
	{                                                                                 \
		"disagreement", ep_disagree, E(INVALID_PARAMETER, arg), number            \
	}

#define HANDLE_ROWS                                                                               \
	{ "ia", ep_bad_ia, E(INVALID_HANDLE, INVALID_HANDLE_IA), 1 },                             \
		{ "pz", ep_bad_pz, E(INVALID_HANDLE, INVALID_HANDLE_PZ), 2 },                     \
		{ "connect evd", ep_bad_connect, E(INVALID_HANDLE, INVALID_HANDLE_EVD_CONN), 5 }, \
		{ "recv evd", ep_bad_recv, E(INVALID_HANDLE, INVALID_HANDLE_EVD_RECV), 3 },       \
	{                                                                                         \
		"request evd", ep_bad_request, E(INVALID_HANDLE, INVALID_HANDLE_EVD_REQUEST), 4   \
	}

static const struct spoil_row ep_rows[] = {
	HANDLE_ROWS,
	{ "no output", ep_no_output, E(INVALID_PARAMETER, INVALID_ARG7), 7 },
	{ "misaligned", ep_misaligned, E(INVALID_PARAMETER, INVALID_ARG6), 6 },
	{ "recv dtos", ep_recv_dtos, E(INVALID_PARAMETER, INVALID_ARG6), 6 },
	{ "recv iov", ep_recv_iov, E(INVALID_PARAMETER, INVALID_ARG6), 6 },
	ATTR_ROWS(INVALID_ARG6, 6),
};

static const struct spoil_call ep_create = {
	"dat_ep_create", sizeof(struct ep_args), ep_good, ep_call, ep_undo, ep_rows, COUNT(ep_rows)
};

SPOIL(ep_args, ep_bad_srq, a->srq = things.ep)
SPOIL(ep_args, ep_no_attr, a->attr = NULL)

static const struct spoil_row ep_srq_rows[] = {
	HANDLE_ROWS,
	{ "srq", ep_bad_srq, E(INVALID_HANDLE, INVALID_HANDLE_SRQ), 6 },
	{ "no attributes", ep_no_attr, E(INVALID_PARAMETER, INVALID_ARG7), 7 },
	{ "misaligned", ep_misaligned, E(INVALID_PARAMETER, INVALID_ARG7), 7 },
	{ "no output", ep_no_output, E(INVALID_PARAMETER, INVALID_ARG8), 8 },
	ATTR_ROWS(INVALID_ARG7, 7),
};

static const struct spoil_call ep_create_srq = { "dat_ep_create_with_srq",
						 sizeof(struct ep_args),
						 ep_good,
						 ep_srq_call,
						 ep_undo,
						 ep_srq_rows,
						 COUNT(ep_srq_rows) };

static void run(const struct spoil_call *call)
{
	things_open();
	spoil_run(call);
	things_close();
}

static void test_create(void)
{
	run(&ep_create);
}
static void test_create_with_srq(void)
{
	run(&ep_create_srq);
}

/* ---- dat_ep_connect, dat_ep_common_connect ---- */

struct connect_args {
	struct sockaddr_storage storage;
	struct sockaddr *address;
	DAT_EP_HANDLE ep;
	DAT_CONN_QUAL qual;
	DAT_TIMEOUT timeout;
	DAT_COUNT size;
	DAT_PVOID data;
	DAT_QOS qos;
	DAT_CONNECT_FLAGS flags;
};

static DAT_EP_HANDLE deaf, without_pz; /* an EP without a connect EVD, and one without a PZ */

static void connect_good(void *args)
{
	struct connect_args *a = args;

	*a = (struct connect_args){ .address = (struct sockaddr *)&a->storage,
				    .ep = things.ep,
				    .qual = 4711,
				    .timeout = DAT_TIMEOUT_INFINITE };
	*(struct sockaddr_in *)&a->storage =
		(struct sockaddr_in){ .sin_family = AF_INET,
				      .sin_port = htons(4711),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

static DAT_RETURN connect_call(void *args)
{
	struct connect_args *a = args;

	return dat_ep_connect(a->ep, a->address, a->qual, a->timeout, a->size, a->data, a->qos,
			      a->flags);
}

static DAT_RETURN common_call(void *args)
{
	struct connect_args *a = args;

	return dat_ep_common_connect(a->ep, a->address, a->timeout, a->size, a->data);
}

static void connect_undo(void *args)
{
	(void)args;
	OK(dat_ep_disconnect(things.ep, DAT_CLOSE_ABRUPT_FLAG));
	CU_ASSERT_EQUAL(rig_take(things.evd).event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
	OK(dat_ep_reset(things.ep));
}

SPOIL(connect_args, con_no_address, a->address = NULL)
SPOIL(connect_args, con_bad_ep, a->ep = things.pz)
SPOIL(connect_args, con_deaf, a->ep = deaf)
SPOIL(connect_args, con_no_time, a->timeout = 0)
SPOIL(connect_args, con_family, a->storage.ss_family = AF_UNIX)
SPOIL(connect_args, con_multicast,
      ((struct sockaddr_in *)&a->storage)->sin_addr.s_addr = htonl(0xe0000001))
SPOIL(connect_args, con_broadcast,
      ((struct sockaddr_in *)&a->storage)->sin_addr.s_addr = htonl(INADDR_BROADCAST))
SPOIL(connect_args, con_other_family, a->storage.ss_family = AF_INET6)
SPOIL(connect_args, con_no_qual, a->qual = 0)
SPOIL(connect_args, con_no_port, ((struct sockaddr_in *)&a->storage)->sin_port = 0)
SPOIL(connect_args, con_negative, a->size = -1)
SPOIL(connect_args, con_too_much, a->size = 57)
SPOIL(connect_args, con_no_data, (a->size = 56, a->data = NULL))
SPOIL(connect_args, con_qos, a->qos = DAT_QOS_LOW_LATENCY)
SPOIL(connect_args, con_flags, a->flags = DAT_CONNECT_MULTIPATH_FLAG)
SPOIL(connect_args, con_no_pz, a->ep = without_pz)
SPOIL(connect_args, con_state, a->ep = things.reserved)

#define ADDRESS_ROWS                                                                               \
	{ "family", con_family, E(INVALID_ADDRESS, INVALID_ADDRESS_UNSUPPORTED), 2 },              \
		{ "multicast", con_multicast, E(INVALID_ADDRESS, INVALID_ADDRESS_UNSUPPORTED),     \
		  2 },                                                                             \
		{ "broadcast", con_broadcast, E(INVALID_ADDRESS, INVALID_ADDRESS_UNSUPPORTED),     \
		  2 },                                                                             \
	{                                                                                          \
		"other family", con_other_family, E(INVALID_ADDRESS, INVALID_ADDRESS_UNREACHABLE), \
			2                                                                          \
	}

static const struct spoil_row connect_rows[] = {
	{ "no address", con_no_address, E(INVALID_PARAMETER, INVALID_ARG2), 2 },
	{ "ep", con_bad_ep, E(INVALID_HANDLE, INVALID_HANDLE_EP), 1 },
	{ "no connect evd", con_deaf, E(INVALID_HANDLE, INVALID_HANDLE_EVD_CONN), 1 },
	{ "no time", con_no_time, E(INVALID_PARAMETER, INVALID_ARG4), 4 },
	ADDRESS_ROWS,
	{ "no qualifier", con_no_qual, E(INVALID_PARAMETER, INVALID_ARG3), 3 },
	{ "negative", con_negative, E(INVALID_PARAMETER, INVALID_ARG5), 5 },
	{ "too much", con_too_much, E(INVALID_PARAMETER, INVALID_ARG5), 5 },
	{ "no data", con_no_data, E(INVALID_PARAMETER, INVALID_ARG6), 5 },
	{ "qos", con_qos, E0(MODEL_NOT_SUPPORTED), 7 },
	{ "flags", con_flags, E0(MODEL_NOT_SUPPORTED), 8 },
	{ "no pz", con_no_pz, E(INVALID_STATE, INVALID_STATE_EP_NOTREADY), 1 },
	{ "state", con_state, E(INVALID_STATE, INVALID_STATE_EP_RESERVED), 1 },
};

static const struct spoil_call ep_connect_call = { "dat_ep_connect",   sizeof(struct connect_args),
						   connect_good,       connect_call,
						   connect_undo,       connect_rows,
						   COUNT(connect_rows) };

static const struct spoil_row common_rows[] = {
	{ "no address", con_no_address, E(INVALID_PARAMETER, INVALID_ARG2), 2 },
	{ "ep", con_bad_ep, E(INVALID_HANDLE, INVALID_HANDLE_EP), 1 },
	{ "no connect evd", con_deaf, E(INVALID_HANDLE, INVALID_HANDLE_EVD_CONN), 1 },
	{ "no time", con_no_time, E(INVALID_PARAMETER, INVALID_ARG3), 3 },
	ADDRESS_ROWS,
	{ "no port", con_no_port, E(INVALID_ADDRESS, INVALID_ADDRESS_MALFORMED), 2 },
	{ "negative", con_negative, E(INVALID_PARAMETER, INVALID_ARG4), 4 },
	{ "too much", con_too_much, E(INVALID_PARAMETER, INVALID_ARG4), 4 },
	{ "no data", con_no_data, E(INVALID_PARAMETER, INVALID_ARG5), 4 },
	{ "no pz", con_no_pz, E(INVALID_STATE, INVALID_STATE_EP_NOTREADY), 1 },
	{ "state", con_state, E(INVALID_STATE, INVALID_STATE_EP_RESERVED), 1 },
};

static const struct spoil_call ep_common_call = { "dat_ep_common_connect",
						  sizeof(struct connect_args),
						  connect_good,
						  common_call,
						  connect_undo,
						  common_rows,
						  COUNT(common_rows) };

static void run_connecting(const struct spoil_call *call)
{
	DAT_EP_ATTR attr = rig_attr();

	things_open();
	MUST(dat_ep_create(things.ia, things.pz, things.rig.recv, things.rig.request,
			   DAT_HANDLE_NULL, &attr, &deaf));
	MUST(dat_ep_create(things.ia, DAT_HANDLE_NULL, things.rig.recv, things.rig.request,
			   things.evd, &attr, &without_pz));
	spoil_run(call);
	MUST(dat_ep_free(deaf));
	MUST(dat_ep_free(without_pz));
	things_close();
}

static void test_connect(void)
{
	run_connecting(&ep_connect_call);
}
static void test_common_connect(void)
{
	run_connecting(&ep_common_call);
}

static const struct unit_test tests[] = {
	{ "create: each check, alone and with each later one", test_create },
	{ "create_with_srq: each check, alone and with each later one", test_create_with_srq },
	{ "connect: each check, alone and with each later one", test_connect },
	{ "common_connect, each row and pair of rows", test_common_connect },
};

UNIT_MAIN("ep_args", tests)
