/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The UD CM against a peer that is a script over its own UD QP: lost, repeated, stale and malformed
 * messages.
 */
#include "test/unit/ucm_rig.h"

/* in ms; set in main */
#define REP_TIME  60u
#define DREP_TIME 250u

static unsigned char pattern[CM_DATA_OLD];

/* Receives the next datagram from the CM, and the private data in it. */
static bool hear(struct cm_message *message, const unsigned char **data, size_t *size)
{
	uint64_t deadline = clock_now() + UNIT_PATIENCE * NSEC_PER_MSEC;
	static unsigned char copy[SLOT];
	struct seen seen;
	struct ibv_wc wc;

	while (!ibv_poll_cq(script.recv_cq, 1, &wc)) {
		if (clock_now() > deadline)
			return false;
		if (rig_poll(&rig, &seen))
			CU_FAIL("an event that was not expected");
	}
	*size = wc.byte_len - GRH;
	memcpy(copy, script.memory + wc.wr_id * SLOT + GRH, *size);
	script_recv((unsigned)wc.wr_id);
	cm_message_read(message, copy);
	*data = copy + CM_HEADER;
	return *size >= CM_HEADER && *size == CM_HEADER + (size_t)message->p_size;
}

/* Receives this message, with this number of repetitions. */
static void hears(enum cm_op op, unsigned rtns, struct cm_message *message)
{
	const unsigned char *data;
	struct cm_message none;
	size_t size;

	message = message ? message : &none;
	CU_ASSERT_TRUE_FATAL(hear(message, &data, &size));
	CU_ASSERT_EQUAL(message->ver, 9);
	CU_ASSERT_EQUAL(message->op, op);
	CU_ASSERT_EQUAL(message->rtns, rtns);
	CU_ASSERT_EQUAL(message->sqpn, own.qpn);
	CU_ASSERT_EQUAL(message->dqpn, peer.qpn);
	if (message->p_size)
		CU_ASSERT_EQUAL(memcmp(data, pattern, message->p_size), 0);
}

/* The CM sends nothing. */
static void hears_nothing(void)
{
	struct ibv_wc wc;
	struct seen seen;

	CU_ASSERT_FALSE(rig_poll(&rig, &seen));
	CU_ASSERT_EQUAL(ibv_poll_cq(script.recv_cq, 1, &wc), 0);
}

static void say(const struct cm_message *message, enum cm_op op, size_t data)
{
	unsigned char bytes[SLOT] = { 0 };
	struct cm_message copy = *message;

	copy.op = (uint16_t)op;
	cm_message_write(&copy, bytes);
	memcpy(bytes + CM_HEADER, pattern, data);
	script_send(own.qpn, bytes, CM_HEADER + data);
}

/* ---- passive ---- */

static struct rdma_cm_id *requested(struct cm_message *message, uint16_t size)
{
	struct seen seen;

	*message = script_message(4000, size);
	say(message, CM_REQ, size);
	rig_expect(&rig, RDMA_CM_EVENT_CONNECT_REQUEST, &seen);
	CU_ASSERT_PTR_EQUAL(seen.event.listen_id, rig.listener);
	CU_ASSERT_EQUAL(seen.size, size);
	CU_ASSERT_EQUAL(memcmp(seen.data, pattern, size), 0);
	CU_ASSERT_EQUAL(seen.event.param.conn.initiator_depth, 3);
	CU_ASSERT_EQUAL(seen.event.param.conn.qp_num, EP_QPN);
	return seen.event.id;
}

