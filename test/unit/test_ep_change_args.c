/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Each check of the calls that change an endpoint, alone and with each later one; a failure changes nothing. */
#include "test/unit/spoil.h"

#define ATTR(field) DAT_EP_FIELD_EP_ATTR_##field

/* EPs: connected, or with flags that only others allow; without a connect EVD; without a PZ */
static DAT_EP_HANDLE other, deaf, without_pz;

/* ---- parameters of the endpoints before a call ---- */

static DAT_EP_HANDLE watched[5];
static DAT_EP_PARAM before[5];

static void look(DAT_EP_PARAM *params)
{
	const DAT_EP_HANDLE all[] = { things.ep, things.reserved, other, deaf, without_pz };
	size_t i;

	memset(params, 0, sizeof(before));
	memcpy(watched, all, sizeof(watched));
	for (i = 0; i < COUNT(watched); i++)
		OK(dat_ep_query(watched[i], DAT_EP_FIELD_ALL, &params[i]));
}

static DAT_RETURN unchanged(DAT_RETURN status)
{
	DAT_EP_PARAM after[COUNT(before)];

	look(after);
	if (status != DAT_SUCCESS)
		CU_ASSERT_EQUAL(memcmp(before, after, sizeof(before)), 0);
	return status;
}

static void open_all(void)
{
	DAT_EP_ATTR attr = rig_attr();
	struct rig rig;

	things_open();
	MUST(dat_ep_create(things.ia, things.pz, things.rig.recv, things.rig.request, things.evd,
			   &attr, &other));
	MUST(dat_ep_create(things.ia, things.pz, things.rig.recv, things.rig.request,
			   DAT_HANDLE_NULL, &attr, &deaf));
	MUST(dat_ep_create(things.ia, DAT_HANDLE_NULL, things.rig.recv, things.rig.request,
			   things.evd, &attr, &without_pz));
	rig = things.rig;
	rig.ep = other;
	rig_connect(&rig);
	look(before);
}

static void close_all(void)
{
	MUST(dat_ep_free(other));
	while (dat_evd_dequeue(things.evd, &(DAT_EVENT){ 0 }) == DAT_SUCCESS)
		;
	MUST(dat_ep_free(deaf));
	MUST(dat_ep_free(without_pz));
	things_close();
}

static void run(const struct spoil_call *call)
{
	open_all();
	spoil_run(call);
	close_all();
}

/* ---- dat_ep_modify ---- */

struct modify_args {
	DAT_EP_HANDLE ep;
	DAT_EP_PARAM_MASK mask;
	DAT_EP_PARAM value;
	const DAT_EP_PARAM *param;
};

static void modify_good(void *args)
{
	struct modify_args *a = args;

	*a = (struct modify_args){ .ep = things.ep,
				   .mask = ATTR(MAX_MESSAGE_SIZE),
				   .param = &a->value };
	OK(dat_ep_query(things.ep, DAT_EP_FIELD_ALL, &a->value));
	a->value.ep_attr.max_message_size = 1000;
}

static DAT_RETURN modify_call(void *args)
{
	struct modify_args *a = args;

	look(before);
	return unchanged(dat_ep_modify(a->ep, a->mask, a->param));
}

/* A field whose mask bit and value are set. */
#define FIELD(name, bits, assignment)  SPOIL(modify_args, name, (a->mask |= (bits), assignment))
#define SET(name, bit, member, number) FIELD(name, ATTR(bit), a->value.ep_attr.member = (number))

SPOIL(modify_args, mod_bad_ep, a->ep = things.pz)
SPOIL(modify_args, mod_no_param, a->param = NULL)
SPOIL(modify_args, mod_ia, a->mask |= DAT_EP_FIELD_IA_HANDLE)
SPOIL(modify_args, mod_state, a->mask |= DAT_EP_FIELD_EP_STATE)
SPOIL(modify_args, mod_comm, a->mask |= DAT_EP_FIELD_COMM)
SPOIL(modify_args, mod_local, a->mask |= DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR)
SPOIL(modify_args, mod_local_port, a->mask |= DAT_EP_FIELD_LOCAL_PORT_QUAL)
SPOIL(modify_args, mod_remote, a->mask |= DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR)
SPOIL(modify_args, mod_remote_port, a->mask |= DAT_EP_FIELD_REMOTE_PORT_QUAL)
SPOIL(modify_args, mod_srq, a->mask |= DAT_EP_FIELD_SRQ_HANDLE)
SPOIL(modify_args, mod_unknown, a->mask |= (DAT_EP_PARAM_MASK)(DAT_EP_FIELD_ALL + 1))
SPOIL(modify_args, mod_reserved, (a->ep = things.reserved, a->mask |= DAT_EP_FIELD_PZ_HANDLE))
SPOIL(modify_args, mod_connected, a->ep = other)
FIELD(mod_pz, DAT_EP_FIELD_PZ_HANDLE, a->value.pz_handle = things.evd)
FIELD(mod_recv, DAT_EP_FIELD_RECV_EVD_HANDLE, a->value.recv_evd_handle = things.requests)
FIELD(mod_request, DAT_EP_FIELD_REQUEST_EVD_HANDLE, a->value.request_evd_handle = things.evd)
FIELD(mod_connect, DAT_EP_FIELD_CONNECT_EVD_HANDLE, a->value.connect_evd_handle = things.software)
FIELD(mod_no_recv, DAT_EP_FIELD_RECV_EVD_HANDLE, a->value.recv_evd_handle = DAT_HANDLE_NULL)
FIELD(mod_no_request, DAT_EP_FIELD_REQUEST_EVD_HANDLE,
      a->value.request_evd_handle = DAT_HANDLE_NULL)
