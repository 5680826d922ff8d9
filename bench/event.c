/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The event extension beside what can be done without it, timed in turns on one processor:
 *   wake    a message to a thread that sleeps on the descriptor of an EVD, and back, beside two eventfds
 *   poll    DAT_CNO_POLL over 1,000 EVDs of which 10 have events, beside ibv_poll_cq of 1,000 empty CQs
 * Prints a line GOAL<TAB>what<TAB>ours<TAB>reference<TAB>ratio<TAB>limit<TAB>verdict for each, in ns.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <infiniband/verbs.h>
#include <dat2/dat_event_extensions.h>

#define BATCHES	  41 /* of each, in turns; the lower quartile counts: the rest met other programs */
#define TRIPS	  200
#define EVDS	  1000
#define WITH_NEWS 10
#define POLLS	  20
#define DEPTH	  8
#define SECONDS	  20

static char adapter[] = "ofa-v2-soft";
static DAT_IA_HANDLE ia;
static DAT_EVD_HANDLE async_evd;

static void must(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "event: %s failed\n", what);
	exit(1);
}

#define DO(call) must((call) == DAT_SUCCESS, #call)

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double quartile(double *figures)
{
	qsort(figures, BATCHES, sizeof(*figures), by_value);
	return figures[BATCHES / 4];
}

static void report(const char *what, double *ours, double *reference, double limit)
{
	double a = quartile(ours), b = quartile(reference);

	printf("EV\t%s\t%.0f\t%.0f\t%.2f\t%.2f\t%s\n", what, a, b, a / b, limit,
	       a / b <= limit ? "met" : "MISSED");
}

/* ---- wake: two sides that sleep in turn ---- */

struct side {
	int fd;	   /* to sleep on */
	int other; /* eventfd to write */
	DAT_EVD_HANDLE conn, recv, request;
	DAT_EP_HANDLE ep;
	struct side *peer;
	void (*wait)(struct side *side);
	void (*tell)(struct side *side);
};

static void sleep_on(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	must(poll(&p, 1, SECONDS * 1000) == 1, "poll");
}

static void wait_eventfd(struct side *side)
{
	eventfd_t count;

	sleep_on(side->fd);
	must(!eventfd_read(side->fd, &count), "read");
}

static void tell_eventfd(struct side *side)
{
	must(!eventfd_write(side->other, 1), "write");
}

static void post(struct side *side)
{
	DO(dat_ep_post_recv(side->ep, 0, NULL, (DAT_DTO_COOKIE){ .as_64 = 1 },
			    DAT_COMPLETION_DEFAULT_FLAG));
}

/* The loop of the manual: take all, arm, sleep if it may. */
static void wait_evd(struct side *side)
{
	DAT_EVENT events[DEPTH];
	DAT_RETURN status;
	DAT_COUNT n;

	while (DAT_EVD_DEQUEUE_N(side->recv, DEPTH, events, &n) != DAT_SUCCESS) {
		status = DAT_EVD_ARM(side->recv, 0, 1);
		must(status == DAT_SUCCESS || status == DAT_EV_BUSY, "DAT_EVD_ARM");
		if (status == DAT_SUCCESS)
			sleep_on(side->fd);
	}
	while (n--)
		post(side);
}

static void tell_evd(struct side *side)
{
	DAT_EVENT event;

	DO(dat_ep_post_send(side->ep, 0, NULL, (DAT_DTO_COOKIE){ .as_64 = 2 },
			    DAT_COMPLETION_SUPPRESS_FLAG));
	dat_evd_dequeue(side->request, &event);
}

static void *answer(void *arg)
{
	struct side *side = arg;

	for (int i = 0; i < TRIPS; i++) {
		side->wait(side);
		side->tell(side);
	}
	return NULL;
}

static double trips(struct side *side)
{
	pthread_t thread;
	double begin;

	must(!pthread_create(&thread, NULL, answer, side->peer), "pthread_create");
	begin = now();
	for (int i = 0; i < TRIPS; i++) {
		side->tell(side);
		side->wait(side);
	}
	begin = (now() - begin) / TRIPS / 2;
	pthread_join(thread, NULL);
	return begin;
}

static DAT_EVENT next(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;
	DAT_COUNT more;

	DO(dat_evd_wait(evd, SECONDS * 1000000u, 1, &event, &more));
	return event;
}

