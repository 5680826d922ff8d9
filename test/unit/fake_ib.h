/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A device in the test's own hands, behind the seam of dapl/openib/ib.h: what completes, what is
 * refused and what the device reports happens when the test says so. Included by the one file of a
 * suite, whose objects stand before the real ones.
 */
#ifndef FAKE_IB_H
#define FAKE_IB_H

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/eventfd.h>
#include "dapl/udapl/ep.h"
#include "dapl/udapl/provider.h"
#include "test/unit/ep_util.h"
#include "util/clock.h"

#define FAKE_COMPLETIONS 4096
#define FAKE_MAX_WR 64
#define FAKE_MAX_SGE 4
#define FAKE_MAX_CQE 1000
#define FAKE_MAX_MESSAGE (1u << 30)
#define FAKE_INLINE 32
#define FAKE_LKEY 0x1000u
#define FAKE_RKEY 0x2000u
#define FAKE_MW_KEY 0x3000u	/* and upwards, with each bind */

struct ib_device {
	const char *params;
	unsigned opens;
	struct ib_attr attr;
	struct sockaddr_in address;
	struct ib_timer *timers;
};

struct ib_pd { int unused; };
struct ib_mr { int unused; };
struct ib_mw { uint32_t key; bool type2; };
struct ib_conn { void *owner; struct ib_conn_param param; };
struct ib_listener { void *owner; uint16_t port; };
struct ib_srq { void *owner; uint32_t max_wr, limit; unsigned arms; };

struct ib_cq {
	struct ib_cq_store taken;
	struct ib_completion store[4];
	void *owner;
	int entries, fd;
	struct ib_completion queue[FAKE_COMPLETIONS];
	unsigned head, tail;
	bool armed, solicited_only, failing;
	unsigned arms;
	bool watched;
	_Atomic uint32_t moderation;
};

struct ib_qp {
	void *owner;
	uint32_t num;
	struct ib_cq *send_cq, *recv_cq;
	struct ib_srq *srq;
	bool error;
};

/* The last work request that was posted. */
struct fake_post {
	struct ib_qp *qp;
	struct ib_srq *srq;
	unsigned op;
	uint64_t wr_id;
	unsigned flags, count;
	DAT_LMR_TRIPLET segments[FAKE_MAX_SGE];
	const DAT_LMR_TRIPLET *list;
	const DAT_RMR_TRIPLET *remote;
	uint32_t word;
	uint64_t operand, swap;
	struct ib_bind bind;
};

static struct {
	pthread_mutex_t lock;		/* the CQs */
	struct ib_upcalls upcalls;
	struct ib_device devices[2];
	struct fake_post last;
	unsigned posts;
	uint32_t privileges;
	bool zero_based;
	uint32_t next_qp;
	struct ib_qp *qp;		/* the last that was created */
	struct ib_conn *conn;		/* the last that was started */
	unsigned pds, mrs, mws, cqs, qps, srqs, conns;	/* alive */
	DAT_RETURN refuse;		/* what the next fallible call answers, once */
} fake = { .lock = PTHREAD_MUTEX_INITIALIZER, .next_qp = 0x11 };

static DAT_RETURN fake_refused(void)
{
	DAT_RETURN status = fake.refuse;

	fake.refuse = DAT_SUCCESS;
	return status;
}

static void *fake_new(size_t size, unsigned *alive)
{
	++*alive;
	return calloc(1, size);
}

/* ---- device ---- */

DAT_RETURN ib_device_open(const char *params, const struct ib_upcalls *upcalls,
			  struct ib_device **device)
{
	struct ib_device *found = &fake.devices[strstr(params, "fake1") ? 1 : 0];
	DAT_RETURN status = fake_refused();

