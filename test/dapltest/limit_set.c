/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The objects on which a limit test builds. */

#include <stdlib.h>
#include <string.h>

#include "limit.h"

enum { EVENTS = 10, EVENTS_DTO = 1024 };

/* A provider may lack some kinds of objects; tests of other kinds continue. */
bool limit_is_missing(DAT_RETURN ret)
{
	return dat_is(ret, DAT_NOT_IMPLEMENTED) || dat_is(ret, DAT_MODEL_NOT_SUPPORTED);
}

DAT_RETURN limit_cno_make(struct limit_set *set, DAT_CNO_HANDLE *cno)
{
	return dat_cno_create(set->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, cno);
}

DAT_RETURN limit_ep_make(struct limit_run *run, struct limit_set *set, DAT_EP_HANDLE *ep)
{
	return dat_ep_create(set->ia, set->pz, set->evd, set->evd, run->conn_evd, NULL, ep);
}

static bool cno_try(struct limit_set *set)
{
	DAT_RETURN ret = limit_cno_make(set, &set->cno);

	if (!limit_is_missing(ret))
		return dat_ok(ret, "dat_cno_create");
	set->cno = DAT_HANDLE_NULL;
	say("LimitTest: dat_cno_create unimplemented");
	return true;
}

static bool set_create(struct limit_run *run, struct limit_set *set, enum limit_depth depth)
{
	static const int streams = DAT_EVD_DTO_FLAG | DAT_EVD_CR_FLAG | DAT_EVD_RMR_BIND_FLAG;
	DAT_NAME_PTR name = (DAT_NAME_PTR)(uintptr_t)run->opt->device;

	if (depth >= DEPTH_IA &&
	    !dat_ok(dat_ia_open(name, EVENTS, &set->async_evd, &set->ia), "dat_ia_open"))
		return false;
	if (depth >= DEPTH_PZ && !dat_ok(dat_pz_create(set->ia, &set->pz), "dat_pz_create"))
		return false;
	if (depth >= DEPTH_CNO && !cno_try(set))
		return false;
	if (depth >= DEPTH_EVD && !run->conn_evd &&
	    !dat_ok(dat_evd_create(set->ia, EVENTS, set->cno, DAT_EVD_CONNECTION_FLAG,
				   &run->conn_evd),
		    "dat_evd_create"))
		return false;
	if (depth >= DEPTH_EVD && !dat_ok(dat_evd_create(set->ia, EVENTS_DTO, set->cno,
							 (DAT_EVD_FLAGS)streams, &set->evd),
					  "dat_evd_create"))
		return false;
	return depth < DEPTH_EP || (dat_ok(limit_ep_make(run, set, &set->ep), "dat_ep_create") &&
				    region_create(&set->buffer, set->ia, set->pz, LIMIT_BUFFER));
}

bool limit_sets_create(struct limit_run *run, enum limit_depth depth)
{
	run->sets = calloc((size_t)run->width, sizeof(*run->sets));
	if (!run->sets)
		return false;
	for (int i = 0; i < run->width; i++)
		if (!set_create(run, &run->sets[i], depth))
			return false;
	return true;
}

static bool ia_close(DAT_IA_HANDLE ia)
{
	if (dat_ok(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), "dat_ia_close"))
		return true;
	dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
	return false;
}

/* The EPs of all sets use the connection EVD of the first set, so they are freed before it. */
bool limit_sets_free(struct limit_run *run)
{
	bool ok = true;

	for (int i = 0; run->sets && i < run->width; i++) {
		ok &= region_free(&run->sets[i].buffer);
		if (run->sets[i].ep)
			ok &= dat_ok(dat_ep_free(run->sets[i].ep), "dat_ep_free");
	}
	if (run->conn_evd)
		ok &= dat_ok(dat_evd_free(run->conn_evd), "dat_evd_free");
	for (int i = 0; run->sets && i < run->width; i++) {
		struct limit_set *set = &run->sets[i];

		if (set->evd)
			ok &= dat_ok(dat_evd_free(set->evd), "dat_evd_free");
		if (set->cno)
			ok &= dat_ok(dat_cno_free(set->cno), "dat_cno_free");
		if (set->pz)
			ok &= dat_ok(dat_pz_free(set->pz), "dat_pz_free");
		if (set->ia)
			ok &= ia_close(set->ia);
	}
	free(run->sets);
	run->sets = NULL;
	run->conn_evd = DAT_HANDLE_NULL;
	return ok;
}
