/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Which streams may share an EVD: the completion flags of its endpoints have to agree. */
#include "dapl/udapl/evd.h"

static enum evd_class class_of(enum evd_stream stream, DAT_COMPLETION_FLAGS flags)
{
	if (flags & DAT_COMPLETION_UNSIGNALLED_FLAG)
		return EVD_UNSIGNALLED;
	/* On the request side the flag says nothing: it is always available per post. */
	if (stream != EVD_STREAM_REQUEST && flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG)
		return EVD_SOLICITED;
	return EVD_THRESHOLD;
}

/*
 * DAT 2.0, dat_ep_create_with_srq, "completion flags": all completion streams alike, and solicited
 * ones alone.
 */
static bool agrees_locked(const struct dapl_evd *evd, enum evd_stream stream, enum evd_class class)
{
	if (stream == EVD_STREAM_OTHER)
		return !evd->dto_streams || evd->class != EVD_SOLICITED;
	if (evd->dto_streams)
		return evd->class == class;
	return class != EVD_SOLICITED ||
	       (!evd->other_streams && !(evd->flags & DAT_EVD_SOFTWARE_FLAG));
}

bool evd_attach(struct dapl_evd *evd, enum evd_stream stream, DAT_COMPLETION_FLAGS flags)
{
	enum evd_class class = class_of(stream, flags);
	bool agrees, changed = false;

	if (!evd)
		return true;
	if (!obj_hold(&evd->obj))
		return false;
	lock_acquire(&evd->lock);
	agrees = agrees_locked(evd, stream, class);
	if (agrees && stream == EVD_STREAM_OTHER) {
		evd->other_streams++;
	} else if (agrees) {
		changed = evd->class != class;
		evd->class = class;
		evd->dto_streams++;
	}
	/* What the CQ is to report for the CNO depends on the class. */
	if (changed)
		evd_rearm_locked(evd);
	lock_release(&evd->lock);
	if (!agrees)
		obj_release(&evd->obj);
	return agrees;
}

/* A reference is gone. The lock is held, and given back. */
static void release(struct dapl_evd *evd)
{
	bool last;

	obj_release(&evd->obj);
	last = evd->zombie && !evd->dto_streams && !evd->other_streams && !evd->sets;
	lock_release(&evd->lock);
	if (last)
		obj_free(&evd->obj, OBJ_EVD);
}

void evd_detach(struct dapl_evd *evd, enum evd_stream stream, DAT_COMPLETION_FLAGS flags)
{
	(void)flags;
	if (!evd)
		return;
	lock_acquire(&evd->lock);
	if (stream == EVD_STREAM_OTHER)
		evd->other_streams--;
	else if (!--evd->dto_streams)
		evd->class = EVD_THRESHOLD;
	release(evd);
}

bool evd_join_set(struct dapl_evd *evd)
{
	if (!obj_hold(&evd->obj))
		return false;
	lock_acquire(&evd->lock);
	evd->sets++;
	lock_release(&evd->lock);
	return true;
}

void evd_leave_set(struct dapl_evd *evd)
{
	lock_acquire(&evd->lock);
	evd->sets--;
	release(evd);
}
