/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The connection manager's own open of the device, which identifiers show as `verbs`, and its default
 * protection domain. The device is open while a channel, an identifier or a list of devices needs it. In the
 * drop-in it remains open until the process ends, as rdma_get_devices(3) says: programs keep a context after
 * they destroy the identifier, or free the list, that they got it from. */
#include <errno.h>
#include <stdlib.h>
#include "util/cancel.h"
#include "softverbs/cm/cm.h"
#include "softverbs/object/object.h"
#include "util/log.h"

/* guards all below; held across open and close */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned holders, binders;
static bool keeps_open;
static struct ibv_context *verbs;
static struct ibv_pd *pd;
static const uint32_t *alive;
static uint8_t max_responder, max_initiator;

static _Thread_local int cancel_before;

static void device_lock(void)
{
	int before = cancel_off();

	pthread_mutex_lock(&lock);
	cancel_before = before;
}

static void device_unlock(void)
{
	pthread_mutex_unlock(&lock);
	cancel_restore(cancel_before);
}

static uint8_t device_depth(int limit)
{
	return limit > RDMA_MAX_RESP_RES - 1 ? RDMA_MAX_RESP_RES - 1 : (uint8_t)limit;
}

static int device_open_locked(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_device_attr attr;
	int error;

	if (!list)
		return errno;
	if (!list[0]) {
		ibv_free_device_list(list);
		return ENODEV;
	}
	verbs = ibv_open_device(list[0]);
	error = verbs ? ibv_query_device(verbs, &attr) : errno;
	ibv_free_device_list(list);
	if (error)
		return error;
	max_responder = device_depth(attr.max_qp_rd_atom);
	max_initiator = device_depth(attr.max_qp_init_rd_atom);
	alive = sv_area_alive();
	return 0;
}

/* Fails while the program has objects of its own on the context; then the device stays open for the next
 * holder. */
static void device_close_locked(void)
{
	if (pd && !ibv_dealloc_pd(pd))
		pd = NULL;
	if (pd || !verbs || ibv_close_device(verbs))
		return;
	verbs = NULL;
	alive = NULL;
}

/* Drops what a forked child inherited; it belongs to the parent. */
static void forget_inherited_locked(void)
{
	if (!alive || *alive)
		return;
	verbs = NULL;
	pd = NULL;
	alive = NULL;
	holders = binders = 0;
}

int sv_cm_device_hold(void)
{
	int error = 0;

	device_lock();
	forget_inherited_locked();
	if (!verbs)
		error = device_open_locked();
	if (!error)
		holders++;
	else
		device_close_locked();
	device_unlock();
	return error;
}

void sv_cm_device_release(void)
{
	device_lock();
	if (!--holders && !keeps_open)
		device_close_locked();
	device_unlock();
}

void sv_cm_keep_devices_open(void)
{
	device_lock();
	keeps_open = true;
	device_unlock();
}

int sv_cm_device_bind(struct cm_id *id)
{
	int error = 0;

	if (id->has_device)
		return 0;
	device_lock();
	if (!pd)
		pd = ibv_alloc_pd(verbs);
	if (pd)
		binders++;
	else
		error = errno;
	device_unlock();
	if (error)
		return error;
	id->has_device = true;
	id->id.verbs = verbs;
	id->id.pd = pd;
	id->id.port_num = 1;
	return 0;
}

void sv_cm_device_unbind(struct cm_id *id)
{
	if (!id->has_device)
		return;
	device_lock();
	if (!--binders && !ibv_dealloc_pd(pd))
		pd = NULL;
	device_unlock();
	id->has_device = false;
}

void sv_cm_device_fork_prepare(void)
{
	device_lock();
}

void sv_cm_device_fork_end(void)
{
	device_unlock();
}

uint8_t sv_cm_max_responder(void)
{
	return max_responder;
}

uint8_t sv_cm_max_initiator(void)
{
	return max_initiator;
}

/* The list keeps the device open until it is freed. */
struct ibv_context **rdma_get_devices(int *count)
{
	struct ibv_context **list = calloc(2, sizeof(*list));
	int error = list ? sv_cm_device_hold() : ENOMEM;

	if (error) {
		free(list);
		errno = error;
		return NULL;
	}
	list[0] = verbs;
	if (count)
		*count = 1;
	return list;
}

void rdma_free_devices(struct ibv_context **list)
{
	if (!list)
		return;
	free(list);
	sv_cm_device_release();
}