static void side_open(struct side *side, struct side *peer, DAT_PZ_HANDLE pz)
{
	*side = (struct side){ .peer = peer, .wait = wait_evd, .tell = tell_evd };
	DO(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &side->conn));
	DO(dat_evd_create(ia, 64, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &side->recv));
	DO(dat_evd_create(ia, 64, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &side->request));
	DO(dat_ep_create(ia, pz, side->recv, side->request, side->conn, NULL, &side->ep));
	DO(DAT_EVD_GET_FD(side->recv, &side->fd));
	for (int i = 0; i < DEPTH; i++)
		post(side);
}

static void connect_sides(struct side *a, struct side *b)
{
	DAT_EVD_HANDLE requests;
	DAT_CONN_QUAL port;
	DAT_PSP_HANDLE psp;
	DAT_IA_ATTR attr;
	DAT_EVENT event;

	DO(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &requests));
	DO(dat_psp_create_any(ia, &port, requests, DAT_PSP_CONSUMER_FLAG, &psp));
	DO(dat_ia_query(ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, &attr, 0, NULL));
	DO(dat_ep_connect(a->ep, attr.ia_address_ptr, port, DAT_TIMEOUT_INFINITE, 0, NULL,
			  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	event = next(requests);
	DO(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, b->ep, 0, NULL));
	next(a->conn);
	next(b->conn);
	DO(dat_psp_free(psp));
	DO(dat_evd_free(requests));
}

static void measure_wake(void)
{
	double ours[BATCHES], reference[BATCHES];
	struct side a, b, x, y;
	DAT_PZ_HANDLE pz;

	DO(dat_pz_create(ia, &pz));
	side_open(&a, &b, pz);
	side_open(&b, &a, pz);
	connect_sides(&a, &b);
	x = (struct side){ .fd = eventfd(0, EFD_NONBLOCK),
			   .other = eventfd(0, EFD_NONBLOCK),
			   .peer = &y,
			   .wait = wait_eventfd,
			   .tell = tell_eventfd };
	must(x.fd >= 0 && x.other >= 0, "eventfd");
	y = x;
	y.fd = x.other;
	y.other = x.fd;
	for (int i = 0; i < BATCHES; i++) {
		reference[i] = trips(&x);
		ours[i] = trips(&a);
	}
	report("wake-up through the descriptor of an EVD / eventfd with poll", ours, reference,
	       1.3);
}

/* ---- poll: many queues at once ---- */

static double poll_by_hand(struct ibv_cq **cqs)
{
	struct ibv_wc wc[16];
	double begin = now();

	for (int i = 0; i < POLLS; i++)
		for (int k = 0; k < EVDS; k++)
			must(!ibv_poll_cq(cqs[k], 16, wc), "ibv_poll_cq");
	return (now() - begin) / POLLS;
}

static double poll_cno(DAT_CNO_HANDLE cno)
{
	static DAT_EVD_HANDLE found[EVDS];
	double begin = now();
	DAT_COUNT n;

	for (int i = 0; i < POLLS; i++) {
		DO(DAT_CNO_POLL(cno, EVDS, found, &n));
		must(n == WITH_NEWS, "count of EVDs with events");
	}
	return (now() - begin) / POLLS;
}

static void measure_poll(void)
{
	static struct ibv_cq *cqs[EVDS];
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };
	double ours[BATCHES], reference[BATCHES];
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *context = devices && devices[0] ? ibv_open_device(devices[0]) : NULL;
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE evd;

	must(context, "ibv_open_device");
	DO(dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	for (int i = 0; i < EVDS; i++) {
		cqs[i] = ibv_create_cq(context, 64, NULL, NULL, 0);
		must(cqs[i], "ibv_create_cq");
		DO(dat_evd_create(ia, 8, cno, DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG, &evd));
		if (i % (EVDS / WITH_NEWS) == 0)
			DO(dat_evd_post_se(evd, &event));
	}
	for (int i = 0; i < BATCHES; i++) {
		reference[i] = poll_by_hand(cqs);
		ours[i] = poll_cno(cno);
	}
	report("DAT_CNO_POLL of 1000 EVDs, 10 with events / 1000 calls of ibv_poll_cq", ours,
	       reference, 2);
}

int main(void)
{
	struct rlimit files;
	cpu_set_t one;

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	DO(dat_ia_open(adapter, 8, &async_evd, &ia));
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_setaffinity(0, sizeof(one), &one);
	measure_wake();
	measure_poll();
	DO(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	return 0;
}