SET(mod_type, SERVICE_TYPE, service_type, (DAT_SERVICE_TYPE)77)
SET(mod_message, MAX_MESSAGE_SIZE, max_message_size, (DAT_VLEN)FAKE_MAX_MESSAGE + 1)
SET(mod_rdma, MAX_RDMA_SIZE, max_rdma_size, (DAT_VLEN)FAKE_MAX_MESSAGE + 1)
SET(mod_qos, QOS, qos, DAT_QOS_LOW_LATENCY)
SET(mod_recv_dtos, MAX_RECV_DTOS, max_recv_dtos, FAKE_MAX_WR + 1)
SET(mod_request_dtos, MAX_REQUEST_DTOS, max_request_dtos, -1)
SET(mod_recv_iov, MAX_RECV_IOV, max_recv_iov, 0)
SET(mod_request_iov, MAX_REQUEST_IOV, max_request_iov, FAKE_MAX_SGE + 1)
SET(mod_read_in, MAX_RDMA_READ_IN, max_rdma_read_in, 17)
SET(mod_read_out, MAX_RDMA_READ_OUT, max_rdma_read_out, 16)
SET(mod_read_iov, MAX_RDMA_READ_IOV, max_rdma_read_iov, 3)
SET(mod_write_iov, MAX_RDMA_WRITE_IOV, max_rdma_write_iov, FAKE_MAX_SGE + 1)
SET(mod_transport, NUM_TRANSPORT_ATTR, ep_transport_specific_count, 1)
SET(mod_provider, NUM_PROVIDER_ATTR, ep_provider_specific_count, -1)
SET(mod_recv_flags, RECV_COMPLETION_FLAGS, recv_completion_flags, DAT_COMPLETION_SUPPRESS_FLAG)
SET(mod_request_flags, REQUEST_COMPLETION_FLAGS, request_completion_flags,
    (DAT_COMPLETION_FLAGS)0x20)
SET(mod_two_flags, RECV_COMPLETION_FLAGS, recv_completion_flags,
    (DAT_COMPLETION_FLAGS)(DAT_COMPLETION_UNSIGNALLED_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG))
SET(mod_disagree, RECV_COMPLETION_FLAGS, recv_completion_flags, DAT_COMPLETION_SOLICITED_WAIT_FLAG)

#define MASK_ROW(what, spoil)                                      \
	{                                                          \
		what, spoil, E(INVALID_PARAMETER, INVALID_ARG2), 2 \
	}
/* The parameters are one argument; each field may be wrong together with any other. */
#define PARAM_ROW(what, spoil, field)                                         \
	{                                                                     \
		what, spoil, E(INVALID_PARAMETER, INVALID_ARG3), 10 + (field) \
	}

