/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Calls every operation of the event extension on the registry and provider that the environment
 * selects.
 *
 * usage: event-ops IA works | absent
 * works: each operation does what its name says. absent: each returns the type DAT_NOT_IMPLEMENTED.
 */
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <dat2/dat_event_extensions.h>

static struct {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async, evd;
	DAT_CNO_HANDLE cno;
	DAT_HANDLE pset;
	DAT_FD fd;
	DAT_EVENT events[4];
	DAT_EVD_HANDLE evds[4];
	DAT_HANDLE handles[2];
	DAT_COUNT n;
	DAT_UINT32 major, minor;
	DAT_UINT64 word;
	struct pollfd fds[4];
	DAT_EV_POLLFDS list;
} u;

static unsigned wrong;

static void is(const char *what, DAT_RETURN status, DAT_RETURN expected)
{
	if (status == expected)
		return;
	printf("%s: 0x%x, not 0x%x\n", what, status, expected);
	wrong++;
}

static void holds(const char *what, bool good)
{
	if (good)
		return;
	printf("%s: a wrong result\n", what);
	wrong++;
}

static void post(void)
{
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };

	is("dat_evd_post_se", dat_evd_post_se(u.evd, &event), DAT_SUCCESS);
}

static bool readable(int fd)
{
	struct pollfd poller = { .fd = fd, .events = POLLIN };

	return poll(&poller, 1, 0) == 1;
}

static void works_on_an_evd(void)
{
	is("version", DAT_EV_VERSION(u.ia, &u.major, &u.minor), DAT_SUCCESS);
	holds("version", u.major == 1 && !u.minor);
	is("fd", DAT_EVD_GET_FD(u.evd, &u.fd), DAT_SUCCESS);
	is("arm", DAT_EVD_ARM(u.evd, 0, 1), DAT_SUCCESS);
	holds("arm", !readable(u.fd));
	post();
	post();
	holds("arm", readable(u.fd));
	is("arm", DAT_EVD_ARM(u.evd, 0, 1), DAT_EV_BUSY);
	is("pending", DAT_EVD_PENDING(u.evd, &u.n), DAT_SUCCESS);
	holds("pending", u.n == 2);
	is("batch", DAT_EVD_DEQUEUE_N(u.evd, 4, u.events, &u.n), DAT_SUCCESS);
	is("batch", DAT_EVD_DEQUEUE_N(u.evd, 4, u.events, &u.n), DAT_QUEUE_EMPTY);
	is("signal", DAT_EVD_SIGNAL(u.evd), DAT_SUCCESS);
	is("wait", dat_evd_wait(u.evd, DAT_TIMEOUT_INFINITE, 1, u.events, &u.n),
	   DAT_INTERRUPTED_CALL);
	is("policy", DAT_EVD_WAIT_POLICY(u.evd, DAT_EV_WAIT_SPIN, 0), DAT_SUCCESS);
	is("memory", DAT_WAIT_MEM(u.evd, &u.word, 1, 0, 100), DAT_TIMEOUT_EXPIRED);
}

/*
 * The thread-safety of the record in dat.conf does not matter here; OFED's registry asks for the
 * same at the close of the IA.
 */
static void is_thread_safe(void)
{
	DAT_PROVIDER_ATTR attr = { .is_thread_safe = DAT_FALSE };
	DAT_IA_ATTR ia_attr;

	is("query", dat_ia_query(u.ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_IS_THREAD_SAFE, &attr),
	   DAT_SUCCESS);
	holds("thread safe", attr.is_thread_safe == DAT_TRUE);
	is("query",
	   dat_ia_query(u.ia, &u.async, DAT_IA_FIELD_ALL, &ia_attr, DAT_PROVIDER_FIELD_ALL, &attr),
	   DAT_SUCCESS);
	holds("thread safe", attr.is_thread_safe == DAT_TRUE);
}

