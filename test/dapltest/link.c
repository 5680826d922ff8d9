/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A link: one EP with EVDs of its own, and the requests posted on it. */

#include <string.h>

#include "tool.h"

static bool evd_make(DAT_IA_HANDLE ia, int length, int streams, DAT_EVD_HANDLE *evd)
{
	return dat_ok(dat_evd_create(ia, length, DAT_HANDLE_NULL, (DAT_EVD_FLAGS)streams, evd),
		      "dat_evd_create");
}

bool link_create(struct link *l, DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, const struct link_shape *shape)
{
	memset(l, 0, sizeof(*l));
	l->ia = ia;
	l->poll = shape->poll;
	return evd_make(ia, shape->recv_events, DAT_EVD_DTO_FLAG, &l->recv_evd) &&
	       evd_make(ia, shape->request_events, DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG,
			&l->request_evd) &&
	       (!shape->passive ||
		evd_make(ia, shape->other_events, DAT_EVD_CR_FLAG, &l->cr_evd)) &&
	       evd_make(ia, shape->other_events, DAT_EVD_CONNECTION_FLAG, &l->conn_evd) &&
	       dat_ok(dat_ep_create(ia, pz, l->recv_evd, l->request_evd, l->conn_evd, shape->attr,
				    &l->ep),
		      "dat_ep_create");
}

static bool evd_discard(DAT_EVD_HANDLE *evd)
{
	bool ok = !*evd || dat_ok(dat_evd_free(*evd), "dat_evd_free");

	*evd = DAT_HANDLE_NULL;
	return ok;
}

/* Accepts a link that link_create() left half made. */
bool link_free(struct link *l)
{
	bool ok = link_unlisten(l);
	int taken;

	if (l->ep) {
		ok &= evd_drain(l->recv_evd, &taken);
		ok &= dat_ok(dat_ep_free(l->ep), "dat_ep_free");
		l->ep = DAT_HANDLE_NULL;
	}
	ok &= evd_discard(&l->conn_evd);
	ok &= evd_discard(&l->cr_evd);
	ok &= evd_discard(&l->request_evd);
	ok &= evd_discard(&l->recv_evd);
	return ok;
}

bool link_recv(struct link *l, DAT_COUNT segments, DAT_LMR_TRIPLET *iov, uint64_t cookie)
{
	DAT_DTO_COOKIE c = { .as_64 = cookie };

	return dat_ok(dat_ep_post_recv(l->ep, segments, iov, c, DAT_COMPLETION_DEFAULT_FLAG),
		      "dat_ep_post_recv");
}

bool link_send(struct link *l, DAT_COUNT segments, DAT_LMR_TRIPLET *iov, uint64_t cookie)
{
	DAT_DTO_COOKIE c = { .as_64 = cookie };

	return dat_ok(dat_ep_post_send(l->ep, segments, iov, c, DAT_COMPLETION_DEFAULT_FLAG),
		      "dat_ep_post_send");
}

bool link_sent(struct link *l, uint32_t length, uint64_t cookie, const char *what)
{
	struct dto want = { .ep = l->ep, .cookie = cookie, .length = length, .what = what };

	return dto_await(l->request_evd, l->poll, &want);
}

bool link_received(struct link *l, uint32_t length, uint64_t cookie, const char *what)
{
	struct dto want = { .ep = l->ep, .cookie = cookie, .length = length, .what = what };

	return dto_await(l->recv_evd, l->poll, &want);
}
