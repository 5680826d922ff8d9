/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The streams of an endpoint on its EVDs: attached, detached and moved, all or none. */
#include "dapl/udapl/ep/ep.h"

pthread_mutex_t ep_streams_lock = PTHREAD_MUTEX_INITIALIZER;

struct stream {
	struct dapl_evd *evd;
	enum evd_stream kind;
	DAT_COMPLETION_FLAGS flags;
};

static struct stream recv_of(const struct dapl_ep *ep, const struct ep_config *config)
{
	return (struct stream){ config->recv_evd, ep_recv_stream(ep),
				config->attr.recv_completion_flags };
}

static struct stream request_of(const struct ep_config *config)
{
	return (struct stream){ config->request_evd, EVD_STREAM_REQUEST,
				ep_request_class(config->attr.request_completion_flags) };
}

static struct stream connect_of(const struct ep_config *config)
{
	return (struct stream){ config->connect_evd, EVD_STREAM_OTHER,
				DAT_COMPLETION_DEFAULT_FLAG };
}

static bool join(const struct stream *stream)
{
	return evd_attach(stream->evd, stream->kind, stream->flags);
}

static void leave(const struct stream *stream)
{
	evd_detach(stream->evd, stream->kind, stream->flags);
}

/* Attaches the streams in order; if one cannot be attached, those before it are detached. */
static bool join_all(const struct stream *streams, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (join(&streams[i]))
			continue;
		while (i--)
			leave(&streams[i]);
		return false;
	}
	return true;
}

bool ep_streams_join_locked(const struct dapl_ep *ep, const struct ep_config *config)
{
	const struct stream streams[] = { recv_of(ep, config), request_of(config),
					  connect_of(config) };

	return join_all(streams, 3);
}

void ep_streams_leave(const struct dapl_ep *ep, const struct ep_config *config)
{
	const struct stream streams[] = { connect_of(config), request_of(config),
					  recv_of(ep, config) };
	size_t i;

	for (i = 0; i < 3; i++)
		leave(&streams[i]);
}

static bool same(const struct stream *a, const struct stream *b)
{
	return a->evd == b->evd && a->flags == b->flags;
}

/*
 * Unchanged streams stay attached. All others are detached before any is attached, because their
 * flags may change together. The caller holds the EVDs that are left during the move.
 */
bool ep_streams_move_locked(const struct dapl_ep *ep, const struct ep_config *from,
			    const struct ep_config *to)
{
	const struct stream before[] = { recv_of(ep, from), request_of(from), connect_of(from) };
	const struct stream after[] = { recv_of(ep, to), request_of(to), connect_of(to) };
	struct stream leaving[3], joining[3];
	size_t i, count = 0;

	for (i = 0; i < 3; i++) {
		if (same(&before[i], &after[i]))
			continue;
		leaving[count] = before[i];
		joining[count++] = after[i];
	}
	for (i = 0; i < count; i++)
		leave(&leaving[i]);
	if (join_all(joining, count))
		return true;
	for (i = 0; i < count; i++)
		join(&leaving[i]);
	return false;
}