static const struct spoil_row modify_rows[] = {
	{ "ep", mod_bad_ep, E(INVALID_HANDLE, INVALID_HANDLE_EP), 1 },
	{ "no parameters", mod_no_param, E(INVALID_PARAMETER, INVALID_ARG3), 3 },
	MASK_ROW("ia", mod_ia),
	MASK_ROW("state", mod_state),
	MASK_ROW("comm", mod_comm),
	MASK_ROW("local address", mod_local),
	MASK_ROW("local port", mod_local_port),
	MASK_ROW("remote address", mod_remote),
	MASK_ROW("remote port", mod_remote_port),
	MASK_ROW("srq", mod_srq),
	MASK_ROW("unknown bit", mod_unknown),
	{ "reserved", mod_reserved, E(INVALID_STATE, INVALID_STATE_EP_RESERVED), 1 },
	{ "connected", mod_connected, E(INVALID_STATE, INVALID_STATE_EP_CONNECTED), 1 },
	PARAM_ROW("pz", mod_pz, 1),
	PARAM_ROW("recv evd", mod_recv, 2),
	PARAM_ROW("request evd", mod_request, 3),
	PARAM_ROW("connect evd", mod_connect, 4),
	PARAM_ROW("no recv evd", mod_no_recv, 2),
	PARAM_ROW("no request evd", mod_no_request, 3),
	PARAM_ROW("type", mod_type, 5),
	PARAM_ROW("message size", mod_message, 6),
	PARAM_ROW("rdma size", mod_rdma, 7),
	PARAM_ROW("qos", mod_qos, 8),
	PARAM_ROW("recv dtos", mod_recv_dtos, 9),
	PARAM_ROW("request dtos", mod_request_dtos, 10),
	PARAM_ROW("recv iov", mod_recv_iov, 11),
	PARAM_ROW("request iov", mod_request_iov, 12),
	PARAM_ROW("read in", mod_read_in, 13),
	PARAM_ROW("read out", mod_read_out, 14),
	PARAM_ROW("read iov", mod_read_iov, 16),
	PARAM_ROW("write iov", mod_write_iov, 17),
	PARAM_ROW("transport", mod_transport, 18),
	PARAM_ROW("provider", mod_provider, 19),
	PARAM_ROW("recv flags", mod_recv_flags, 20),
	PARAM_ROW("request flags", mod_request_flags, 21),
	PARAM_ROW("two flags", mod_two_flags, 20),
	PARAM_ROW("disagreement", mod_disagree, 20),
};

static const struct spoil_call modify = {
	"dat_ep_modify", sizeof(struct modify_args), modify_good, modify_call, NULL,
	modify_rows,	 COUNT(modify_rows)
};

static void test_modify(void)
{
	run(&modify);
}

/* ---- dat_ep_dup_connect ---- */

struct dup_args {
	DAT_EP_HANDLE ep, like;
	DAT_TIMEOUT timeout;
	DAT_COUNT size;
	DAT_PVOID data;
	DAT_QOS qos;
};

static void dup_good(void *args)
{
	*(struct dup_args *)args = (struct dup_args){ .ep = things.ep,
						      .like = other,
						      .timeout = DAT_TIMEOUT_INFINITE };
}

static DAT_RETURN dup_call(void *args)
{
	struct dup_args *a = args;

	look(before);
	return unchanged(dat_ep_dup_connect(a->ep, a->like, a->timeout, a->size, a->data, a->qos));
}

