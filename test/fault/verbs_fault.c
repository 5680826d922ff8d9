/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Faults for tests of verbs programs, preloaded before the program: VERBS_FAULT is a
 * comma-separated list of
 *	rnr=N: each Nth receive is posted 5 ms late, so that messages find none;
 *	delay=USEC: each work request is posted that much later;
 *	drop=N: after N work requests the links of this process are cut, as if its peers had died.
 * The device is unchanged: the calls of its context are replaced when the first queue pair is made.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

/* The program calls these functions in the place of the libraries' functions. */
#define INSTEAD __attribute__((visibility("default")))

#define LATE_US	 5000u
#define SGES	 32
#define LINKS	 64u
#define NEXT(of) ((__typeof__(&(of)))dlsym(RTLD_NEXT, #of))

static struct {
	unsigned rnr, delay, drop; /* 0 if the fault is not asked for */
	atomic_uint posted, received;
	int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
	int (*post_recv)(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
} fault;

/* ---- links: the sockets between the processes that use the device ---- */

static int links[LINKS];
static atomic_uint link_count;

static void link_note(int fd)
{
	int type = 0, domain = 0;
	socklen_t size = sizeof(int);
	unsigned n;

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) || type != SOCK_SEQPACKET ||
	    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) || domain != AF_UNIX)
		return;
	n = atomic_fetch_add(&link_count, 1);
	if (n < LINKS)
		links[n] = fd;
}

INSTEAD int connect(int fd, const struct sockaddr *address, socklen_t size)
{
	int status = NEXT(connect)(fd, address, size);

	if (!status)
		link_note(fd);
	return status;
}

INSTEAD int accept4(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
	int link = NEXT(accept4)(fd, address, size, flags);

	if (link >= 0)
		link_note(link);
	return link;
}

static void links_cut(void)
{
	unsigned count = atomic_load(&link_count);

	for (unsigned i = 0; i < count && i < LINKS; i++)
		shutdown(links[i], SHUT_RDWR);
}

/* ---- late receives, and those behind them ---- */

struct late {
	STAILQ_ENTRY(late) entry;
	struct ibv_qp *qp;
	struct ibv_recv_wr wr;
	struct ibv_sge sge[SGES];
};

static STAILQ_HEAD(, late) lates = STAILQ_HEAD_INITIALIZER(lates);
static pthread_mutex_t late_lock = PTHREAD_MUTEX_INITIALIZER;

static void late_post_locked(void)
{
	struct ibv_recv_wr *bad;
	struct late *late;

	while ((late = STAILQ_FIRST(&lates))) {
		STAILQ_REMOVE_HEAD(&lates, entry);
		if (fault.post_recv(late->qp, &late->wr, &bad))
			fprintf(stderr, "verbs-fault: a late receive was refused\n");
		free(late);
	}
}

static void late_post(void)
{
	pthread_mutex_lock(&late_lock);
	late_post_locked();
	pthread_mutex_unlock(&late_lock);
}

static void *late_wait(void *arg)
{
	(void)arg;
	usleep(LATE_US);
	late_post();
	return NULL;
}

static bool late_add_locked(struct ibv_qp *qp, const struct ibv_recv_wr *wr)
{
	struct late *late = calloc(1, sizeof(*late));
	bool first = STAILQ_EMPTY(&lates);
	pthread_t thread;

	if (!late || wr->num_sge > SGES) {
		free(late);
		return false;
	}
	late->qp = qp;
	late->wr = *wr;
	late->wr.next = NULL;
	late->wr.sg_list = late->sge;
	memcpy(late->sge, wr->sg_list, (size_t)wr->num_sge * sizeof(*wr->sg_list));
	STAILQ_INSERT_TAIL(&lates, late, entry);
	if (!first)
		return true;
	if (pthread_create(&thread, NULL, late_wait, NULL))
		late_post_locked();
	else
		pthread_detach(thread);
	return true;
}

/* ---- the calls of a context ---- */

static int faulty_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	int err;

	if (fault.delay)
		usleep(fault.delay);
	err = fault.post_send(qp, wr, bad);
	if (fault.drop && atomic_fetch_add(&fault.posted, 1) + 1 == fault.drop)
		links_cut();
	return err;
}

static int faulty_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int err = 0;

	pthread_mutex_lock(&late_lock);
	for (; wr && !err; wr = wr->next) {
		struct ibv_recv_wr one = *wr;
		bool late = atomic_fetch_add(&fault.received, 1) % fault.rnr == fault.rnr - 1;

		one.next = NULL;
		if ((late || !STAILQ_EMPTY(&lates)) && late_add_locked(qp, &one))
			continue;
		err = fault.post_recv(qp, &one, bad);
		if (err)
			*bad = wr;
	}
	pthread_mutex_unlock(&late_lock);
	return err;
}

static void plan_read(void)
{
	const char *text = getenv("VERBS_FAULT");
	char *copy = strdup(text ? text : ""), *rest = copy, *word;

	while ((word = strsep(&rest, ",")) && *word)
		if (sscanf(word, "rnr=%u", &fault.rnr) != 1 &&
		    sscanf(word, "delay=%u", &fault.delay) != 1 &&
		    sscanf(word, "drop=%u", &fault.drop) != 1) {
			fprintf(stderr, "verbs-fault: VERBS_FAULT=%s: no such fault\n", text);
			exit(2);
		}
	free(copy);
}

static void context_take(struct ibv_context *context)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, plan_read);
	if (context->ops.post_send == faulty_post_send)
		return;
	fault.post_send = context->ops.post_send;
	fault.post_recv = context->ops.post_recv;
	context->ops.post_send = faulty_post_send;
	if (fault.rnr)
		context->ops.post_recv = faulty_post_recv;
}

INSTEAD struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp *qp = NEXT(ibv_create_qp)(pd, attr);

	if (qp)
		context_take(qp->context);
	return qp;
}

INSTEAD int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	int status = NEXT(rdma_create_qp)(id, pd, attr);

	if (!status)
		context_take(id->qp->context);
	return status;
}

INSTEAD int ibv_destroy_qp(struct ibv_qp *qp)
{
	late_post();
	return NEXT(ibv_destroy_qp)(qp);
}

INSTEAD void rdma_destroy_qp(struct rdma_cm_id *id)
{
	late_post();
	NEXT(rdma_destroy_qp)(id);
}