	if (status != DAT_SUCCESS)
		return status;
	fake.upcalls = *upcalls;
	found->opens++;
	found->attr = (struct ib_attr){
		.device_name = "fake0", .transport = "software", .guid = 0x0002c90300abcdefull,
		.vendor_id = 0x2c9, .vendor_part_id = 4099, .hw_version = 7,
		.fw_version = 2ull << 48 | 42ull << 32 | 5000ull << 16,
		.port = 1, .port_state = 4, .mtu = 4096, .max_mr_size = 1ull << 40,
		.max_message = FAKE_MAX_MESSAGE, .max_qp = 1000, .max_wr = FAKE_MAX_WR,
		.max_sge = FAKE_MAX_SGE, .max_sge_read = 2, .max_cq = 900, .max_cqe = FAKE_MAX_CQE,
		.max_mr = 800, .max_pd = 700, .max_mw = 600, .max_read_in = 16, .max_read_out = 15,
		.max_read_in_device = 4000, .max_srq = 50, .max_srq_wr = 32, .max_srq_sge = 3,
		.max_private_connect = 56, .max_private_accept = 196, .max_private_reject = 148,
		.atomics = true, .zero_based = true, .mw_type1 = true, .mw_type2 = true,
		.mem_extensions = true, .srq_resize = true,
	};
	found->address = (struct sockaddr_in){ .sin_family = AF_INET,
					       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	*device = found;
	return DAT_SUCCESS;
}

void ib_device_close(struct ib_device *device)
{
	if (device)
		device->opens--;
}

const struct ib_attr *ib_device_attr(const struct ib_device *device) { return &device->attr; }

const struct sockaddr *ib_device_address(const struct ib_device *device)
{
	return (const struct sockaddr *)&device->address;
}

void ib_timer_cancel(struct ib_device *device, struct ib_timer *timer)
{
	struct ib_timer **link = &device->timers;

	while (*link && *link != timer)
		link = &(*link)->next;
	if (*link)
		*link = timer->next;
	timer->armed = false;
}

void ib_timer_arm(struct ib_device *device, struct ib_timer *timer, uint64_t deadline,
		  void (*call)(struct ib_timer *timer))
{
	ib_timer_cancel(device, timer);
	timer->deadline = deadline;
	timer->call = call;
	timer->armed = true;
	timer->next = device->timers;
	device->timers = timer;
}

bool ib_in_event_thread(const struct ib_device *device)
{
	(void)device;
	return true;
}

static struct ib_timer *fake_due(void)
{
	struct ib_timer *timer;