static void dup_undo(void *args)
{
	(void)args;
	OK(dat_ep_disconnect(things.ep, DAT_CLOSE_ABRUPT_FLAG));
	CU_ASSERT_EQUAL(rig_take(things.evd).event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
	OK(dat_ep_reset(things.ep));
}

SPOIL(dup_args, dup_bad_like, a->like = things.pz)
SPOIL(dup_args, dup_bad_ep, a->ep = things.evd)
SPOIL(dup_args, dup_no_time, a->timeout = 0)
SPOIL(dup_args, dup_not_connected, a->like = things.reserved)
SPOIL(dup_args, dup_deaf, a->ep = deaf)
SPOIL(dup_args, dup_negative, a->size = -1)
SPOIL(dup_args, dup_too_much, a->size = 57)
SPOIL(dup_args, dup_no_data, (a->size = 56, a->data = NULL))
SPOIL(dup_args, dup_qos, a->qos = DAT_QOS_LOW_LATENCY)
SPOIL(dup_args, dup_no_pz, a->ep = without_pz)
SPOIL(dup_args, dup_state, a->ep = things.reserved)
SPOIL(dup_args, dup_itself, a->ep = other)

static const struct spoil_row dup_rows[] = {
	{ "template", dup_bad_like, E(INVALID_HANDLE, INVALID_HANDLE_EP), 2 },
	{ "ep", dup_bad_ep, E(INVALID_HANDLE, INVALID_HANDLE_EP), 1 },
	{ "no time", dup_no_time, E(INVALID_PARAMETER, INVALID_ARG3), 3 },
	{ "template's state", dup_not_connected, E(INVALID_STATE, INVALID_STATE_EP_RESERVED), 2 },
	{ "no connect evd", dup_deaf, E(INVALID_HANDLE, INVALID_HANDLE_EVD_CONN), 1 },
	{ "negative", dup_negative, E(INVALID_PARAMETER, INVALID_ARG4), 4 },
	{ "too much", dup_too_much, E(INVALID_PARAMETER, INVALID_ARG4), 4 },
	{ "no data", dup_no_data, E(INVALID_PARAMETER, INVALID_ARG5), 4 },
	{ "qos", dup_qos, E0(MODEL_NOT_SUPPORTED), 6 },
	{ "no pz", dup_no_pz, E(INVALID_STATE, INVALID_STATE_EP_NOTREADY), 1 },
	{ "state", dup_state, E(INVALID_STATE, INVALID_STATE_EP_RESERVED), 1 },
	{ "the template itself", dup_itself, E(INVALID_STATE, INVALID_STATE_EP_CONNECTED), 1 },
};

static const struct spoil_call duplicate = {
	"dat_ep_dup_connect", sizeof(struct dup_args), dup_good, dup_call, dup_undo, dup_rows,
	COUNT(dup_rows)
};

static void test_dup_connect(void)
{
	run(&duplicate);
}

/* ---- dat_ep_disconnect, dat_ep_set_watermark ---- */

struct end_args {
	DAT_EP_HANDLE ep;
	DAT_CLOSE_FLAGS flags;
	DAT_COUNT soft, hard;
};

/* With valid arguments the endpoint is disconnected already, so the call has no effect. */
static void end_good(void *args)
{
	*(struct end_args *)args =
		(struct end_args){ things.ep, DAT_CLOSE_ABRUPT_FLAG, DAT_WATERMARK_INFINITE,
				   DAT_WATERMARK_INFINITE };
}

static DAT_RETURN disconnect_call(void *args)
{
	struct end_args *a = args;

	look(before);
	return unchanged(dat_ep_disconnect(a->ep, a->flags));
}

static DAT_RETURN watermark_call(void *args)
{
	struct end_args *a = args;

	look(before);
	return unchanged(dat_ep_set_watermark(a->ep, a->soft, a->hard));
}

SPOIL(end_args, end_bad_ep, a->ep = things.psp)
SPOIL(end_args, end_flags, a->flags = (DAT_CLOSE_FLAGS)2)
SPOIL(end_args, end_more_flags, a->flags = (DAT_CLOSE_FLAGS)5)
SPOIL(end_args, end_reserved, a->ep = things.reserved)
SPOIL(end_args, end_unconnected, a->ep = deaf)
SPOIL(end_args, end_soft, a->soft = -2)
SPOIL(end_args, end_hard, a->hard = -3)
SPOIL(end_args, end_soft_set, a->soft = 4)
SPOIL(end_args, end_hard_set, a->hard = 0)

static const struct spoil_row disconnect_rows[] = {
	{ "ep", end_bad_ep, E(INVALID_HANDLE, INVALID_HANDLE_EP), 1 },
	{ "flags", end_flags, E(INVALID_PARAMETER, INVALID_ARG2), 2 },
	{ "more flags", end_more_flags, E(INVALID_PARAMETER, INVALID_ARG2), 2 },
	{ "reserved", end_reserved, E(INVALID_STATE, INVALID_STATE_EP_RESERVED), 1 },
	{ "unconnected", end_unconnected, E(INVALID_STATE, INVALID_STATE_EP_UNCONNECTED), 1 },
};

static const struct spoil_row watermark_rows[] = {
	{ "ep", end_bad_ep, E(INVALID_HANDLE, INVALID_HANDLE_EP), 1 },
	{ "soft", end_soft, E(INVALID_PARAMETER, INVALID_ARG2), 2 },
	{ "hard", end_hard, E(INVALID_PARAMETER, INVALID_ARG3), 3 },
	{ "a soft one", end_soft_set, E0(MODEL_NOT_SUPPORTED), 2 },
	{ "a hard one", end_hard_set, E0(MODEL_NOT_SUPPORTED), 3 },
};

static const struct spoil_call disconnect = {
	"dat_ep_disconnect", sizeof(struct end_args), end_good, disconnect_call, NULL,
	disconnect_rows,     COUNT(disconnect_rows)
};
static const struct spoil_call watermark = {
	"dat_ep_set_watermark", sizeof(struct end_args), end_good, watermark_call, NULL,
	watermark_rows,		COUNT(watermark_rows)
};

static void test_disconnect(void)
{
	open_all();
	rig_start_connect(&things.rig);
	OK(dat_ep_disconnect(things.ep, DAT_CLOSE_ABRUPT_FLAG));
	CU_ASSERT_EQUAL(rig_take(things.evd).event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
	spoil_run(&disconnect);
	/* none of the calls made an event */
	CU_ASSERT_EQUAL(dat_evd_dequeue(things.evd, &(DAT_EVENT){ 0 }), DAT_QUEUE_EMPTY);
	close_all();
}

static void test_set_watermark(void)
{
	run(&watermark);
}

static const struct unit_test tests[] = {
	{ "modify: each check, alone and with each later one", test_modify },
	{ "dup_connect: each check, alone and with each later one", test_dup_connect },
	{ "disconnect: each check, alone and with each later one", test_disconnect },
	{ "set_watermark: each check, alone and with each later one", test_set_watermark },
};

UNIT_MAIN("ep_change_args", tests)
