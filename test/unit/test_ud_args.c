/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Each check of the calls on endpoints for datagrams, alone and with each later one. */
#include "test/unit/spoil.h"
#include "dapl/udapl/ep/ud.h"

/* EPs with a full queue, reserved, without connect EVD, without PZ, in another PZ. */
static DAT_EP_HANDLE ud, full, reserved, deaf, without_pz, elsewhere;
static DAT_PZ_HANDLE other_pz;
static DAT_RSP_HANDLE rsp;
static DAT_CR_HANDLE cr;
static const DAT_DTO_COOKIE cookie = { .as_64 = 7 };

/* The result of a resolution. */
struct peer {
	DAT_IB_ADDR_HANDLE address;
	DAT_CONTEXT context;
};

static struct peer peer, foreign, freed;

static DAT_EP_HANDLE ud_ep(DAT_PZ_HANDLE pz, DAT_EVD_HANDLE connect)
{
	DAT_EP_ATTR attr = rig_attr();
	DAT_EP_HANDLE ep = DAT_HANDLE_NULL;

	attr.service_type = (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD;
	attr.max_rdma_read_in = attr.max_rdma_read_out = 0;
	MUST(dat_ep_create(things.ia, pz, things.rig.recv, things.rig.request, connect, &attr,
			   &ep));
	return ep;
}

static DAT_RETURN ask(DAT_EP_HANDLE ep)
{
	return dat_ep_connect(ep, things.address, 7, DAT_TIMEOUT_INFINITE, 0, NULL,
			      DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

static const DAT_IB_EXTENSION_EVENT_DATA *extension(const DAT_EVENT *event)
{
	return (const DAT_IB_EXTENSION_EVENT_DATA *)(const void *)event->event_extension_data;
}

static struct peer resolve(DAT_EP_HANDLE ep)
{
	DAT_EVENT event;

	MUST(ask(ep));
	fake.upcalls.resolved(fake.conn->owner, fake.conn, IB_CONN_ESTABLISHED, NULL, 0);
	event = rig_take(things.evd);
	CU_ASSERT_EQUAL((int)event.event_number, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED);
	return (struct peer){ extension(&event)->remote_ah, extension(&event)->context };
}

static DAT_CR_HANDLE request(void)
{
	struct ib_request arrived = { .datagrams = true };
	struct ib_conn *conn = fake_new(sizeof(*conn), &fake.conns);
	DAT_EVENT event;

	arrived.remote.ss_family = arrived.local.ss_family = AF_INET;
	fake.upcalls.request(things.psp, conn, &arrived);
	event = rig_take(things.requests);
	CU_ASSERT_EQUAL((int)event.event_number, DAT_IB_UD_CONNECTION_REQUEST_EVENT);
	return event.event_data.cr_arrival_event_data.cr_handle;
}

static void fill(DAT_EP_HANDLE ep)
{
	struct peer to = resolve(ep);
	DAT_RETURN status;

	do
		status = dat_ib_post_send_ud(ep, 0, NULL, &to.address, cookie, 0);
	while (status == DAT_SUCCESS);
	CU_ASSERT_EQUAL(status, E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
}

static void open_all(void)
{
	fake.datagrams = true;
	things_open();
	MUST(dat_pz_create(things.ia, &other_pz));
	full = ud_ep(things.pz, things.evd);
	reserved = ud_ep(things.pz, things.evd);
	deaf = ud_ep(things.pz, DAT_HANDLE_NULL);
	without_pz = ud_ep(DAT_HANDLE_NULL, things.evd);
	elsewhere = ud_ep(other_pz, things.evd);
	ud = ud_ep(things.pz, things.evd);
	MUST(dat_rsp_create(things.ia, 7004, reserved, things.requests, &rsp));
	peer = resolve(ud);
	foreign = resolve(elsewhere);
	freed = resolve(ud);
	MUST(dat_ib_ud_ah_free(ud, &freed.address)); /* the CM's object stays */
	fill(full);
	cr = request();
}

static void close_all(void)
{
	const DAT_EP_HANDLE all[] = { full, reserved, deaf, without_pz, elsewhere, ud };
	size_t i;

	MUST(dat_cr_reject(cr, 0, NULL));
	MUST(dat_rsp_free(rsp));
	for (i = 0; i < COUNT(all); i++)
		MUST(dat_ep_free(all[i]));
	MUST(dat_pz_free(other_pz));
	things_close();
	CU_ASSERT_EQUAL(fake.ahs, 0);
}

static void run(const struct spoil_call *call)
{
	open_all();
	spoil_run(call);
	close_all();
}

/* ---- dat_ib_post_send_ud ---- */

struct send_args {
	DAT_EP_HANDLE ep;
	DAT_COUNT count;
	DAT_LMR_TRIPLET segments[FAKE_MAX_SGE], *list;
	DAT_IB_ADDR_HANDLE to_value, *to;
	DAT_COMPLETION_FLAGS flags;
};

static void send_good(void *args)
{
	struct send_args *a = args;
	int i;

	*a = (struct send_args){ .ep = ud,
				 .count = 1,
				 .list = a->segments,
				 .to_value = peer.address,
				 .to = &a->to_value };
	for (i = 0; i < FAKE_MAX_SGE; i++)
		a->segments[i] = (DAT_LMR_TRIPLET){ (uintptr_t)things_memory, 8, things.lkey };
}

static DAT_RETURN send_call(void *args)
{
	struct send_args *a = args;

	return dat_ib_post_send_ud(a->ep, a->count, a->list, a->to, cookie, a->flags);
}

static void send_undo(void *args)
{
	(void)args;
	rig_complete(things.rig.request, fake.last.wr_id, DAT_DTO_SUCCESS, 8);
	rig_take(things.rig.request);
}

SPOIL(send_args, send_bad_ep, a->ep = things.evd)
SPOIL(send_args, send_rc, a->ep = things.ep)
SPOIL(send_args, send_negative, a->count = -1)
SPOIL(send_args, send_too_many, a->count = FAKE_MAX_SGE + 1)
SPOIL(send_args, send_no_list, a->list = NULL)
SPOIL(send_args, send_nowhere, a->to = NULL)
SPOIL(send_args, send_no_address, a->to_value.ah = NULL)
SPOIL(send_args, send_no_peer, a->to_value.ah = (void *)things.ep)
SPOIL(send_args, send_foreign, a->to_value = foreign.address)
SPOIL(send_args, send_freed, a->to_value = freed.address)
SPOIL(send_args, send_flag, a->flags = (DAT_COMPLETION_FLAGS)0x4000)
SPOIL(send_args, send_unsignalled, a->flags = DAT_COMPLETION_UNSIGNALLED_FLAG)
SPOIL(send_args, send_too_long, a->segments[0].segment_length = 4097)
SPOIL(send_args, send_full, a->ep = full)

#define P(arg) E(INVALID_PARAMETER, INVALID_##arg)
#define BAD_EP E(INVALID_HANDLE, INVALID_HANDLE_EP)

static const struct spoil_row send_rows[] = {
	{ "ep", send_bad_ep, BAD_EP, 1 },
	{ "ep of connections", send_rc, BAD_EP, 1 },
	{ "negative", send_negative, P(ARG2), 2 },
	{ "too many", send_too_many, P(ARG2), 2 },
	{ "no list", send_no_list, P(ARG3), 3 },
	{ "nowhere", send_nowhere, P(ARG4), 4 },
	{ "no address", send_no_address, P(ARG4), 4 },
	{ "no peer", send_no_peer, P(ARG4), 4 },
	{ "another PZ's", send_foreign, P(ARG4), 4 },
	{ "freed", send_freed, P(ARG4), 4 },
	{ "flag", send_flag, P(ARG6), 6 },
	{ "unsignalled", send_unsignalled, P(ARG6), 6 },
	{ "too long", send_too_long, E0(LENGTH_ERROR), 3 },
	{ "full", send_full, E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY), 1 },
};

static const struct spoil_call send_ud = {
	"dat_ib_post_send_ud", sizeof(struct send_args), send_good, send_call, send_undo, send_rows,
	COUNT(send_rows)
};

static void test_send(void)
{
	run(&send_ud);
}

/* ---- dat_ib_ud_ah_free, dat_ib_ud_cm_free: each good call ends a peer ---- */

struct free_args {
	DAT_EP_HANDLE ep;
	struct peer value;
	DAT_IB_ADDR_HANDLE *address;
};

static void free_good(void *args)
{
	struct free_args *a = args;

	*a = (struct free_args){ .ep = ud, .value = peer, .address = &a->value.address };
}

static DAT_RETURN ah_free_call(void *args)
{
	struct free_args *a = args;

	return dat_ib_ud_ah_free(a->ep, a->address);
}

static DAT_RETURN cm_free_call(void *args)
{
	struct free_args *a = args;

	return dat_ib_ud_cm_free(a->ep, a->value.context);
}

static void ah_free_undo(void *args)
{
	OK(cm_free_call(args));
	peer = resolve(ud);
}

static void cm_free_undo(void *args)
{
	OK(ah_free_call(args));
	peer = resolve(ud);
}

SPOIL(free_args, free_bad_ep, a->ep = things.evd)
SPOIL(free_args, free_rc, a->ep = things.ep)
SPOIL(free_args, free_others_ep, a->ep = full)
SPOIL(free_args, free_nothing, (a->address = NULL, a->value.context.as_ptr = NULL))
SPOIL(free_args, free_no_peer,
      (a->value.address.ah = (void *)things.ep, a->value.context.as_ptr = things.ep))
SPOIL(free_args, free_foreign, a->value = foreign)
SPOIL(free_args, free_freed, a->value = freed)

#define FREE_ROWS                                                                                 \
	{ "ep", free_bad_ep, BAD_EP, 1 }, { "ep of connections", free_rc, BAD_EP, 1 },            \
		{ "another ep", free_others_ep, P(ARG2), 1 },                                     \
		{ "nothing", free_nothing, P(ARG2), 2 }, { "no peer", free_no_peer, P(ARG2), 2 }, \
	{                                                                                         \
		"another ep's", free_foreign, P(ARG2), 2                                          \
	}

static const struct spoil_row ah_free_rows[] = { FREE_ROWS, { "freed", free_freed, P(ARG2), 2 } };
static const struct spoil_row cm_free_rows[] = { FREE_ROWS };
static const struct spoil_call ah_free = { "dat_ib_ud_ah_free", sizeof(struct free_args),
					   free_good,		ah_free_call,
					   ah_free_undo,	ah_free_rows,
					   COUNT(ah_free_rows) };
static const struct spoil_call cm_free = { "dat_ib_ud_cm_free", sizeof(struct free_args),
					   free_good,		cm_free_call,
					   cm_free_undo,	cm_free_rows,
					   COUNT(cm_free_rows) };

static void test_ah_free(void)
{
	run(&ah_free);
}
static void test_cm_free(void)
{
	run(&cm_free);
}

/* ---- dat_ep_connect of an endpoint for datagrams ---- */

struct connect_args {
	DAT_EP_HANDLE ep;
	struct sockaddr_storage storage;
	struct sockaddr *address;
	DAT_CONN_QUAL qual;
	DAT_TIMEOUT timeout;
	DAT_COUNT size;
	DAT_PVOID data;
	DAT_QOS qos;
	DAT_CONNECT_FLAGS flags;
};

static void connect_good(void *args)
{
	struct connect_args *a = args;

	*a = (struct connect_args){ .ep = ud,
				    .address = (struct sockaddr *)&a->storage,
				    .qual = 7,
				    .timeout = DAT_TIMEOUT_INFINITE,
				    .size = 172,
				    .data = things_memory };
	memcpy(&a->storage, things.address, sizeof(struct sockaddr_in));
}

static DAT_RETURN connect_call(void *args)
{
	struct connect_args *a = args;

	return dat_ep_connect(a->ep, a->address, a->qual, a->timeout, a->size, a->data, a->qos,
			      a->flags);
}

static void connect_undo(void *args)
{
	(void)args;
	fake.upcalls.resolved(fake.conn->owner, fake.conn, IB_CONN_REJECTED, NULL, 0);
	CU_ASSERT_EQUAL((int)rig_take(things.evd).event_number, DAT_IB_UD_CONNECTION_REJECT_EVENT);
}

SPOIL(connect_args, connect_nowhere, a->address = NULL)
SPOIL(connect_args, connect_bad_ep, a->ep = things.evd)
SPOIL(connect_args, connect_deaf, a->ep = deaf)
SPOIL(connect_args, connect_no_time, a->timeout = 0)
SPOIL(connect_args, connect_family, a->storage.ss_family = AF_UNIX)
SPOIL(connect_args, connect_many,
      ((struct sockaddr_in *)&a->storage)->sin_addr.s_addr = htonl(0xe0000001))
SPOIL(connect_args, connect_other_family, a->storage.ss_family = AF_INET6)
SPOIL(connect_args, connect_no_qual, a->qual = 0)
SPOIL(connect_args, connect_negative, a->size = -1)
SPOIL(connect_args, connect_too_much, a->size = 173)
SPOIL(connect_args, connect_no_data, a->data = NULL)
SPOIL(connect_args, connect_qos, a->qos = DAT_QOS_HIGH_THROUGHPUT)
SPOIL(connect_args, connect_flags, a->flags = DAT_CONNECT_MULTIPATH_FLAG)
SPOIL(connect_args, connect_no_pz, a->ep = without_pz)
SPOIL(connect_args, connect_state, a->ep = reserved)

static const struct spoil_row connect_rows[] = {
	{ "nowhere", connect_nowhere, P(ARG2), 2 },
	{ "ep", connect_bad_ep, BAD_EP, 1 },
	{ "no connect evd", connect_deaf, E(INVALID_HANDLE, INVALID_HANDLE_EVD_CONN), 1 },
	{ "no time", connect_no_time, P(ARG4), 4 },
	{ "family", connect_family, E(INVALID_ADDRESS, INVALID_ADDRESS_UNSUPPORTED), 2 },
	{ "multicast", connect_many, E(INVALID_ADDRESS, INVALID_ADDRESS_UNSUPPORTED), 2 },
	{ "another family", connect_other_family, E(INVALID_ADDRESS, INVALID_ADDRESS_UNREACHABLE),
	  2 },
	{ "no qualifier", connect_no_qual, P(ARG3), 3 },
	{ "negative", connect_negative, P(ARG5), 5 },
	{ "too much", connect_too_much, P(ARG5), 5 },
	{ "no data", connect_no_data, P(ARG6), 6 },
	{ "qos", connect_qos, E0(MODEL_NOT_SUPPORTED), 7 },
	{ "flags", connect_flags, E0(MODEL_NOT_SUPPORTED), 8 },
	{ "no pz", connect_no_pz, E(INVALID_STATE, INVALID_STATE_EP_NOTREADY), 1 },
	{ "state", connect_state, E(INVALID_STATE, INVALID_STATE_EP_RESERVED), 1 },
};

static const struct spoil_call resolution = { "dat_ep_connect",	  sizeof(struct connect_args),
					      connect_good,	  connect_call,
					      connect_undo,	  connect_rows,
					      COUNT(connect_rows) };

static void test_connect(void)
{
	run(&resolution);
}

/* ---- dat_cr_accept with an endpoint for datagrams: each good call uses the request up ---- */

struct accept_args {
	DAT_CR_HANDLE cr;
	DAT_EP_HANDLE ep;
	DAT_COUNT size;
	DAT_PVOID data;
};

static void accept_good(void *args)
{
	*(struct accept_args *)args = (struct accept_args){ cr, ud, 136, things_memory };
}

static DAT_RETURN accept_call(void *args)
{
	struct accept_args *a = args;

	return dat_cr_accept(a->cr, a->ep, a->size, a->data);
}

static void accept_undo(void *args)
{
	(void)args;
	CU_ASSERT_EQUAL((int)rig_take(things.evd).event_number,
			DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED);
	cr = request();
}

SPOIL(accept_args, accept_bad, a->cr = ud)
SPOIL(accept_args, accept_bad_ep, a->ep = cr)
SPOIL(accept_args, accept_no_ep, a->ep = DAT_HANDLE_NULL)
SPOIL(accept_args, accept_rc, a->ep = things.ep)
SPOIL(accept_args, accept_no_data, a->data = NULL)
SPOIL(accept_args, accept_negative, a->size = -1)
SPOIL(accept_args, accept_too_much, a->size = 137)
SPOIL(accept_args, accept_state, a->ep = reserved)
SPOIL(accept_args, accept_no_pz, a->ep = without_pz)
SPOIL(accept_args, accept_deaf, a->ep = deaf)

static const struct spoil_row accept_rows[] = {
	{ "cr", accept_bad, E(INVALID_HANDLE, INVALID_HANDLE_CR), 1 },
	{ "ep", accept_bad_ep, BAD_EP, 2 },
	{ "no ep", accept_no_ep, BAD_EP, 2 },
	{ "ep of connections", accept_rc, BAD_EP, 2 },
	{ "no data", accept_no_data, P(ARG4), 3 },
	{ "negative", accept_negative, P(ARG3), 3 },
	{ "too much", accept_too_much, P(ARG3), 3 },
	{ "state", accept_state, E(INVALID_STATE, INVALID_STATE_EP_RESERVED), 2 },
	{ "no pz", accept_no_pz, BAD_EP, 2 },
	{ "no connect evd", accept_deaf, BAD_EP, 2 },
};

static const struct spoil_call acceptance = { "dat_cr_accept",	 sizeof(struct accept_args),
					      accept_good,	 accept_call,
					      accept_undo,	 accept_rows,
					      COUNT(accept_rows) };

static void test_accept(void)
{
	run(&acceptance);
}

static const struct unit_test tests[] = {
	{ "sending a datagram: each check, alone and with each later one", test_send },
	{ "freeing an address: each check, alone and with each later one", test_ah_free },
	{ "freeing the CM's object: each check, alone and with each later one", test_cm_free },
	{ "a resolution: each check, alone and with each later one", test_connect },
	{ "accepting datagrams: each check, alone and with each later one", test_accept },
};

UNIT_MAIN("ud_args", tests)
