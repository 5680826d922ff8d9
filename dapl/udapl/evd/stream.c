/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The streams of an EVD. Endpoints share an EVD only if their completion flags agree. */
#include "dapl/udapl/evd/evd.h"

static bool is_unsignalled(DAT_COMPLETION_FLAGS flags)
{
	return flags & DAT_COMPLETION_UNSIGNALLED_FLAG;
}

/* On the request side the flag has no effect on the stream, because it is valid in each post. */
static bool is_solicited(enum evd_stream stream, DAT_COMPLETION_FLAGS flags)
{
	return stream != EVD_STREAM_REQUEST && flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG;
}

static bool is_srq_threshold(enum evd_stream stream, DAT_COMPLETION_FLAGS flags)
{
	return stream == EVD_STREAM_SRQ_RECV && flags & DAT_COMPLETION_EVD_THRESHOLD_FLAG;
}

/*
 * DAT 2.0, dat_ep_create_with_srq, "completion flags": a solicited receive stream shares the EVD with no other
 * completion stream, and an SRQ receive stream with EVD_THRESHOLD with no UNSIGNALLED stream. Otherwise UNSIGNALLED
 * streams may share an EVD: consumers with only their requests UNSIGNALLED do so.
 */
static bool agrees_locked(const struct dapl_evd *evd, enum evd_stream stream,
			  DAT_COMPLETION_FLAGS flags)
{
	if (stream == EVD_STREAM_OTHER)
		return !(evd->arming & EVD_SOLICITED);
	if (evd->dto_streams && !!(evd->arming & EVD_SOLICITED) != is_solicited(stream, flags))
		return false;
	if (is_solicited(stream, flags))
		return !evd->other_streams && !(evd->flags & DAT_EVD_SOFTWARE_FLAG);
	if (is_srq_threshold(stream, flags))
		return !evd->unsignalled_streams;
	return !is_unsignalled(flags) || !evd->srq_threshold_streams;
}

static uint32_t class_with_locked(const struct dapl_evd *evd, bool solicited)
{
	if (solicited)
		return EVD_SOLICITED;
	if (!evd->unsignalled_streams)
		return 0;
	return evd->unsignalled_streams == evd->dto_streams ? EVD_UNSIGNALLED : EVD_MIXED;
}

/* `more` is 1 for a completion stream that is attached, -1 for one that is detached. */
static void count_locked(struct dapl_evd *evd, enum evd_stream stream, DAT_COMPLETION_FLAGS flags,
			 int more)
{
	bool solicited = is_solicited(stream, flags);

	evd->dto_streams += (unsigned)more;
	if (is_unsignalled(flags))
		evd->unsignalled_streams += (unsigned)more;
	if (is_srq_threshold(stream, flags))
		evd->srq_threshold_streams += (unsigned)more;
	evd->arming &= ~EVD_CLASS;
	evd->arming |= class_with_locked(evd, solicited && evd->dto_streams);
}

bool evd_attach(struct dapl_evd *evd, enum evd_stream stream, DAT_COMPLETION_FLAGS flags)
{
	uint32_t before;
	bool agrees;

	if (!evd)
		return true;
	if (!obj_hold(&evd->obj))
		return false;
	lock_acquire(&evd->lock);
	before = evd->arming & EVD_CLASS;
	agrees = agrees_locked(evd, stream, flags);
	if (agrees && stream == EVD_STREAM_OTHER)
		evd->other_streams++;
	else if (agrees)
		count_locked(evd, stream, flags, 1);
	/* The class decides which completions the CQ is armed for. */
	if ((evd->arming & EVD_CLASS) != before)
		evd_rearm_locked(evd);
	lock_release(&evd->lock);
	if (!agrees)
		obj_release(&evd->obj);
	return agrees;
}

bool evd_is_referred_locked(const struct dapl_evd *evd)
{
	return evd->dto_streams || evd->other_streams || evd->sets || evd->pins;
}

/* Called after a stream was detached. The caller holds the lock, and release() releases it. */
static void release(struct dapl_evd *evd)
{
	bool last = evd->zombie && !evd_is_referred_locked(evd);

	lock_release(&evd->lock);
	if (last)
		obj_free(&evd->obj, OBJ_EVD);
}

void evd_detach(struct dapl_evd *evd, enum evd_stream stream, DAT_COMPLETION_FLAGS flags)
{
	if (!evd)
		return;
	lock_acquire(&evd->lock);
	if (stream == EVD_STREAM_OTHER)
		evd->other_streams--;
	else
		count_locked(evd, stream, flags, -1);
	obj_release(&evd->obj);
	release(evd);
}

bool evd_join_set(struct dapl_evd *evd)
{
	if (!obj_hold(&evd->obj))
		return false;
	evd_share_cm(evd);
	lock_acquire(&evd->lock);
	evd->sets++;
	lock_release(&evd->lock);
	return true;
}

void evd_leave_set(struct dapl_evd *evd)
{
	lock_acquire(&evd->lock);
	evd->sets--;
	obj_release(&evd->obj);
	release(evd);
}

void evd_pin(struct dapl_evd *evd)
{
	lock_acquire(&evd->lock);
	evd->pins++;
	lock_release(&evd->lock);
}

void evd_unpin(struct dapl_evd *evd)
{
	lock_acquire(&evd->lock);
	evd->pins--;
	release(evd);
}
