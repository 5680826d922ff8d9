/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The provider's log uses names for states, events and refused calls. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <dat2/dat_event_extensions.h>
#include <dat2/dat_ib_extensions.h>
#include "dapl/udapl/base/names.h"
#include "test/unit/rig.h"
#include "util/log.h"

/* The provider reads it once, when it is announced. */
__attribute__((constructor)) static void trace(void)
{
	setenv("DAPL_DBG_TYPE", "0xb", 1);
}

struct objects {
	struct rig rig;
	DAT_CNO_HANDLE cno;
	DAT_SRQ_HANDLE srq;
};

/* ---- calls that are refused ---- */

static DAT_RETURN send_unconnected(struct objects *objects)
{
	return rig_send(&objects->rig, 1, DAT_COMPLETION_DEFAULT_FLAG);
}

static DAT_RETURN send_too_many(struct objects *objects)
{
	return dat_ep_post_send_with_invalidate(objects->rig.ep, 99, NULL, (DAT_DTO_COOKIE){ 0 },
						DAT_COMPLETION_DEFAULT_FLAG, DAT_TRUE, 0);
}

static DAT_RETURN recv_less_than_none(struct objects *objects)
{
	return dat_ep_post_recv(objects->rig.ep, -1, NULL, (DAT_DTO_COOKIE){ 0 },
				DAT_COMPLETION_DEFAULT_FLAG);
}

static DAT_RETURN read_from_nowhere(struct objects *objects)
{
	return dat_ep_post_rdma_read(objects->rig.ep, 0, NULL, (DAT_DTO_COOKIE){ 0 }, NULL,
				     DAT_COMPLETION_DEFAULT_FLAG);
}

static DAT_RETURN read_to_rmr(struct objects *objects)
{
	return dat_ep_post_rdma_read_to_rmr(objects->rig.ep, NULL, (DAT_DTO_COOKIE){ 0 }, NULL,
					    DAT_COMPLETION_DEFAULT_FLAG);
}

static DAT_RETURN write_with_flags(struct objects *objects)
{
	DAT_RMR_TRIPLET remote = { 0 };

	return dat_ep_post_rdma_write(objects->rig.ep, 0, NULL, (DAT_DTO_COOKIE){ 0 }, &remote,
				      (DAT_COMPLETION_FLAGS)0x4000);
}

static DAT_RETURN srq_without_segments(struct objects *objects)
{
	return dat_srq_post_recv(objects->srq, 1, NULL, (DAT_DTO_COOKIE){ 0 });
}

static DAT_RETURN wait_for_none(struct objects *objects)
{
	DAT_EVENT event;
	DAT_COUNT more;

	return dat_evd_wait(objects->rig.conn, 0, 0, &event, &more);
}

static DAT_RETURN wait_without_more(struct objects *objects)
{
	DAT_EVENT event;

	return dat_evd_wait(objects->rig.conn, 0, 1, &event, NULL);
}

static DAT_RETURN dequeue_of_ep(struct objects *objects)
{
	DAT_EVENT event;

	return dat_evd_dequeue(objects->rig.ep, &event);
}

static DAT_RETURN dequeue_to_nowhere(struct objects *objects)
{
	return dat_evd_dequeue(objects->rig.recv, NULL);
}

static DAT_RETURN cno_wait_without_evd(struct objects *objects)
{
	return dat_cno_wait(objects->cno, 0, NULL);
}

static DAT_RETURN cno_trigger_without_evd(struct objects *objects)
{
	return dat_cno_trigger(objects->cno, NULL);
}

static DAT_RETURN policy_unknown(struct objects *objects)
{
	return DAT_EVD_WAIT_POLICY(objects->rig.conn, (DAT_EV_WAIT_POLICY)9, 0);
}

static DAT_RETURN arm_of_ep(struct objects *objects)
{
	return DAT_EVD_ARM(objects->rig.ep, 1, 0);
}

static DAT_RETURN no_operation(struct objects *objects)
{
	return dat_extension_op(objects->rig.ep, (DAT_EXTENDED_OP)12);
}

#define OF(object) offsetof(struct objects, object)