	for (timer = fake.devices[0].timers; timer; timer = timer->next)
		if (timer->deadline <= clock_now())
			break;
	return timer;
}

/* The event thread's work: what is due now. */
static inline void fake_run_timers(void)
{
	struct ib_timer *timer;

	while ((timer = fake_due())) {
		ib_timer_cancel(&fake.devices[0], timer);
		timer->call(timer);
	}
}

/* ---- memory ---- */

DAT_RETURN ib_pd_create(struct ib_device *device, struct ib_pd **pd)
{
	DAT_RETURN status = fake_refused();

	(void)device;
	if (status == DAT_SUCCESS)
		*pd = fake_new(sizeof(**pd), &fake.pds);
	return status;
}

DAT_RETURN ib_pd_destroy(struct ib_pd *pd)
{
	DAT_RETURN status = pd ? fake_refused() : DAT_SUCCESS;

	if (status == DAT_SUCCESS && pd)
		fake.pds--;
	if (status == DAT_SUCCESS)
		free(pd);
	return status;
}

DAT_RETURN ib_mr_create(struct ib_pd *pd, void *address, uint64_t length, uint32_t privileges,
			bool zero_based, struct ib_mr **mr, uint32_t *lkey, uint32_t *rkey)
{
	DAT_RETURN status = fake_refused();

	(void)pd;
	(void)address;
	(void)length;
	if (status != DAT_SUCCESS)
		return status;
	fake.privileges = privileges;
	fake.zero_based = zero_based;
	*lkey = FAKE_LKEY;
	*rkey = FAKE_RKEY;
	*mr = fake_new(sizeof(**mr), &fake.mrs);
	return DAT_SUCCESS;
}

DAT_RETURN ib_mr_destroy(struct ib_mr *mr)
{
	DAT_RETURN status = mr ? fake_refused() : DAT_SUCCESS;

	if (status == DAT_SUCCESS && mr)
		fake.mrs--;
	if (status == DAT_SUCCESS)
		free(mr);
	return status;
}

DAT_RETURN ib_mw_create(struct ib_pd *pd, bool type2, struct ib_mw **mw)
{
	DAT_RETURN status = fake_refused();

	(void)pd;
	if (status != DAT_SUCCESS)
		return status;
	*mw = fake_new(sizeof(**mw), &fake.mws);
	**mw = (struct ib_mw){ .key = FAKE_MW_KEY, .type2 = type2 };
	return DAT_SUCCESS;
}

void ib_mw_destroy(struct ib_mw *mw)
{
	if (mw)
		fake.mws--;
	free(mw);
}

/* ---- completion queues ---- */

DAT_RETURN ib_cq_create(struct ib_device *device, int entries, void *owner, struct ib_cq **cq)
{
	DAT_RETURN status = fake_refused();
	struct ib_cq *new;

	(void)device;
	if (status != DAT_SUCCESS)
		return status;
	new = fake_new(sizeof(*new), &fake.cqs);
	new->owner = owner;
	new->entries = entries;
	new->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	*cq = new;
	return DAT_SUCCESS;
}

DAT_RETURN ib_cq_destroy(struct ib_cq *cq)
{
	DAT_RETURN status = cq ? fake_refused() : DAT_SUCCESS;

	if (status != DAT_SUCCESS || !cq)
		return status;
	close(cq->fd);
	free(cq);
	fake.cqs--;
	return DAT_SUCCESS;
}

DAT_RETURN ib_cq_resize(struct ib_cq *cq, int entries)
{
	DAT_RETURN status = fake_refused();

	if (status == DAT_SUCCESS)
		cq->entries = entries;
	return status;
}

void ib_cq_moderate(struct ib_cq *cq, uint32_t count) { cq->moderation = count; }

DAT_RETURN ib_cq_watch(struct ib_cq *cq)
{
	DAT_RETURN status = fake_refused();

	if (status == DAT_SUCCESS) {
		CU_ASSERT_FALSE(cq->watched);
		cq->watched = true;
	}
	return status;
}

void ib_cq_unwatch(struct ib_cq *cq) { cq->watched = false; }

int ib_cq_entries(const struct ib_cq *cq) { return cq->entries; }

bool ib_cq_poll(struct ib_cq *cq)
{
	unsigned n = 0;

	pthread_mutex_lock(&fake.lock);
	while (!cq->failing && cq->head != cq->tail && n < 4)
		cq->store[n++] = cq->queue[cq->head++ % FAKE_COMPLETIONS];
	pthread_mutex_unlock(&fake.lock);
	cq->taken = (struct ib_cq_store){ cq->store, cq->store + n, cq->failing };
	return n > 0;
}

DAT_RETURN ib_cq_arm(struct ib_cq *cq, bool solicited_only)
{
	pthread_mutex_lock(&fake.lock);
	cq->armed = true;
	cq->solicited_only = solicited_only;
	cq->arms++;
	pthread_mutex_unlock(&fake.lock);
	return fake_refused();
}

int ib_cq_fd(const struct ib_cq *cq) { return cq->fd; }

bool ib_cq_collect(struct ib_cq *cq)
{
	uint64_t n;

	return read(cq->fd, &n, sizeof(n)) == sizeof(n);
}

/* The event thread's work: the CQ is watched, and fired. */
static inline bool fake_fire(struct ib_cq *cq)
{
	if (!cq->watched || !ib_cq_collect(cq))
		return false;
	fake.upcalls.completion(cq->owner);
	return true;
}

/* The device completes something. */
static inline void fake_complete(struct ib_cq *cq, const struct ib_completion *completion,
				 bool solicited)
{
	uint64_t one = 1;
	bool fire;

	pthread_mutex_lock(&fake.lock);
	cq->queue[cq->tail++ % FAKE_COMPLETIONS] = *completion;
	fire = cq->armed && (!cq->solicited_only || solicited || completion->status);
	if (fire)
		cq->armed = false;
	pthread_mutex_unlock(&fake.lock);
	if (fire)
		CU_ASSERT_EQUAL(write(cq->fd, &one, sizeof(one)), sizeof(one));
}

/* ---- queue pairs ---- */

DAT_RETURN ib_qp_create(struct ib_pd *pd, struct ib_cq *send_cq, struct ib_cq *recv_cq,
			struct ib_srq *srq, struct ib_qp_caps *caps, void *owner, struct ib_qp **qp)
{
	DAT_RETURN status = fake_refused();
	struct ib_qp *new;

