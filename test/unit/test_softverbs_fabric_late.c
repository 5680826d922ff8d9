/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The time that a link has to open: whose delay counts, and how long each side waits for the other one. */
#include "softverbs/fabric/data.h"
#include "softverbs/fabric/transport.h"
#include "test/unit/busy_engine.h"
#include "test/unit/fabric_rig.h"

/* ---- an engine that is late ---- */

/* The proof arrives in time, while the engine of this process is busy beyond the time of the link. */
static void is_welcome(uint16_t port, bool timers_first)
{
	int fd = rig_dial(port);
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	rig_prelude(fd);
	CU_ASSERT_EQUAL(poll(&poll_fd, 1, (int)UNIT_PATIENCE), 1);
	busy_begin(2500 * NSEC_PER_MSEC, timers_first);
	CU_ASSERT_TRUE(rig_proof_send(fd, ""));
	busy_let_go();
	CU_ASSERT_EQUAL(rig_verdict(fd), WIRE_WELCOME);
	busy_end();
	CU_ASSERT_TRUE(rig_is_answered(fd));
	close(fd);
}

static void busy_process(void)
{
	uint16_t port = rig_on();

	is_welcome(port, false);
	is_welcome(port, true);
	sv_runtime_release();
}

/* ---- a peer that is late ---- */

static atomic_bool linked;

static void link_found(uint32_t cookie, struct sv_peer *peer, int error)
{
	(void)cookie;
	(void)error;
	if (!peer)
		return;
	sv_peer_put(peer);
	atomic_store(&linked, true);
}

/* Begins a link with the test's own host, which accepts it and knows the key. */
static int link_begin(int listener)
{
	struct sv_ip host = { .families = SV_IPV4 };

	inet_pton(AF_INET6, "::ffff:" RIG_HOST, &host.addr);
	atomic_store(&linked, false);
	CU_ASSERT_EQUAL_FATAL(sv_fabric_find_slot(&host, 9, 0, link_found), 0);
	return rig_accept(listener);
}

/* Either side of a link may be stopped after the proofs, when the other one may have taken it as its peer already. */
static void proven_ones(void)
{
	uint16_t port = rig_on();
	int listener = rig_listen(port);
	struct wire_target wanted;
	struct pollfd both[2] = { { .fd = rig_dial(port), .events = POLLIN },
				  { .fd = link_begin(listener), .events = POLLRDHUP } };

	CU_ASSERT_EQUAL(rig_prove(both[0].fd, ""), WIRE_WELCOME);
	CU_ASSERT_EQUAL(poll(both, 2, 4500), 0); /* neither is closed */
	CU_ASSERT_TRUE(rig_is_answered(both[0].fd));
	rig_answer(both[1].fd, WIRE_LINKED, &wanted);
	CU_ASSERT_TRUE(unit_wait_for(busy_flag_is, &linked, UNIT_PATIENCE));
	close(both[0].fd);
	close(both[1].fd);
	close(listener);
	sv_runtime_release();
}

static const struct unit_test tests[] = {
	{ "a busy process does not take a peer for a late one", busy_process },
	{ "a peer that has proven itself has the time of a host that vanishes", proven_ones },
};

int main(int argc, char **argv)
{
	return rig_can() ? unit_main("softverbs fabric late", tests, 2, argc, argv) : 77;
}