static const struct {
	DAT_RETURN (*call)(struct objects *objects);
	size_t of;
	const char *name, *reason;
} refused[] = {
	{ send_unconnected, OF(rig.ep), "dat_ep_post_send",
	  "DAT_INVALID_STATE DAT_INVALID_STATE_EP_UNCONNECTED" },
	{ send_too_many, OF(rig.ep), "dat_ep_post_send_with_invalidate",
	  "DAT_INVALID_PARAMETER DAT_INVALID_ARG2 (segments)" },
	{ recv_less_than_none, OF(rig.ep), "dat_ep_post_recv",
	  "DAT_INVALID_PARAMETER DAT_INVALID_ARG2 (segments)" },
	{ read_from_nowhere, OF(rig.ep), "dat_ep_post_rdma_read",
	  "DAT_INVALID_PARAMETER DAT_INVALID_ARG5 (remote)" },
	{ read_to_rmr, OF(rig.ep), "dat_ep_post_rdma_read_to_rmr", "DAT_MODEL_NOT_SUPPORTED" },
	{ write_with_flags, OF(rig.ep), "dat_ep_post_rdma_write",
	  "DAT_INVALID_PARAMETER DAT_INVALID_ARG6 (flags)" },
	{ srq_without_segments, OF(srq), "dat_srq_post_recv",
	  "DAT_INVALID_PARAMETER DAT_INVALID_ARG3 (iov)" },
	{ wait_for_none, OF(rig.conn), "dat_evd_wait",
	  "DAT_INVALID_PARAMETER DAT_INVALID_ARG3 (threshold)" },
	{ wait_without_more, OF(rig.conn), "dat_evd_wait",
	  "DAT_INVALID_PARAMETER DAT_INVALID_ARG5 (more)" },
	{ dequeue_of_ep, OF(rig.ep), "dat_evd_dequeue",
	  "DAT_INVALID_HANDLE DAT_INVALID_HANDLE_EVD_REQUEST" },
	{ dequeue_to_nowhere, OF(rig.recv), "dat_evd_dequeue",
	  "DAT_INVALID_PARAMETER DAT_INVALID_ARG2 (event)" },
	{ cno_wait_without_evd, OF(cno), "dat_cno_wait",
	  "DAT_INVALID_PARAMETER DAT_INVALID_ARG3 (evd)" },
	{ cno_trigger_without_evd, OF(cno), "dat_cno_trigger",
	  "DAT_INVALID_PARAMETER DAT_INVALID_ARG2 (evd)" },
	{ policy_unknown, OF(rig.conn), "DAT_EVD_WAIT_POLICY_OP",
	  "DAT_INVALID_PARAMETER DAT_INVALID_ARG3" },
	{ arm_of_ep, OF(rig.ep), "DAT_EVD_ARM_OP",
	  "DAT_INVALID_HANDLE DAT_INVALID_HANDLE_EVD_REQUEST" },
	{ no_operation, OF(rig.ep), "no extension operation", "DAT_NOT_IMPLEMENTED" },
};

#undef OF

/* ---- calls that are answered, or of which a trace would break a promise ---- */

static void answered(struct objects *objects)
{
	DAT_EVD_HANDLE evd;
	DAT_EVENT event;
	DAT_COUNT n;

	CU_ASSERT_EQUAL(DAT_GET_TYPE(dat_evd_wait(objects->rig.conn, 0, 1, &event, &n)),
			DAT_TIMEOUT_EXPIRED);
	CU_ASSERT_EQUAL(DAT_GET_TYPE(dat_evd_dequeue(objects->rig.conn, &event)), DAT_QUEUE_EMPTY);
	CU_ASSERT_EQUAL(DAT_GET_TYPE(dat_cno_wait(objects->cno, 0, &evd)), DAT_QUEUE_EMPTY);
	CU_ASSERT_EQUAL(DAT_GET_TYPE(dat_cno_trigger(objects->cno, &evd)), DAT_QUEUE_EMPTY);
	CU_ASSERT_EQUAL(DAT_GET_TYPE(DAT_EVD_DEQUEUE_N(objects->rig.conn, 1, &event, &n)),
			DAT_QUEUE_EMPTY);
	/* async-signal-safe */
	CU_ASSERT_EQUAL(DAT_GET_TYPE(DAT_EVD_SIGNAL(objects->rig.ep)), DAT_INVALID_HANDLE);
}

/* ---- the tests ---- */

