/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A device that the test controls, in place of dapl/openib (ib.h): the test decides what completes,
 * what is refused and what the device reports. A suite's one file includes it; its definitions
 * precede those of the library at link time.
 */
#ifndef FAKE_IB_H
#define FAKE_IB_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include "dapl/udapl/ep/ep.h"
#include "dapl/udapl/base/provider.h"
#include "test/unit/ep_util.h"
#include "util/clock.h"

#define FAKE_COMPLETIONS 4096
#define FAKE_MAX_WR	 64
#define FAKE_MAX_SGE	 4
#define FAKE_MAX_CQE	 1000
#define FAKE_MAX_MESSAGE (1u << 30)
#define FAKE_INLINE	 32
#define FAKE_LKEY	 0x1000u
#define FAKE_RKEY	 0x2000u
#define FAKE_PEER_QP	 0x4711u
#define FAKE_MW_KEY	 0x3000u /* first key; each bind takes the next one */

struct ib_device {
	const char *params;
	unsigned opens;
	struct ib_attr attr;
	struct sockaddr_storage address;
	struct deadlines timers;
	struct ib_alarm *alarms;
};

struct ib_pd {
	int unused;
};
struct ib_mr {
	int unused;
};
struct ib_ah {
	int unused;
};
struct ib_mw {
	uint32_t key;
	bool type2;
};
struct ib_conn {
	void *owner;
	struct ib_conn_param param;
};
struct ib_listener {
	void *owner;
	uint16_t port;
};
struct ib_srq {
	void *owner;
	uint32_t max_wr, limit;
	unsigned arms;
};

struct ib_cq {
	struct ib_cq_store store;
	void *owner;
	int entries, fd;
	struct ib_completion queue[FAKE_COMPLETIONS];
	unsigned head, tail;
	bool armed, solicited_only, failing;
	unsigned arms;
	atomic_uint collects; /* number of reads of the completion channel */
	bool watched;
	_Atomic uint32_t moderation;
	int sleep; /* readable when the thread that sleeps on the CQ is woken */
	bool blocked, fired;
	unsigned blocks; /* times that a thread began to sleep on it */
};

struct ib_qp {
	struct ib_qp_posts posts;
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
	pthread_mutex_t lock; /* protects the CQs */
	struct ib_upcalls upcalls;
	struct ib_device devices[2];
	struct fake_post last;
	unsigned posts;
	unsigned inline_faults; /* inline segments outside this process's memory */
	uint32_t privileges;
	bool zero_based;
	uint32_t next_qp;
	struct ib_qp *qp;				    /* the last one created */
	struct ib_conn *conn;				    /* the last one started */
	unsigned pds, mrs, mws, cqs, qps, srqs, conns, ahs; /* numbers of live objects */
	bool datagrams;				 /* service of devices that are opened later */
	void (*alter)(struct ib_device *device); /* changes the attributes of such devices */
	void (*binding)(void);	 /* called within ib_post_bind, once the device has the bind */
	void (*accepting)(void); /* called within ib_conn_accept, before the QP is up */
	bool (*cm_poll)(void);	 /* called by ib_cm_poll, which returns its result */
	uint64_t kernel[IB_KERNEL_MOST]; /* values of the kernel's counters */
	DAT_RMR_TRIPLET remote;		 /* of the last post by work request */
	/* the status that the next call that can fail returns, once, in any thread */
	_Atomic DAT_RETURN refuse;
	void (*on_arm)(struct ib_cq *cq); /* called once, before the next arming takes effect */
	bool blocks;			  /* a thread may sleep on a CQ without its channel */
} fake = { .lock = PTHREAD_MUTEX_INITIALIZER, .next_qp = 0x11 };

static DAT_RETURN fake_refused(void)
{
	return atomic_exchange_explicit(&fake.refuse, DAT_SUCCESS, memory_order_relaxed);
}

static void *fake_new(size_t size, unsigned *alive)
{
	++*alive;
	return calloc(1, size);
}

/* The functions of the device, one file for each kind of object. */
#include "test/unit/fake_ib_device.h"
#include "test/unit/fake_ib_memory.h"
#include "test/unit/fake_ib_cq.h"
#include "test/unit/fake_ib_post.h"
#include "test/unit/fake_ib_qp.h"
#include "test/unit/fake_ib_srq.h"
#include "test/unit/fake_ib_conn.h"

#endif
