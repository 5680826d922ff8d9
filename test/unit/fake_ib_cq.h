/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Completion queues of the device of fake_ib.h; the test makes the completions. */
#ifndef FAKE_IB_CQ_H
#define FAKE_IB_CQ_H

#include "test/unit/fake_ib.h"

/* Returns at most four completions, whatever `count` is. */
static int fake_poll(struct ibv_cq *verbs, int count, struct ibv_wc *wc)
{
	struct ib_completion *completions = (struct ib_completion *)wc;
	struct ib_cq *cq = (struct ib_cq *)verbs;
	int n = 0;

	pthread_mutex_lock(&fake.lock);
	while (!cq->failing && cq->head != cq->tail && n < 4 && n < count)
		completions[n++] = cq->queue[cq->head++ % FAKE_COMPLETIONS];
	pthread_mutex_unlock(&fake.lock);
	return cq->failing ? -1 : n;
}

/* A refused request for notification stays refused until ib_cq_arm has reported it. */
static int fake_notify(struct ibv_cq *verbs, int solicited_only)
{
	struct ib_cq *cq = (struct ib_cq *)verbs;
	void (*on_arm)(struct ib_cq * cq) = fake.on_arm;

	if (atomic_load_explicit(&fake.refuse, memory_order_relaxed) != DAT_SUCCESS)
		return EIO;
	fake.on_arm = NULL;
	if (on_arm)
		on_arm(cq);
	pthread_mutex_lock(&fake.lock);
	cq->armed = true;
	cq->solicited_only = solicited_only;
	cq->arms++;
	pthread_mutex_unlock(&fake.lock);
	return 0;
}

/* The fake device's completions have DAT's statuses already. */
void ib_completion_translate(struct ib_completion *completion, bool read)
{
	(void)completion;
	(void)read;
}

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
	new->sleep = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	new->store.poll = fake_poll;
	new->store.notify = fake_notify;
	new->store.cq = (struct ibv_cq *)new;
	*cq = new;
	return DAT_SUCCESS;
}

DAT_RETURN ib_cq_destroy(struct ib_cq *cq)
{
	DAT_RETURN status = cq ? fake_refused() : DAT_SUCCESS;

	if (status != DAT_SUCCESS || !cq)
		return status;
	close(cq->fd);
	close(cq->sleep);
	free(cq);
	fake.cqs--;
	return DAT_SUCCESS;
}

void ib_cq_put_flushed(struct ib_cq *cq, uint64_t wr_id, uint32_t qp_num)
{
	(void)cq;
	(void)wr_id;
	(void)qp_num;
	CU_FAIL("the fake device returns all");
}

DAT_RETURN ib_cq_resize(struct ib_cq *cq, int entries)
{
	DAT_RETURN status = fake_refused();

	if (status == DAT_SUCCESS)
		cq->entries = entries;
	return status;
}

void ib_cq_moderate(struct ib_cq *cq, uint32_t count)
{
	cq->moderation = count;
}

DAT_RETURN ib_cq_register(struct ib_cq *cq)
{
	DAT_RETURN status = fake_refused();

	if (status == DAT_SUCCESS) {
		CU_ASSERT_FALSE(cq->watched);
		cq->watched = true;
	}
	return status;
}

void ib_cq_unregister(struct ib_cq *cq)
{
	cq->watched = false;
}

int ib_cq_entries(const struct ib_cq *cq)
{
	return cq->entries;
}

DAT_RETURN ib_cq_arm(struct ib_cq *cq, bool solicited_only)
{
	return fake_notify((struct ibv_cq *)cq, solicited_only) ? fake_refused() : DAT_SUCCESS;
}

int ib_cq_fd(const struct ib_cq *cq)
{
	return cq->fd;
}

bool ib_cq_collect(struct ib_cq *cq)
{
	uint64_t n;

	atomic_fetch_add(&cq->collects, 1);
	return read(cq->fd, &n, sizeof(n)) == sizeof(n);
}

/* ---- a thread that sleeps on the CQ, with `fake.blocks` ---- */

bool ib_cq_block_begin(struct ib_cq *cq)
{
	bool begins;

	pthread_mutex_lock(&fake.lock);
	begins = fake.blocks && cq->armed;
	cq->blocked = begins;
	cq->blocks += begins;
	pthread_mutex_unlock(&fake.lock);
	return begins;
}

int ib_cq_block(struct ib_cq *cq, const struct timespec *timeout)
{
	/* not on the stack: the address sanitizer does not see a cancellation leave this function */
	static _Thread_local struct pollfd fd;

	fd = (struct pollfd){ .fd = cq->sleep, .events = POLLIN };
	return ppoll(&fd, 1, timeout, NULL) < 0 ? errno : 0;
}

void ib_cq_block_interrupt(struct ib_cq *cq)
{
	uint64_t one = 1;

	CU_ASSERT_EQUAL(write(cq->sleep, &one, sizeof(one)), sizeof(one));
}

bool ib_cq_block_end(struct ib_cq *cq)
{
	uint64_t n;
	bool fired;

	pthread_mutex_lock(&fake.lock);
	fired = cq->fired;
	cq->blocked = cq->fired = false;
	pthread_mutex_unlock(&fake.lock);
	if (read(cq->sleep, &n, sizeof(n)) < 0)
		CU_ASSERT_EQUAL(errno, EAGAIN);
	return fired;
}

/* ---- completions ---- */

/* Does the event thread's work if the CQ has fired. */
static inline bool fake_fire(struct ib_cq *cq)
{
	if (!ib_cq_collect(cq))
		return false;
	fake.upcalls.completion(cq->owner);
	return true;
}

/*
 * fake_publish and fake_fire_if_armed are the two steps of a completion; any time may pass between
 * them.
 */
static inline void fake_publish(struct ib_cq *cq, const struct ib_completion *completion)
{
	pthread_mutex_lock(&fake.lock);
	cq->queue[cq->tail++ % FAKE_COMPLETIONS] = *completion;
	pthread_mutex_unlock(&fake.lock);
}

static inline void fake_fire_if_armed(struct ib_cq *cq, bool solicited)
{
	uint64_t one = 1;
	bool fire;
	int fd;

	pthread_mutex_lock(&fake.lock);
	fire = cq->armed && (!cq->solicited_only || solicited);
	fd = cq->blocked ? cq->sleep : cq->fd;
	if (fire) {
		cq->armed = false;
		cq->fired = cq->blocked;
	}
	pthread_mutex_unlock(&fake.lock);
	if (fire)
		CU_ASSERT_EQUAL(write(fd, &one, sizeof(one)), sizeof(one));
}

static inline void fake_complete(struct ib_cq *cq, const struct ib_completion *completion,
				 bool solicited)
{
	fake_publish(cq, completion);
	fake_fire_if_armed(cq, solicited || completion->status);
}

#endif