	(void)pd;
	if (status != DAT_SUCCESS)
		return status;
	caps->inline_data = FAKE_INLINE;
	new = fake_new(sizeof(*new), &fake.qps);
	*new = (struct ib_qp){ .owner = owner, .num = fake.next_qp++, .send_cq = send_cq,
			       .recv_cq = recv_cq, .srq = srq };
	*qp = fake.qp = new;
	return DAT_SUCCESS;
}

void ib_qp_destroy(struct ib_qp *qp)
{
	if (qp)
		fake.qps--;
	free(qp);
}

void ib_qp_error(struct ib_qp *qp) { qp->error = true; }
uint32_t ib_qp_num(const struct ib_qp *qp) { return qp->num; }

DAT_RETURN ib_srq_create(struct ib_pd *pd, uint32_t *max_wr, uint32_t *max_sge, void *owner,
			 struct ib_srq **srq)
{
	DAT_RETURN status = fake_refused();

	(void)pd;
	if (status != DAT_SUCCESS)
		return status;
	/* a device rounds up */
	*max_wr = (*max_wr + 3) & ~3u;
	*max_sge = 3;
	*srq = fake_new(sizeof(**srq), &fake.srqs);
	(*srq)->owner = owner;
	(*srq)->max_wr = *max_wr;
	return DAT_SUCCESS;
}

DAT_RETURN ib_srq_resize(struct ib_srq *srq, uint32_t *max_wr)
{
	DAT_RETURN status = fake_refused();

	if (status != DAT_SUCCESS)
		return status;
	*max_wr = srq->max_wr = (*max_wr + 3) & ~3u;
	return DAT_SUCCESS;
}

DAT_RETURN ib_srq_limit(struct ib_srq *srq, uint32_t limit)
{
	DAT_RETURN status = fake_refused();

	if (status == DAT_SUCCESS) {
		srq->limit = limit;
		srq->arms++;
	}
	return status;
}

DAT_RETURN ib_srq_destroy(struct ib_srq *srq)
{
	DAT_RETURN status = srq ? fake_refused() : DAT_SUCCESS;

	if (status == DAT_SUCCESS && srq)
		fake.srqs--;
	if (status == DAT_SUCCESS)
		free(srq);
	return status;
}

/* ---- data path ---- */

static DAT_RETURN fake_note(struct fake_post post)
{
	DAT_RETURN status = fake_refused();

	if (status != DAT_SUCCESS)
		return status;
	if (post.count)
		memcpy(post.segments, post.list, post.count * sizeof(post.segments[0]));
	fake.last = post;
	fake.posts++;
	return DAT_SUCCESS;
}

DAT_RETURN ib_post_send(struct ib_qp *qp, unsigned request, uint64_t wr_id,
			const DAT_LMR_TRIPLET *segments, unsigned count,
			const DAT_RMR_TRIPLET *remote)
{
	unsigned flags = request & ((1u << IB_OP_SHIFT) - 1);

	return fake_note((struct fake_post){ .qp = qp, .op = request - flags, .wr_id = wr_id,
					     .flags = flags,
					     .list = segments, .count = count, .remote = remote });
}

DAT_RETURN ib_post_word(struct ib_qp *qp, unsigned request, uint64_t wr_id,
			const DAT_LMR_TRIPLET *segments, unsigned count,
			const DAT_RMR_TRIPLET *remote, uint32_t word)
{
	DAT_RETURN status = ib_post_send(qp, request, wr_id, segments, count, remote);

	if (status == DAT_SUCCESS)
		fake.last.word = word;
	return status;
}

DAT_RETURN ib_post_atomic(struct ib_qp *qp, unsigned request, uint64_t wr_id,
			  const DAT_LMR_TRIPLET *segment, const DAT_RMR_TRIPLET *remote,
			  uint64_t operand, uint64_t swap)
{
	DAT_RETURN status = ib_post_send(qp, request, wr_id, segment, 1, remote);

	if (status == DAT_SUCCESS) {
		fake.last.operand = operand;
		fake.last.swap = swap;
	}
	return status;
}

DAT_RETURN ib_post_bind(struct ib_qp *qp, unsigned flags, uint64_t wr_id,
			const struct ib_bind *bind, uint32_t *key)
{
	DAT_RETURN status = fake_note((struct fake_post){ .qp = qp, .op = IB_OP_BIND,
							  .wr_id = wr_id, .flags = flags,
							  .bind = *bind });

	if (status == DAT_SUCCESS)
		*key = ++bind->mw->key;
	return status;
}

DAT_RETURN ib_post_invalidate(struct ib_qp *qp, unsigned flags, uint64_t wr_id, uint32_t key)
{
	return fake_note((struct fake_post){ .qp = qp, .op = IB_OP_INV, .wr_id = wr_id,
					     .flags = flags, .word = key });
}

DAT_RETURN ib_post_recv(struct ib_qp *qp, uint64_t wr_id, const DAT_LMR_TRIPLET *segments,
			unsigned count)
{
	return fake_note((struct fake_post){ .qp = qp, .wr_id = wr_id, .list = segments,
					     .count = count });
}

DAT_RETURN ib_post_srq_recv(struct ib_srq *srq, uint64_t wr_id, const DAT_LMR_TRIPLET *segments,
			    unsigned count)
{
	return fake_note((struct fake_post){ .srq = srq, .wr_id = wr_id, .list = segments,
					     .count = count });
}

/* ---- connections ---- */

DAT_RETURN ib_conn_connect(struct ib_device *device, struct ib_qp *qp,
			   const struct sockaddr *remote,
			   const struct ib_conn_param *param, void *owner, struct ib_conn **conn)
{
	DAT_RETURN status = fake_refused();

	(void)device;
	(void)qp;
	(void)remote;
	if (status != DAT_SUCCESS)
		return status;
	*conn = fake.conn = fake_new(sizeof(**conn), &fake.conns);
	fake.conn->owner = owner;
	fake.conn->param = *param;
	return DAT_SUCCESS;
}

DAT_RETURN ib_conn_accept(struct ib_conn *conn, struct ib_qp *qp, const struct ib_conn_param *param,
			  void *owner)
{
	(void)qp;
	conn->owner = owner;
	conn->param = *param;
	return fake_refused();
}

DAT_RETURN ib_conn_reject(struct ib_conn *conn, const void *data, uint32_t size)
{
	(void)conn;
	(void)data;
	(void)size;
	return fake_refused();
}

void ib_conn_disconnect(struct ib_conn *conn) { (void)conn; }

void ib_conn_destroy(struct ib_conn *conn)
{
	if (conn)
		fake.conns--;
	free(conn);
}

uint16_t ib_conn_local_port(const struct ib_conn *conn) { return conn ? 4711 : 0; }
uint16_t ib_conn_remote_port(const struct ib_conn *conn) { return conn ? 4712 : 0; }

void ib_conn_depths(const struct ib_conn *conn, uint8_t *responder_resources,
		    uint8_t *initiator_depth)
{
	*responder_resources = conn->param.responder_resources;
	*initiator_depth = conn->param.initiator_depth;
}

DAT_RETURN ib_listen(struct ib_device *device, uint16_t port, void *owner,
		     struct ib_listener **listener)
{
	DAT_RETURN status = fake_refused();

	(void)device;
	if (status != DAT_SUCCESS)
		return status;
	*listener = calloc(1, sizeof(**listener));
	(*listener)->owner = owner;
	(*listener)->port = port;
	return DAT_SUCCESS;
}

void ib_listener_address(const struct ib_listener *listener, struct sockaddr_storage *address)
{
	memset(address, 0, sizeof(*address));
	((struct sockaddr_in *)address)->sin_family = AF_INET;
	((struct sockaddr_in *)address)->sin_port = htons(listener->port);
}

void ib_listener_destroy(struct ib_listener *listener) { free(listener); }

#endif