static void accepted(struct rdma_cm_id *id, struct cm_message *message)
{
	struct rdma_conn_param param = { .private_data = pattern,
					 .private_data_len = 11,
					 .responder_resources = 4,
					 .qp_num = 0x99 };
	struct cm_message rep;
	struct cm_endpoint there;

	CU_ASSERT_EQUAL(rdma_accept(id, &param), 0);
	hears(CM_REP, 0, &rep);
	cm_endpoint_read(&there, rep.saddr);
	CU_ASSERT_EQUAL(there.qpn, 0x99);
	CU_ASSERT_EQUAL(rep.p_size, 11);
	CU_ASSERT_EQUAL(rep.sport, 4000);
	CU_ASSERT_EQUAL(rep.dport, 77);
	CU_ASSERT_EQUAL(rep.d_id, 5);
	CU_ASSERT_NOT_EQUAL(rep.s_id, 0);
	CU_ASSERT_EQUAL(rep.rd_in, 4);
	CU_ASSERT_EQUAL(rep.mtu, IBV_MTU_1024);
	CU_ASSERT_EQUAL(memcmp(rep.daddr, message->saddr, CM_ENDPOINT), 0);
	message->d_id = rep.s_id;
}

static void test_passive(void)
{
	struct cm_message message;
	struct rdma_cm_id *id;

	open_both();
	listen_at(4000);
	id = requested(&message, 48);
	accepted(id, &message);
	/* the size is stale: the message has no data */
	say(&message, CM_RTU, 0);
	rig_expect(&rig, RDMA_CM_EVENT_ESTABLISHED, NULL);
	say(&message, CM_RTU, 0);
	hears_nothing();
	say(&message, CM_DREQ, 0);
	rig_expect(&rig, RDMA_CM_EVENT_DISCONNECTED, NULL);
	hears(CM_DREP, 0, NULL);
	/* the DREP was lost: the CM repeats it even after the identifier is destroyed */
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	say(&message, CM_DREQ, 0);
	hears(CM_DREP, 0, NULL);
	hears_nothing();
	close_both();
}

/* The RTU is lost: the CM repeats the REP, by its timer and for a request marked as repeated. */
static void test_lost_rtu(void)
{
	struct cm_message message;
	struct rdma_cm_id *id;

	open_both();
	listen_at(4000);
	id = requested(&message, 0);
	message.rtns = 1;
	say(&message, CM_REQ, 0);
	hears_nothing(); /* the request is not answered yet */
	message.rtns = 0;
	accepted(id, &message);
	hears(CM_REP, 1, NULL);
	message.rtns = 1;
	message.d_id = 0;
	say(&message, CM_REQ, 0);
	hears(CM_REP, 2, NULL);
	rig_expect(&rig, RDMA_CM_EVENT_CONNECT_ERROR, NULL);
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	close_both();
}

static void test_refused_here(void)
{
	struct cm_message message, answer;
	struct rdma_cm_id *id;
	struct seen seen;

	open_both();
	message = script_message(4001, 7);
	say(&message, CM_REQ, 7); /* a port without a listener */
	hears(CM_REJ_CM, 0, &answer);
	CU_ASSERT_EQUAL(answer.d_id | answer.s_id | answer.p_size, 0);
	CU_ASSERT_EQUAL(answer.sport, 4001);
	CU_ASSERT_EQUAL(answer.dport, 77);
	listen_at(4000);
	id = requested(&message, 68);
	CU_ASSERT_EQUAL(rdma_reject(id, pattern, 68), 0);
	hears(CM_REJ_USER, 0, &answer);
	CU_ASSERT_EQUAL(answer.p_size, 68);
	CU_ASSERT_EQUAL(answer.d_id, 5);
	/* the answer was lost: the peer repeats the request */
	message.rtns = 1;
	say(&message, CM_REQ, 68);
	hears(CM_REJ_USER, 1, NULL);
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	/* of two requests one is destroyed, the other is freed with its listener, unread */
	message.rtns = 0;
	message.s_id = 6;
	say(&message, CM_REQ, 0);
	message.s_id = 7;
	say(&message, CM_REQ, 0);
	rig_expect(&rig, RDMA_CM_EVENT_CONNECT_REQUEST, &seen);
	CU_ASSERT_EQUAL(rdma_destroy_id(rig.listener), 0);
	rig.listener = NULL;
	hears(CM_REJ_CM, 0, &answer);
	CU_ASSERT_EQUAL(answer.d_id, 7);
	CU_ASSERT_EQUAL(rdma_destroy_id(seen.event.id), 0);
	hears(CM_REJ_CM, 0, &answer);
	CU_ASSERT_EQUAL(answer.d_id, 6);
	close_both();
}

