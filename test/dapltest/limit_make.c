/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* How one object of each kind is made and freed. */

#include "limit.h"

static DAT_RETURN ia_make(struct limit_run *run, struct limit_set *set, struct limit_made *made)
{
	DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;

	(void)set;
	return dat_ia_open((DAT_NAME_PTR)(uintptr_t)run->opt->device, 10, &async_evd,
			   &made->handle);
}

static DAT_RETURN ia_unmake(struct limit_made *made)
{
	return dat_ia_close(made->handle, DAT_CLOSE_GRACEFUL_FLAG);
}

static DAT_RETURN pz_make(struct limit_run *run, struct limit_set *set, struct limit_made *made)
{
	(void)run;
	return dat_pz_create(set->ia, &made->handle);
}

static DAT_RETURN pz_unmake(struct limit_made *made)
{
	return dat_pz_free(made->handle);
}

static DAT_RETURN cno_make(struct limit_run *run, struct limit_set *set, struct limit_made *made)
{
	(void)run;
	return limit_cno_make(set, &made->handle);
}

static DAT_RETURN cno_unmake(struct limit_made *made)
{
	return dat_cno_free(made->handle);
}

static DAT_RETURN evd_make(struct limit_run *run, struct limit_set *set, struct limit_made *made)
{
	static const int streams = DAT_EVD_DTO_FLAG | DAT_EVD_CR_FLAG | DAT_EVD_RMR_BIND_FLAG;

	(void)run;
	return dat_evd_create(set->ia, 10, set->cno, (DAT_EVD_FLAGS)streams, &made->handle);
}

static DAT_RETURN evd_unmake(struct limit_made *made)
{
	return dat_evd_free(made->handle);
}

static DAT_RETURN ep_make(struct limit_run *run, struct limit_set *set, struct limit_made *made)
{
	return limit_ep_make(run, set, &made->handle);
}

static DAT_RETURN ep_unmake(struct limit_made *made)
{
	return dat_ep_free(made->handle);
}

static DAT_RETURN rsp_make(struct limit_run *run, struct limit_set *set, struct limit_made *made)
{
	DAT_RETURN ret = limit_ep_make(run, set, &made->ep);

	if (ret != DAT_SUCCESS)
		return ret;
	ret = dat_rsp_create(set->ia, run->next_qual++, made->ep, set->evd, &made->handle);
	if (ret != DAT_SUCCESS)
		dat_ep_free(made->ep);
	return ret;
}

static DAT_RETURN rsp_unmake(struct limit_made *made)
{
	DAT_RETURN ret = dat_rsp_free(made->handle), second = dat_ep_free(made->ep);

	return ret != DAT_SUCCESS ? ret : second;
}

static DAT_RETURN psp_make(struct limit_run *run, struct limit_set *set, struct limit_made *made)
{
	return dat_psp_create(set->ia, run->next_qual++, set->evd, DAT_PSP_CONSUMER_FLAG,
			      &made->handle);
}

static DAT_RETURN psp_unmake(struct limit_made *made)
{
	return dat_psp_free(made->handle);
}

static DAT_RETURN lmr_make(struct limit_run *run, struct limit_set *set, struct limit_made *made)
{
	DAT_REGION_DESCRIPTION where = { .for_va = set->buffer.base };
	DAT_LMR_CONTEXT lkey;
	DAT_VLEN length;
	DAT_VADDR address;

	(void)run;
	return dat_lmr_create(set->ia, DAT_MEM_TYPE_VIRTUAL, where, LIMIT_BUFFER, set->pz,
			      DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &made->handle, &lkey, NULL,
			      &length, &address);
}

static DAT_RETURN lmr_unmake(struct limit_made *made)
{
	return dat_lmr_free(made->handle);
}

static DAT_RETURN recv_make(struct limit_run *run, struct limit_set *set, struct limit_made *made)
{
	DAT_LMR_TRIPLET iov = region_part(&set->buffer, 0, LIMIT_BUFFER);
	DAT_DTO_COOKIE cookie = { .as_64 = 0 };

	(void)run;
	made->handle = set->ep;
	return dat_ep_post_recv(set->ep, 1, &iov, cookie, DAT_COMPLETION_DEFAULT_FLAG);
}

/* A receive cannot be cancelled, but a reset must be possible with posted receives. */
static DAT_RETURN recv_unmake(struct limit_made *made)
{
	return dat_ep_reset(made->handle);
}

const struct limit_kind limit_kinds[] = {
	{ "limit_ia", "Test max num of opens for the same physical IA", "IAs opened", "dat_ia_open",
	  DEPTH_NONE, ia_make, ia_unmake },
	{ "limit_pz", "Test max num of PZs that are supported by an IA", "PZs created",
	  "dat_pz_create", DEPTH_IA, pz_make, pz_unmake },
	{ "limit_cno", "Test max num of CNOs that are supported by an IA", "CNOs created",
	  "dat_cno_create", DEPTH_PZ, cno_make, cno_unmake },
	{ "limit_evd", "Test max num of EVDs that are supported by an IA", "EVDs created",
	  "dat_evd_create", DEPTH_CNO, evd_make, evd_unmake },
	{ "limit_ep", "Test max num of EPs that are supported by an IA", "EPs created",
	  "dat_ep_create", DEPTH_EVD, ep_make, ep_unmake },
	{ "limit_rsp", "Test max num of RSPs that are supported by an IA", "RSPs created",
	  "dat_rsp_create", DEPTH_EP, rsp_make, rsp_unmake },
	{ "limit_psp", "Test max num of PSPs that are supported by an IA", "PSPs created",
	  "dat_psp_create", DEPTH_EP, psp_make, psp_unmake },
	{ "limit_lmr", "Test max num of LMRs that are supported by an IA", "LMRs created",
	  "dat_lmr_create", DEPTH_EP, lmr_make, lmr_unmake },
	{ "limit_rpost", "Test max num of receive buffers posted to an EP", "recv buffers posted",
	  "dat_ep_post_recv", DEPTH_EP, recv_make, recv_unmake },
	{ "limit_size_lmr", "Test max size of LMRs that are supported by an IA", "LMR size",
	  "dat_lmr_create", DEPTH_EP, NULL, NULL },
};

const int limit_kind_count = (int)(sizeof(limit_kinds) / sizeof(limit_kinds[0]));