static void works_on_many(void)
{
	is("cno fd", DAT_CNO_GET_FD(u.cno, &u.fd), DAT_SUCCESS);
	is("cno arm", DAT_CNO_ARM(u.cno, 0), DAT_SUCCESS);
	u.list = (DAT_EV_POLLFDS){ .nfds = 4, .fds = u.fds };
	is("cno fds", DAT_CNO_GET_POLLFDS(u.cno, &u.list), DAT_SUCCESS);
	is("cno signal", DAT_CNO_SIGNAL(u.cno), DAT_SUCCESS);
	is("cno arm", DAT_CNO_ARM(u.cno, 0), DAT_EV_BUSY);
	is("trywait", DAT_TRYWAIT(u.ia, u.handles, 2, &u.n), DAT_SUCCESS);
	post();
	is("cno poll", DAT_CNO_POLL(u.cno, 4, u.evds, &u.n), DAT_SUCCESS);
	holds("cno poll", u.n == 1 && u.evds[0] == u.evd);
	is("set", DAT_PSET_CREATE(u.ia, &u.pset), DAT_SUCCESS);
	is("set add", DAT_PSET_ADD(u.pset, u.evd), DAT_SUCCESS);
	is("set poll", DAT_PSET_POLL(u.pset, 4, u.evds, &u.n), DAT_SUCCESS);
	holds("set poll", u.n == 1 && u.evds[0] == u.evd);
	is("set del", DAT_PSET_DEL(u.pset, u.evd), DAT_SUCCESS);
	is("set free", DAT_PSET_FREE(u.pset), DAT_SUCCESS);
}

/* Compares the type alone, because some providers add the error class. */
static void gone(const char *what, DAT_RETURN status)
{
	is(what, DAT_GET_TYPE(status), DAT_GET_TYPE((DAT_RETURN)DAT_NOT_IMPLEMENTED));
}

static void all_absent(void)
{
	gone("version", DAT_EV_VERSION(u.ia, &u.major, &u.minor));
	gone("fd", DAT_EVD_GET_FD(u.evd, &u.fd));
	gone("arm", DAT_EVD_ARM(u.evd, 0, 1));
	gone("batch", DAT_EVD_DEQUEUE_N(u.evd, 4, u.events, &u.n));
	gone("pending", DAT_EVD_PENDING(u.evd, &u.n));
	gone("signal", DAT_EVD_SIGNAL(u.evd));
	gone("policy", DAT_EVD_WAIT_POLICY(u.evd, DAT_EV_WAIT_SPIN, 0));
	gone("cno fd", DAT_CNO_GET_FD(u.cno, &u.fd));
	gone("cno arm", DAT_CNO_ARM(u.cno, 0));
	gone("cno signal", DAT_CNO_SIGNAL(u.cno));
	gone("cno poll", DAT_CNO_POLL(u.cno, 4, u.evds, &u.n));
	gone("cno fds", DAT_CNO_GET_POLLFDS(u.cno, &u.list));
	gone("trywait", DAT_TRYWAIT(u.ia, u.handles, 2, &u.n));
	gone("memory", DAT_WAIT_MEM(u.ia, &u.word, 1, 0, 100));
	gone("set", DAT_PSET_CREATE(u.ia, &u.pset));
	gone("set add", DAT_PSET_ADD(u.evd, u.evd));
	gone("set del", DAT_PSET_DEL(u.evd, u.evd));
	gone("set poll", DAT_PSET_POLL(u.evd, 4, u.evds, &u.n));
	gone("set free", DAT_PSET_FREE(u.evd));
}

int main(int argc, char **argv)
{
	if (argc != 3 || (strcmp(argv[2], "works") && strcmp(argv[2], "absent"))) {
		fprintf(stderr, "usage: event-ops IA works | absent\n");
		return 2;
	}
	is("dat_ia_open", dat_ia_open(argv[1], 8, &u.async, &u.ia), DAT_SUCCESS);
	if (wrong)
		return 1;
	is("dat_cno_create", dat_cno_create(u.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &u.cno),
	   DAT_SUCCESS);
	is("dat_evd_create", dat_evd_create(u.ia, 8, u.cno, DAT_EVD_SOFTWARE_FLAG, &u.evd),
	   DAT_SUCCESS);
	u.handles[0] = u.evd;
	u.handles[1] = u.cno;
	if (!wrong && !strcmp(argv[2], "absent")) {
		all_absent();
	} else if (!wrong) {
		is_thread_safe();
		works_on_an_evd();
		works_on_many();
	}
	is("dat_evd_free", dat_evd_free(u.evd), DAT_SUCCESS);
	is("dat_cno_free", dat_cno_free(u.cno), DAT_SUCCESS);
	is("dat_ia_close", dat_ia_close(u.ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_SUCCESS);
	printf("the event extension on %s: %s\n", argv[1], wrong ? "FAILED" : argv[2]);
	return wrong != 0;
}