/* ---- active ---- */

static struct rdma_cm_id *asked(struct cm_message *request)
{
	struct rdma_conn_param param = { .private_data = pattern,
					 .private_data_len = 20,
					 .responder_resources = 6,
					 .initiator_depth = 9,
					 .qp_num = 0x4711 };
	struct cm_endpoint to = peer, from;
	unsigned char address[CM_ENDPOINT];
	struct rdma_cm_id *id;

	to.port = 5000;
	cm_endpoint_write(&to, address); /* its GID is zero, because consumers may not know it */
	CU_ASSERT_EQUAL_FATAL(rdma_create_id(rig.channel, &id, NULL, RDMA_PS_TCP), 0);
	CU_ASSERT_EQUAL(rdma_resolve_addr(id, NULL, (struct sockaddr *)address, 1), 0);
	rig_expect(&rig, RDMA_CM_EVENT_ADDR_RESOLVED, NULL);
	CU_ASSERT_EQUAL(rdma_resolve_route(id, 1), 0);
	rig_expect(&rig, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL);
	CU_ASSERT_EQUAL(rdma_connect(id, &param), 0);
	hears(CM_REQ, 0, request);
	CU_ASSERT_EQUAL(request->dport, 5000);
	CU_ASSERT_TRUE(request->sport && request->sport < 65536);
	CU_ASSERT_EQUAL(request->d_id, 0);
	CU_ASSERT_EQUAL(request->p_size, 20);
	CU_ASSERT_EQUAL(request->rd_in, 6);
	cm_endpoint_read(&from, request->saddr);
	CU_ASSERT_EQUAL(from.qpn, 0x4711);
	CU_ASSERT_EQUAL(from.lid, 1);
	return id;
}

static struct cm_message reply_to(const struct cm_message *request, uint16_t p_size)
{
	struct cm_message reply = script_message((uint16_t)request->sport, p_size);

	reply.sport = request->dport;
	reply.d_id = request->s_id;
	memcpy(reply.daddr, request->saddr, CM_ENDPOINT);
	return reply;
}

static void test_active(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
	struct cm_message request, reply;
	struct rdma_cm_id *id;
	struct seen seen;
	int mask;

	open_both();
	id = asked(&request);
	reply = reply_to(&request, 68);
	say(&reply, CM_REP, 68);
	rig_expect(&rig, RDMA_CM_EVENT_CONNECT_RESPONSE, &seen);
	CU_ASSERT_EQUAL(seen.size, 68);
	CU_ASSERT_EQUAL(rdma_init_qp_attr(id, &attr, &mask), 0);
	CU_ASSERT_EQUAL(attr.ah_attr.is_global, 0);
	CU_ASSERT_EQUAL(attr.ah_attr.dlid, 1);
	CU_ASSERT_EQUAL(attr.path_mtu, IBV_MTU_1024);
	CU_ASSERT_EQUAL(rdma_establish(id), 0);
	hears(CM_RTU, 0, NULL);
	say(&reply, CM_REP, 68); /* the RTU was lost */
	hears(CM_RTU, 1, NULL);
	CU_ASSERT_EQUAL(rdma_disconnect(id), 0);
	CU_ASSERT_NOT_EQUAL(rdma_disconnect(id), 0);
	CU_ASSERT_EQUAL(errno, EINVAL);
	hears(CM_DREQ, 0, NULL);
	hears(CM_DREQ, 1, NULL); /* the first was lost */
	say(&reply, CM_DREP, 0);
	rig_expect(&rig, RDMA_CM_EVENT_DISCONNECTED, NULL);
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	hears_nothing();
	close_both();
}

