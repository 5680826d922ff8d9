/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* What the rooms need of each other when the provider is loaded: the pools of their objects, and the calls upward. */
#include "dapl/udapl/base/upward.h"
#include "dapl/udapl/cno/cno.h"
#include "dapl/udapl/cno/pset.h"
#include "dapl/udapl/ep/ud.h"
#include "dapl/udapl/ia/rooms.h"
#include "dapl/udapl/sp/sp.h"

#define AFTER_OBJ sizeof(struct obj)
#define THROUGH(type, member) \
	(offsetof(struct type, member) + sizeof(((struct type *)NULL)->member))

_Static_assert(offsetof(struct dto_pool, lock) == 0 && offsetof(struct dapl_cno, lock) == AFTER_OBJ,
	       "what survives follows the header");

void rooms_open(void)
{
	obj_pool_open(OBJ_IA, sizeof(struct dapl_ia), AFTER_OBJ);
	obj_pool_open(OBJ_PZ, sizeof(struct dapl_pz), AFTER_OBJ);
	obj_pool_open(OBJ_LMR, sizeof(struct dapl_lmr), AFTER_OBJ);
	obj_pool_open(OBJ_RMR, sizeof(struct dapl_rmr), offsetof(struct dapl_rmr, pz));
	obj_pool_open(OBJ_EVD, sizeof(struct dapl_evd), AFTER_OBJ);
	obj_pool_open(OBJ_CNO, sizeof(struct dapl_cno), THROUGH(dapl_cno, lock));
	obj_pool_open(OBJ_EP, sizeof(struct dapl_ep), AFTER_OBJ);
	obj_pool_open(OBJ_SRQ, sizeof(struct dapl_srq), THROUGH(dapl_srq, pool.lock));
	obj_pool_open(OBJ_PSP, sizeof(struct dapl_sp), AFTER_OBJ);
	obj_pool_open(OBJ_RSP, sizeof(struct dapl_sp), AFTER_OBJ);
	obj_pool_open(OBJ_CSP, sizeof(struct dapl_sp), AFTER_OBJ);
	obj_pool_open(OBJ_CR, sizeof(struct dapl_cr), AFTER_OBJ);
	obj_pool_open(OBJ_PSET, sizeof(struct dapl_pset), AFTER_OBJ);
	obj_pool_open(OBJ_UD_PEER, sizeof(struct dapl_ud_peer), AFTER_OBJ);
	upward = (struct upward){
		.ep_dto_failed = ep_dto_failed,
		.ep_dto_flushed = ep_dto_flushed,
		.ep_inline_end = ep_inline_end,
		.ep_flights_land = ep_flights_land,
		.cno_set = evd_set_cno,
		.cno_leave = evd_leave_cno,
		.cno_pause = evd_pause_cno,
		.cno_resume = evd_resume_cno,
		.cno_trigger = evd_trigger,
		.cno_unready = evd_unready,
	};
}