/* Returns what `act` writes to standard error. */
static const char *said_by(void (*act)(struct objects *objects), struct objects *objects)
{
	static char text[4096];
	FILE *file = tmpfile();
	int saved = dup(STDERR_FILENO);
	ssize_t length;

	CU_ASSERT_TRUE_FATAL(file && saved >= 0);
	dup2(fileno(file), STDERR_FILENO);
	act(objects);
	dup2(saved, STDERR_FILENO);
	close(saved);
	length = pread(fileno(file), text, sizeof(text) - 1, 0);
	text[length > 0 ? length : 0] = '\0';
	fclose(file);
	return text;
}

static void objects_open(struct objects *objects)
{
	DAT_EP_ATTR attr = rig_attr();
	DAT_SRQ_ATTR srq = { .max_recv_dtos = 4, .max_recv_iov = 2 };

	rig_open(&objects->rig, &attr);
	MUST(dat_srq_create(objects->rig.ia, objects->rig.pz, &srq, &objects->srq));
	MUST(dat_cno_create(objects->rig.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &objects->cno));
}

static void objects_close(struct objects *objects)
{
	MUST(dat_cno_free(objects->cno));
	MUST(dat_srq_free(objects->srq));
	rig_close(&objects->rig);
}

static unsigned row;

static void refused_call(struct objects *objects)
{
	CU_ASSERT_TRUE(refused[row].call(objects) & DAT_CLASS_ERROR);
}

static void test_refusals(void)
{
	struct objects objects;
	unsigned mask;
	char line[256];

	objects_open(&objects);
	mask = atomic_load(&log_mask);
	for (row = 0; row < sizeof(refused) / sizeof(refused[0]); row++) {
		snprintf(line, sizeof(line), "dapl: %s of %p: %s\n", refused[row].name,
			 *(DAT_HANDLE *)((char *)&objects + refused[row].of), refused[row].reason);
		CU_ASSERT_STRING_EQUAL(said_by(refused_call, &objects), line);
		atomic_store(&log_mask, LOG_ERROR | LOG_WARN | LOG_NOTE);
		CU_ASSERT_STRING_EQUAL(said_by(refused_call, &objects), "");
		atomic_store(&log_mask, mask);
	}
	objects_close(&objects);
}

static void test_answers(void)
{
	struct objects objects;

	objects_open(&objects);
	CU_ASSERT_STRING_EQUAL(said_by(answered, &objects), "");
	objects_close(&objects);
}

static void connecting(struct objects *objects)
{
	rig_start_connect(&objects->rig);
}

/* The log of the EP's end is ignored. */
static void test_states(void)
{
	struct objects objects;

	objects_open(&objects);
	CU_ASSERT_PTR_NOT_NULL(strstr(said_by(connecting, &objects),
				      ": UNCONNECTED to ACTIVE_CONNECTION_PENDING\n"));
	objects_close(&objects);
}

static void test_all_named(void)
{
	for (int state = 0; state <= DAT_EP_STATE_CONNECTED_MULTI_PATH; state++)
		CU_ASSERT_STRING_NOT_EQUAL(ep_state_name((DAT_EP_STATE)state), "no state");
	CU_ASSERT_STRING_EQUAL(ep_state_name(DAT_EP_STATE_DISCONNECT_PENDING),
			       "DISCONNECT_PENDING");
	for (int event = DAT_CONNECTION_EVENT_ESTABLISHED;
	     event <= DAT_CONNECTION_EVENT_UNREACHABLE; event++)
		CU_ASSERT_STRING_NOT_EQUAL(connection_event_name((DAT_EVENT_NUMBER)event),
					   "no event of connections");
	CU_ASSERT_STRING_EQUAL(connection_event_name(DAT_CONNECTION_EVENT_BROKEN), "BROKEN");
	for (int op = DAT_IB_FETCH_AND_ADD_OP; op <= DAT_IB_PRINT_COUNTERS_OP; op++)
		CU_ASSERT_STRING_NOT_EQUAL(ext_op_name((DAT_EXTENDED_OP)op),
					   "no extension operation");
	CU_ASSERT_STRING_EQUAL(ext_op_name(DAT_EVD_ARM_OP), "DAT_EVD_ARM_OP");
}

static const struct unit_test tests[] = {
	{ "states, events of connections and operations have names", test_all_named },
	{ "a trace names what is refused: call, object, argument", test_refusals },
	{ "a trace says nothing of an empty queue, a timeout or a signal", test_answers },
	{ "a trace names states", test_states },
};

UNIT_MAIN("names", tests)