/* The disconnect is repeated once. Returns the nanoseconds until it is given up. */
static uint64_t no_drep_comes(void *unused)
{
	struct cm_message request, reply;
	uint64_t begun, took;
	struct rdma_cm_id *id;

	(void)unused;
	open_both();
	id = asked(&request);
	reply = reply_to(&request, 0);
	say(&reply, CM_REP, 0);
	rig_expect(&rig, RDMA_CM_EVENT_CONNECT_RESPONSE, NULL);
	CU_ASSERT_EQUAL(rdma_establish(id), 0);
	hears(CM_RTU, 0, NULL);
	begun = clock_now();
	CU_ASSERT_EQUAL(rdma_disconnect(id), 0);
	rig_expect(&rig, RDMA_CM_EVENT_DISCONNECTED, NULL);
	took = clock_now() - begun;
	CU_ASSERT_TRUE(took >= 2 * DREP_TIME * NSEC_PER_MSEC);
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	close_both();
	return took;
}

static void test_no_drep(void)
{
	CU_ASSERT(unit_is_soon(no_drep_comes, NULL, 4 * DREP_TIME * NSEC_PER_MSEC));
}

/* The request is repeated at growing intervals, and then given up. */
static void test_no_answer(void)
{
	struct cm_message request, again;
	uint64_t begun = clock_now();
	struct rdma_cm_id *id;

	open_both();
	id = asked(&request);
	hears(CM_REQ, 1, &again);
	CU_ASSERT_TRUE(clock_now() - begun >= REP_TIME * NSEC_PER_MSEC);
	CU_ASSERT_EQUAL(again.s_id, request.s_id);
	CU_ASSERT_EQUAL(again.p_size, 20);
	hears(CM_REQ, 2, NULL);
	CU_ASSERT_TRUE(clock_now() - begun >= 2 * REP_TIME * NSEC_PER_MSEC);
	rig_expect(&rig, RDMA_CM_EVENT_UNREACHABLE, NULL);
	CU_ASSERT_TRUE(clock_now() - begun >= 4 * REP_TIME * NSEC_PER_MSEC);
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	/* an attempt that was given up sends nothing more */
	id = asked(&request);
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	hears_nothing();
	close_both();
}

static void test_refused_there(void)
{
	struct cm_message request, reply;
	struct rdma_cm_id *id;
	struct seen seen;

	open_both();
	id = asked(&request);
	reply = reply_to(&request, 30);
	say(&reply, CM_REJ_USER, 30);
	rig_expect(&rig, RDMA_CM_EVENT_REJECTED, &seen);
	CU_ASSERT_EQUAL(seen.event.status, CM_REJECTED_BY_APP);
	CU_ASSERT_EQUAL(seen.size, 30);
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	/* from a CM without a listener: without numbers */
	id = asked(&request);
	reply = reply_to(&request, 0);
	reply.d_id = reply.s_id = 0;
	say(&reply, CM_REJ_CM, 0);
	rig_expect(&rig, RDMA_CM_EVENT_REJECTED, &seen);
	CU_ASSERT_EQUAL(seen.event.status, CM_REJECTED_BY_CM);
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	close_both();
}

/* ---- delayed ---- */

/* A process that did not run while all its repetitions became due makes one, and waits for the answer. */
static void test_delayed(void)
{
	uint64_t end = clock_now() + 6 * REP_TIME * NSEC_PER_MSEC;
	struct cm_message request, reply;
	struct rdma_cm_id *id;

	open_both();
	id = asked(&request);
	while (clock_now() < end)
		poll(NULL, 0, 10);
	hears(CM_REQ, 1, NULL);
	reply = reply_to(&request, 0);
	say(&reply, CM_REP, 0);
	rig_expect(&rig, RDMA_CM_EVENT_CONNECT_RESPONSE, NULL);
	CU_ASSERT_EQUAL(rdma_reject(id, NULL, 0), 0);
	hears(CM_REJ_CM, 0, NULL);
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	close_both();
}

/* ---- malformed messages ---- */

