/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* An RC QP that looks for its peer on another host, and threads that poll for it. */
#include "test/unit/fabric_rc.h"

/* A peer that breaks off has not said that there is no such process. The QP's first retry is 8.6 s away. */
static void broken_off(void)
{
	struct wire_target target;
	struct far_done done;
	uint64_t begin;
	int listener, fd;

	own_open(21);
	listener = rig_listen(own.port);
	begin = clock_now();
	send_one(7);
	for (unsigned i = 0; i < 3; i++)
		close(rig_accept(listener)); /* the target is not read: TCP resets */
	fd = rig_accept(listener);
	rig_answer(fd, WIRE_LINKED, &target);
	CU_ASSERT_EQUAL(target.slot, OTHER);
	CU_ASSERT_TRUE(comes(fd, 7, &done));
	CU_ASSERT_TRUE(clock_now() - begin < 8 * NSEC_PER_SEC);
	close(fd);
	close(listener);
	own_close();
}

/* ---- threads that poll ---- */

static void polls_read(void)
{
	struct far_done done[2];
	int fd = linked_open(21, done);

	busy_begin(0, false);
	for (unsigned i = 0; i < 2; i++) {
		their_answer(&done[i]);
		they_send(fd);
		assert_completes(i + 1, IBV_WC_SUCCESS);
	}
	busy_let_go();
	busy_end();
	linked_close(fd);
}

/* A message of rdma_cm, for a connection that is not there, between two answers. */
static void polls_leave_the_rest(void)
{
	struct cm_message message = { .kind = CM_MSG_DREQ, .space = RDMA_PS_TCP, .to = 77 };
	uint8_t bytes[CM_WIRE_SIZE];
	struct far_done done[2];
	int fd = linked_open(21, done);
	struct ibv_wc wc;

	message.source.sin6_family = message.target.sin6_family = AF_INET6;
	sv_cm_wire_write(bytes, &message);
	busy_begin(0, false);
	their_answer(&done[0]);
	their_frame(WIRE_CM, bytes, sizeof(bytes));
	their_answer(&done[1]);
	they_send(fd);
	assert_completes(1, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < 100; i++)
		CU_ASSERT_EQUAL(ibv_poll_cq(own.cq, 1, &wc), 0);
	busy_let_go();
	assert_completes(2, IBV_WC_SUCCESS);
	busy_end(); /* threads that poll read again */
	send_one(3);
	CU_ASSERT_TRUE(comes(fd, 3, &done[0]));
	busy_begin(0, false);
	their_answer(&done[0]);
	they_send(fd);
	assert_completes(3, IBV_WC_SUCCESS);
	busy_let_go();
	busy_end();
	linked_close(fd);
}

/* What comes before the end, or before what is malformed, is done, once. */
static void polls_meet(bool is_end)
{
	struct far_done done[2];
	int fd = linked_open(14, done);

	busy_begin(0, false);
	their_answer(&done[0]);
	if (!is_end)
		their_frame(WIRE_REQUEST, "rubbish", 7);
	they_send(fd);
	if (is_end)
		shutdown(fd, SHUT_WR);
	assert_completes(1, IBV_WC_SUCCESS);
	busy_let_go();
	CU_ASSERT_TRUE(rig_is_closed(fd));
	assert_completes(2, IBV_WC_RETRY_EXC_ERR);
	linked_close(fd);
}

static void polls_meet_rubbish(void)
{
	polls_meet(false);
}

static void polls_meet_the_end(void)
{
	polls_meet(true);
}

static const struct unit_test tests[] = {
	{ "a thread that polls reads the answers", polls_read },
	{ "what is not data waits for the engine, and what is behind it", polls_leave_the_rest },
	{ "a malformed frame ends the link", polls_meet_rubbish },
	{ "the end of a peer, found by a poll", polls_meet_the_end },
	{ "a link that breaks off is begun again long before the retry of the QP", broken_off },
};

int main(int argc, char **argv)
{
	return rig_can() ? unit_main("softverbs fabric rc", tests, sizeof(tests) / sizeof(tests[0]),
				     argc, argv)
			 : 77;
}
