/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * More connections from other hosts at once than may be unproven. Links have a limited time, and the machine may be busy, so
 * that one try of five counts.
 */
#include "test/unit/fabric_rig.h"
#include "test/unit/files.h"
#include "util/clock.h"

#define CROWD 200u
#define TRIES 5u

/* Seconds from the first connection of strangers to the welcome of a peer that comes after them. */
static double after_strangers(uint16_t port)
{
	struct pollfd oldest = { .events = POLLIN };
	uint64_t begin = clock_now(), end;
	int fds[CROWD], fd;

	for (unsigned i = 0; i < CROWD; i++)
		fds[i] = rig_dial(port);
	oldest.fd = fds[0];
	fd = rig_dial(port);
	CU_ASSERT_EQUAL(rig_prove(fd, ""), WIRE_WELCOME);
	end = clock_now();
	CU_ASSERT_EQUAL(poll(&oldest, 1, 0), 1); /* it was closed, to make room */
	CU_ASSERT_TRUE(rig_is_answered(fd));
	close(fd);
	for (unsigned i = 0; i < CROWD; i++) {
		CU_ASSERT_TRUE(rig_is_closed(fds[i]));
		close(fds[i]);
	}
	return (double)(end - begin) / NSEC_PER_SEC;
}

/* They make room long before the 2 s that a link may take are over. */
static void silent_strangers(void)
{
	uint16_t port = rig_on();
	bool soon = false;

	for (unsigned i = 0; i < TRIES && !soon; i++)
		soon = after_strangers(port) < 1.5;
	CU_ASSERT_TRUE(soon);
	sv_runtime_release();
}

static bool all_are_welcome(uint16_t port)
{
	unsigned welcome = 0;
	int fds[CROWD];

	for (unsigned i = 0; i < CROWD; i++) {
		fds[i] = rig_dial(port);
		rig_prelude(fds[i]);
	}
	for (unsigned i = 0; i < CROWD; i++)
		welcome += rig_proof(fds[i], "") == WIRE_WELCOME && rig_is_answered(fds[i]);
	for (unsigned i = 0; i < CROWD; i++)
		close(fds[i]);
	return welcome == CROWD;
}

/* None is refused: those for which there is no room wait. */
static void many_peers(void)
{
	uint16_t port = rig_on();
	bool all = false;

	for (unsigned i = 0; i < TRIES && !all; i++)
		all = all_are_welcome(port);
	CU_ASSERT_TRUE(all);
	sv_runtime_release();
}

/* A connection for which there is no descriptor ends at once, and others are let in later. */
static void no_descriptors(void)
{
	uint16_t port;
	int fd;

	if (!limit_is_real()) {
		puts("skipped: the test of descriptors: this process cannot limit them");
		return;
	}
	port = rig_on();
	fd = rig_dial(port);
	CU_ASSERT_EQUAL(rig_prove(fd, ""), WIRE_WELCOME);
	close(fd);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	limit_fds(0);
	CU_ASSERT_TRUE(rig_connect(fd, port));
	CU_ASSERT_TRUE(rig_is_closed(fd));
	limit_fds(-1);
	close(fd);
	fd = rig_dial(port);
	CU_ASSERT_EQUAL(rig_prove(fd, ""), WIRE_WELCOME);
	CU_ASSERT_TRUE(rig_is_answered(fd));
	close(fd);
	sv_runtime_release();
}

static const struct unit_test tests[] = {
	{ "strangers that say nothing delay a peer, but not for long", silent_strangers },
	{ "many peers at once are let in, one after the other", many_peers },
	{ "a connection without a descriptor ends, and the next one is let in", no_descriptors },
};

int main(int argc, char **argv)
{
	return rig_can() ? unit_main("softverbs fabric crowd", tests, 3, argc, argv) : 77;
}