/* None of these messages belongs to the pending connection; the one after them does. */
static void test_nonsense(void)
{
	unsigned char bytes[SLOT] = { 0 };
	struct cm_message request, reply, wrong;
	struct cm_endpoint elsewhere = { .lid = 2, .qpn = EP_QPN, .qp_type = IBV_QPT_RC };
	struct rdma_cm_id *id;
	struct seen seen;

	open_both();
	listen_at(4000);
	id = asked(&request);
	reply = reply_to(&request, 0);
	script_send(own.qpn, bytes, 10);
	cm_message_write(&reply, bytes);
	script_send(own.qpn, bytes, CM_HEADER - 1);
	script_send(own.qpn, bytes, CM_MESSAGE_MAX); /* no valid operation */
	script_send(own.qpn, bytes, SLOT);	     /* longer than any message */
	wrong = reply, wrong.ver = 5, say(&wrong, CM_REP, 0);
	wrong = reply, wrong.d_id += 1000000, say(&wrong, CM_REP, 0);
	wrong = reply, wrong.d_id = 0xffffffff, say(&wrong, CM_REJ_CM, 0);
	wrong = reply, wrong.dport++, say(&wrong, CM_REP, 0);
	wrong = reply, wrong.sport++, say(&wrong, CM_REP, 0);
	wrong = reply, wrong.sqpn++, say(&wrong, CM_REP, 0);
	wrong = reply, wrong.dqpn++, say(&wrong, CM_REP, 0);
	wrong = reply, cm_endpoint_write(&elsewhere, wrong.saddr), say(&wrong, CM_REP, 0);
	say(&reply, CM_RTU, 0);
	say(&reply, CM_DREQ, 0);
	say(&reply, CM_DREP, 0);
	hears(CM_REQ, 1, NULL);
	reply.p_size = 0xffff; /* longer than the datagram */
	say(&reply, CM_REP, 100);
	rig_expect(&rig, RDMA_CM_EVENT_CONNECT_RESPONSE, &seen);
	CU_ASSERT_EQUAL(seen.size, 100);
	CU_ASSERT_EQUAL(rdma_reject(id, NULL, 0), 0);
	hears(CM_REJ_CM, 0, NULL);
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	/* a request from an invalid address is not answered */
	wrong = script_message(4001, 0);
	elsewhere.lid = 0;
	cm_endpoint_write(&elsewhere, wrong.saddr);
	say(&wrong, CM_REQ, 0);
	elsewhere.lid = 0xffff;
	cm_endpoint_write(&elsewhere, wrong.saddr);
	say(&wrong, CM_REQ, 0);
	hears_nothing();
	close_both();
}

static void test_ports(void)
{
	struct rdma_cm_id *id;

	open_both();
	listen_at(4000);
	id = id_at(4000);
	CU_ASSERT_NOT_EQUAL(rdma_listen(id, 0), 0);
	CU_ASSERT_EQUAL(errno, EADDRINUSE);
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	id = id_at(0);
	CU_ASSERT_EQUAL(rdma_listen(id, 0), 0);
	CU_ASSERT_NOT_EQUAL(rdma_get_src_port(id), 0);
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	close_both();
	/* without a LID there is no UD CM */
	setenv("SOFTVERBS_LINK", "ethernet", 1);
	rig.channel = rdma_create_event_channel();
	CU_ASSERT_EQUAL(cm_attach(rig.channel, "soft0", 1, NULL), ENXIO);
	rdma_destroy_event_channel(rig.channel);
	rig.channel = rdma_create_event_channel();
	CU_ASSERT_EQUAL(cm_attach(rig.channel, "soft9", 1, NULL), ENODEV);
	rdma_destroy_event_channel(rig.channel);
	setenv("SOFTVERBS_LINK", "infiniband", 1);
}

/* ---- partition keys: those of a port that has three ---- */

static const uint16_t pkeys[] = { 0xffff, 0x0001, 0x8001 };

int __real_ibv_query_device(struct ibv_context *verbs, struct ibv_device_attr *attr);
int __wrap_ibv_query_device(struct ibv_context *verbs, struct ibv_device_attr *attr);
int __wrap_ibv_query_pkey(struct ibv_context *verbs, uint8_t port, int index, __be16 *pkey);

int __wrap_ibv_query_device(struct ibv_context *verbs, struct ibv_device_attr *attr)
{
	int error = __real_ibv_query_device(verbs, attr);

	attr->max_pkeys = sizeof(pkeys) / sizeof(pkeys[0]);
	return error;
}

