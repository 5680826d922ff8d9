/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Poll sets. */
#include <stdlib.h>
#include <string.h>
#include "dapl/udapl/evd/evd.h"
#include "dapl/udapl/cno/cno.h"
#include "dapl/udapl/cno/pset.h"
#include "util/cancel.h"

#define ROOM_FIRST 16

DAT_RETURN ext_pset_create(DAT_HANDLE ia, va_list args)
{
	CANCEL_OFF_HERE;
	DAT_HANDLE *out = va_arg(args, DAT_HANDLE *);
	struct dapl_pset *pset;

	if (!out)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	pset = obj_new(ia, OBJ_PSET);
	if (!pset)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	pthread_mutex_init(&pset->lock, NULL);
	obj_publish(&pset->obj, OBJ_PSET);
	*out = pset;
	return DAT_SUCCESS;
}

static uint32_t pset_find_locked(const struct dapl_pset *pset, const struct dapl_evd *evd)
{
	uint32_t i = 0;

	while (i < pset->count && pset->evds[i] != evd)
		i++;
	return i;
}

static bool pset_grow_locked(struct dapl_pset *pset)
{
	uint32_t room = pset->room ? 2 * pset->room : ROOM_FIRST;
	struct dapl_evd **evds;

	if (pset->count < pset->room)
		return true;
	evds = realloc(pset->evds, room * sizeof(struct dapl_evd *));
	if (!evds)
		return false;
	pset->evds = evds;
	pset->room = room;
	return true;
}

static DAT_RETURN pset_add_locked(struct dapl_pset *pset, struct dapl_evd *evd)
{
	if (pset_find_locked(pset, evd) < pset->count)
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
	if (!pset_grow_locked(pset))
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	if (!evd_join_set(evd))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST);
	pset->evds[pset->count++] = evd;
	return DAT_SUCCESS;
}

DAT_RETURN ext_pset_add(DAT_HANDLE handle, va_list args)
{
	CANCEL_OFF_HERE;
	DAT_EVD_HANDLE evd = va_arg(args, DAT_EVD_HANDLE);
	struct dapl_pset *pset = handle;
	DAT_RETURN status;

	if (!obj_is_ours(evd) || !evd_from(evd))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST);
	pthread_mutex_lock(&pset->lock);
	status = pset_add_locked(pset, evd);
	pthread_mutex_unlock(&pset->lock);
	return status;
}

DAT_RETURN ext_pset_del(DAT_HANDLE handle, va_list args)
{
	CANCEL_OFF_HERE;
	struct dapl_evd *evd = va_arg(args, DAT_EVD_HANDLE);
	struct dapl_pset *pset = handle;
	uint32_t at;
	bool found;

	pthread_mutex_lock(&pset->lock);
	at = pset_find_locked(pset, evd);
	found = at < pset->count;
	if (found) {
		pset->count--;
		memmove(&pset->evds[at], &pset->evds[at + 1],
			(pset->count - at) * sizeof(pset->evds[0]));
		pset->next -= at < pset->next;
	}
	pthread_mutex_unlock(&pset->lock);
	if (!found)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	evd_leave_set(evd);
	return DAT_SUCCESS;
}

/* Each EVD once, beginning behind the last one that a poll returned. */
static DAT_COUNT pset_poll_locked(DAT_HANDLE handle, DAT_COUNT max, DAT_EVD_HANDLE *evds)
{
	struct dapl_pset *pset = handle;
	uint32_t first = pset->next < pset->count ? pset->next : 0, i, at;
	DAT_COUNT count = 0;

	for (i = 0; i < pset->count && count < max; i++) {
		at = first + i < pset->count ? first + i : first + i - pset->count;
		if (!evd_is_pending(pset->evds[at]))
			continue;
		evds[count++] = pset->evds[at];
		pset->next = at + 1;
	}
	return count;
}

DAT_RETURN ext_pset_poll(DAT_HANDLE handle, va_list args)
{
	return poll_run(args, &((struct dapl_pset *)handle)->lock, pset_poll_locked, handle);
}

void pset_destroy(struct dapl_pset *pset)
{
	uint32_t i;

	obj_hide(&pset->obj, OBJ_PSET);
	for (i = 0; i < pset->count; i++)
		evd_leave_set(pset->evds[i]);
	free(pset->evds);
	pthread_mutex_destroy(&pset->lock);
	obj_free(&pset->obj, OBJ_PSET);
}

DAT_RETURN ext_pset_free(DAT_HANDLE handle, va_list args)
{
	CANCEL_OFF_HERE;
	struct dapl_pset *pset = handle;
	bool empty;

	(void)args;
	pthread_mutex_lock(&pset->lock);
	empty = !pset->count;
	pthread_mutex_unlock(&pset->lock);
	if (!empty)
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
	pset_destroy(pset);
	return DAT_SUCCESS;
}
