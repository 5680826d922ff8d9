/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dat_extension_op: forwards an operation to its object's provider; some operations open or close a provider. */
#include <stdarg.h>
#include <stdlib.h>
#include "dat/common/handle.h"
#include "util/log.h"

/*
 * The size of the ranges of open operations (from DAT_OPEN_EXTENSION_BASE) and close operations (from
 * DAT_CLOSE_EXTENSION_BASE).
 */
#define OP_RANGE 0x1000

/* A handle returned by an open operation: not an IA handle, valid only for the matching close. */
struct ext_open {
	LIST_ENTRY(ext_open) link;
	DAT_HANDLE object;
	struct reg_hold hold;
};

static LIST_HEAD(, ext_open) ext_opens = LIST_HEAD_INITIALIZER(ext_opens); /* registry lock */

static bool op_in_range(DAT_EXTENDED_OP op, int base)
{
	return op >= base && op < base + OP_RANGE;
}

static void ext_open_insert(struct ext_open *opened)
{
	reg_lock();
	LIST_INSERT_HEAD(&ext_opens, opened, link);
	reg_unlock();
}

/* Removes the entry from the list, so that only one close can use it. */
static struct ext_open *ext_open_take(DAT_HANDLE object)
{
	struct ext_open *opened;

	reg_lock();
	LIST_FOREACH(opened, &ext_opens, link)
		if (opened->object == object)
			break;
	if (opened)
		LIST_REMOVE(opened, link);
	reg_unlock();
	return opened;
}

/*
 * The arguments of an open operation: the IA name, a pointer to the handle to return, and arguments specific to the
 * provider. The provider's handler gets the name instead of a handle.
 */
static DAT_RETURN ext_open(DAT_EXTENDED_OP op, va_list args)
{
	CANCEL_OFF_HERE;
	const DAT_NAME_PTR name = va_arg(args, DAT_NAME_PTR);
	struct ext_open *opened;
	DAT_HANDLE *out;
	va_list ahead;
	DAT_RETURN ret;

	if (!name_is_valid(name))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	ret = reg_acquire(name, DAT_VERSION_MAJOR, DAT_VERSION_MINOR, DAT_THREADSAFE,
			  &opened->hold);
	if (ret != DAT_SUCCESS) {
		free(opened);
		return ret;
	}
	va_copy(ahead, args);
	out = va_arg(ahead, DAT_HANDLE *);
	va_end(ahead);
	ret = DAT_ERROR(DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE);
	if (opened->hold.dr->extended_op)
		ret = opened->hold.dr->extended_op((DAT_HANDLE)name, op, args);
	if (ret != DAT_SUCCESS) {
		reg_release(&opened->hold);
		free(opened);
		return ret;
	}
	opened->object = out ? *out : DAT_HANDLE_NULL;
	ext_open_insert(opened);
	return DAT_SUCCESS;
}

static DAT_RETURN ext_close(DAT_HANDLE object, DAT_EXTENDED_OP op, va_list args)
{
	CANCEL_OFF_HERE;
	struct ext_open *opened = ext_open_take(object);
	DAT_RETURN ret;

	if (!opened)
		return bad_handle(DAT_INVALID_HANDLE1);
	ret = opened->hold.dr->extended_op(object, op, args);
	if (ret != DAT_SUCCESS) {
		ext_open_insert(opened);
		return ret;
	}
	reg_release(&opened->hold);
	free(opened);
	return DAT_SUCCESS;
}

static DAT_RETURN ext_object_op(DAT_HANDLE object, DAT_EXTENDED_OP op, va_list args)
{
	const DAT_PROVIDER *provider;

	if (op_in_range(op, DAT_OPEN_EXTENSION_BASE))
		return ext_open(op, args);
	if (!object)
		return bad_handle(DAT_INVALID_HANDLE1);
	if (op_in_range(op, DAT_CLOSE_EXTENSION_BASE))
		return ext_close(object, op, args);
	provider = provider_of(object);
	if (!provider->handle_extendedop_func || !ia_provider_extends(provider))
		return DAT_ERROR(DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE);
	return provider->handle_extendedop_func(object, op, args);
}

static void release_slot(void *ia)
{
	handle_release(ia);
}

/*
 * The slow path: operations on an IA, on an invalid handle or on a provider not yet known to ext_function(), and those
 * that open and close. The provider's waits are cancellation points.
 */
static DAT_RETURN ext_op(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list args)
{
	CANCEL_DEFER_HERE;
	struct ia_slot *ia;
	DAT_HANDLE object = handle_acquire(handle, &ia);
	DAT_RETURN ret = bad_handle(DAT_INVALID_HANDLE1);

	pthread_cleanup_push(release_slot, ia);
	if (object || !handle)
		ret = ext_object_op(object, op, args);
	pthread_cleanup_pop(1);
	return ret;
}

/* The fast path: operations on objects are posts and arms, and need no lock. */
static inline DAT_HANDLE_EXTENDEDOP_FUNC ext_function(DAT_HANDLE handle, DAT_EXTENDED_OP op)
{
	const DAT_PROVIDER *provider = provider_of(handle);

	if (__builtin_expect(ia_provider_is_known(provider) &&
				     !op_in_range(op, DAT_OPEN_EXTENSION_BASE) &&
				     !op_in_range(op, DAT_CLOSE_EXTENSION_BASE),
			     1))
		return provider->handle_extendedop_func;
	return ext_op;
}

DAT_RETURN dat_extension_op(DAT_HANDLE handle, DAT_EXTENDED_OP operation, ...)
{
	DAT_HANDLE_EXTENDEDOP_FUNC function = ext_function(handle, operation);
	DAT_RETURN ret;
	va_list args;

	va_start(args, operation);
	ret = function(handle, operation, args);
	va_end(args);
	return ret;
}

bool ext_none_open_locked(void)
{
	return LIST_EMPTY(&ext_opens);
}

/* Not freed: the fork may have been made inside an open operation. */
void ext_fork_locked(void)
{
	LIST_INIT(&ext_opens);
}