int __wrap_ibv_query_pkey(struct ibv_context *verbs, uint8_t port, int index, __be16 *pkey)
{
	(void)verbs;
	CU_ASSERT_EQUAL(port, 1);
	CU_ASSERT_TRUE_FATAL(index >= 0 && index < (int)(sizeof(pkeys) / sizeof(pkeys[0])));
	*pkey = htons(pkeys[index]);
	return 0;
}

/* The identifier of a device's address has the key, too: endpoints for datagrams take it from there. */
static void test_partition(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	int mask = 0;

	open_both();
	CU_ASSERT_EQUAL(rdma_init_qp_attr(bound, &attr, &mask), 0);
	CU_ASSERT_TRUE(mask & IBV_QP_PKEY_INDEX);
	CU_ASSERT_EQUAL(attr.pkey_index, 2);
	close_both();
}

/* ---- a flood ---- */

#define FLOOD (1u << 20)

static int (*poll_cq)(struct ibv_cq *cq, int count, struct ibv_wc *wc);
static unsigned polled; /* completions of the flood */

/* The CQ has more completions whenever it is polled. */
static int poll_flooded(struct ibv_cq *cq, int count, struct ibv_wc *wc)
{
	int i;

	if (polled >= FLOOD)
		return poll_cq(cq, count, wc);
	for (i = 0; i < count; i++)
		wc[i] = (struct ibv_wc){ .status = IBV_WC_WR_FLUSH_ERR };
	polled += (unsigned)count;
	return count;
}

/* One call handles as many datagrams as the CQ has entries at most: timers and other calls have their turn. */
static void test_flood(void)
{
	struct pollfd poll_fd = { .events = POLLIN };
	struct seen seen;

	open_both();
	script_send(own.qpn, "", 1);
	poll_fd.fd = rig.channel->fd;
	CU_ASSERT_EQUAL(poll(&poll_fd, 1, UNIT_PATIENCE), 1);
	poll_cq = bound->verbs->ops.poll_cq;
	bound->verbs->ops.poll_cq = poll_flooded;
	CU_ASSERT_FALSE(rig_poll(&rig, &seen));
	bound->verbs->ops.poll_cq = poll_cq;
	CU_ASSERT_TRUE(polled > 0);
	CU_ASSERT_TRUE(polled < FLOOD);
	close_both();
}

static const struct unit_test tests[] = {
	{ "UD CM: request, accept, disconnect, and their repetitions", test_passive },
	{ "UD CM: a lost RTU", test_lost_rtu },
	{ "UD CM: this side's rejections reach the peer", test_refused_here },
	{ "UD CM: a requested connection survives a lost RTU, DREQ and DREP", test_active },
	{ "UD CM: a disconnect that is not answered ends in time", test_no_drep },
	{ "UD CM: a lost request is repeated, and given up without a reply", test_no_answer },
	{ "UD CM: the peer's rejections are reported", test_refused_there },
	{ "UD CM: a process that was delayed waits for an answer", test_delayed },
	{ "UD CM: messages of no connection are dropped", test_nonsense },
	{ "UD CM: a flood of messages holds a call for a bounded number of them", test_flood },
	{ "UD CM: a port has one listener; a port without a LID is refused", test_ports },
	{ "UD CM: the partition key that is set is found in the port's table", test_partition },
};

int main(int argc, char **argv)
{
	size_t i;

	setenv("SOFTVERBS_LINK", "infiniband", 1);
	setenv("DAPL_CONF", "", 1);
	setenv("DAPL_UCM_REP_TIME", "60", 1);
	setenv("DAPL_UCM_RTU_TIME", "60", 1);
	setenv("DAPL_UCM_RETRY", "3", 1);
	setenv("DAPL_UCM_DREP_TIME", "250", 1);
	setenv("DAPL_IB_PKEY", "0x8001", 1);
	settings_load();
	for (i = 0; i < sizeof(pattern); i++)
		pattern[i] = (unsigned char)(i + 3);
	return unit_main("ucm", tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
