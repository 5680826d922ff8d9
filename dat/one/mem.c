/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dat_lmr_* but the syncs, and dat_rmr_*. */
#include <stdlib.h>
#include "dat/one/one.h"

#define TWO_LMR_FIELD_IA_HANDLE	  0x1
#define TWO_LMR_FIELD_LMR_CONTEXT 0x80
#define TWO_RMR_FIELD_IA_HANDLE	  0x1

/*
 * Argument 7 of DAT 2.0 is the kind of addressing, which this library always sets. If a provider refuses it
 * nevertheless, the result names the argument before it, the privileges.
 */
static const unsigned char lmr_create_place[] = { 0, 1, 2, 3, 4, 5, 6, 6, 7, 8, 9 };

/* Arguments 2 and 5 of DAT 2.0 are the LMR, here part of the triplet, and the kind of addressing. */
static const unsigned char rmr_bind_place[] = { 0, 1, 2, 2, 3, 2, 4, 5, 6, 7 };

/* ---- Local memory regions ---- */

/* Queries the context and the IA handle of the LMR. */
static bool identify(DAT_LMR_HANDLE lmr, DAT_LMR_CONTEXT *context, DAT_IA_HANDLE *asked_ia)
{
	struct two_lmr_param param = { .ia_handle = DAT_HANDLE_NULL };

	if (two.lmr_query(lmr, TWO_LMR_FIELD_IA_HANDLE | TWO_LMR_FIELD_LMR_CONTEXT, &param) !=
	    DAT_SUCCESS)
		return false;
	*context = param.lmr_context;
	*asked_ia = param.ia_handle;
	return true;
}

static DAT_RETURN mem_create(struct lmr_entry *entry, DAT_IA_HANDLE ia, DAT_MEM_TYPE type,
			     DAT_REGION_DESCRIPTION region, DAT_VLEN length, DAT_PZ_HANDLE pz,
			     DAT_MEM_PRIV_FLAGS privileges, DAT_LMR_HANDLE *lmr,
			     DAT_LMR_CONTEXT *lmr_context, DAT_RMR_CONTEXT *rmr_context,
			     DAT_VLEN *registered_length, DAT_VADDR *registered_address)
{
	DAT_RETURN ret =
		two.lmr_create(ia, type, region, length, pz, privileges, TWO_VA_TYPE_VA, lmr,
			       lmr_context, rmr_context, registered_length, registered_address);

	if (ret != DAT_SUCCESS)
		return one_failure_of_args(ret, lmr_create_place, sizeof(lmr_create_place));
	entry->ia = ia;
	entry->lmr = *lmr;
	if (!identify(*lmr, &entry->context, &entry->asked_ia)) {
		two.lmr_free(*lmr);
		return ONE_ERROR(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	}
	return DAT_SUCCESS;
}

DAT_RETURN dat_lmr_create(DAT_IA_HANDLE ia, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region,
			  DAT_VLEN length, DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS privileges,
			  DAT_LMR_HANDLE *lmr, DAT_LMR_CONTEXT *lmr_context,
			  DAT_RMR_CONTEXT *rmr_context, DAT_VLEN *registered_length,
			  DAT_VADDR *registered_address)
{
	struct lmr_entry *entry;
	DAT_RETURN ret;

	/* DAT 2.0 refuses a null pointer to the handle itself, among its other checks. */
	if (!lmr)
		return one_failure_of_args(two.lmr_create(ia, type, region, length, pz, privileges,
							  TWO_VA_TYPE_VA, NULL, lmr_context,
							  rmr_context, registered_length,
							  registered_address),
					   lmr_create_place, sizeof(lmr_create_place));
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return ONE_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	ret = mem_create(entry, ia, type, region, length, pz, privileges, lmr, lmr_context,
			 rmr_context, registered_length, registered_address);
	if (ret == DAT_SUCCESS)
		lmr_table_add(entry);
	else
		free(entry);
	return ret;
}

/* The gaps between members become 0, as in all that queries fill in. */
static void lmr_param_to_one(DAT_LMR_PARAM *param, const struct two_lmr_param *from)
{
	memset(param, 0, sizeof(*param));
	param->ia_handle = from->ia_handle;
	param->mem_type = from->mem_type;
	param->region_desc = from->region_desc;
	param->length = from->length;
	param->pz_handle = from->pz_handle;
	param->mem_priv = from->mem_priv;
	param->lmr_context = from->lmr_context;
	param->rmr_context = from->rmr_context;
	param->registered_size = from->registered_size;
	param->registered_address = from->registered_address;
}

DAT_RETURN dat_lmr_query(DAT_LMR_HANDLE lmr, DAT_LMR_PARAM_MASK mask, DAT_LMR_PARAM *param)
{
	int two_mask = one_lmr_mask(mask);
	struct two_lmr_param from = { .ia_handle = DAT_HANDLE_NULL };
	DAT_RETURN ret = one_status(two.lmr_query(lmr, two_mask, param ? &from : NULL));

	if (ret != DAT_SUCCESS)
		return ret;
	if (two_mask == ONE_ENUM_UNKNOWN)
		return ONE_BAD_ARG(2);
	if (param)
		lmr_param_to_one(param, &from);
	return DAT_SUCCESS;
}

/* Removes the table entry first: once the LMR is freed, another one may get its handle and context. */
DAT_RETURN dat_lmr_free(DAT_LMR_HANDLE lmr)
{
	struct lmr_entry *entry = NULL;
	DAT_LMR_CONTEXT context;
	DAT_IA_HANDLE asked_ia;
	DAT_RETURN ret;

	if (identify(lmr, &context, &asked_ia))
		entry = lmr_table_take(lmr, context);
	ret = one_status(two.lmr_free(lmr));
	if (ret != DAT_SUCCESS && entry)
		lmr_table_add(entry);
	else
		free(entry);
	return ret;
}

/* ---- Remote memory regions ---- */

DAT_RETURN dat_rmr_create(DAT_PZ_HANDLE pz, DAT_RMR_HANDLE *rmr)
{
	return one_status(two.rmr_create(pz, rmr));
}

DAT_RETURN dat_rmr_query(DAT_RMR_HANDLE rmr, DAT_RMR_PARAM_MASK mask, DAT_RMR_PARAM *param)
{
	int two_mask = one_rmr_mask(mask);
	struct two_rmr_param from = { .ia_handle = DAT_HANDLE_NULL };
	DAT_RETURN ret = one_status(two.rmr_query(rmr, two_mask, param ? &from : NULL));

	if (ret != DAT_SUCCESS)
		return ret;
	if (two_mask == ONE_ENUM_UNKNOWN)
		return ONE_BAD_ARG(2);
	if (param)
		*param = (DAT_RMR_PARAM){
			.ia_handle = from.ia_handle,
			.pz_handle = from.pz_handle,
			.lmr_triplet = { .lmr_context = from.lmr_triplet.lmr_context,
					 .virtual_address = from.lmr_triplet.virtual_address,
					 .segment_length = from.lmr_triplet.segment_length },
			.mem_priv = from.mem_priv,
			.rmr_context = from.rmr_context,
		};
	return DAT_SUCCESS;
}

/* The LMR that the triplet names; an unbinding names none. */
static DAT_RETURN lmr_to_bind(DAT_RMR_HANDLE rmr, const DAT_LMR_TRIPLET *triplet,
			      DAT_LMR_HANDLE *lmr)
{
	struct two_rmr_param param = { .ia_handle = DAT_HANDLE_NULL };
	DAT_RETURN ret;

	*lmr = DAT_HANDLE_NULL;
	if (!triplet || !triplet->segment_length)
		return DAT_SUCCESS;
	ret = one_status(two.rmr_query(rmr, TWO_RMR_FIELD_IA_HANDLE, &param));
	if (ret != DAT_SUCCESS)
		return ret;
	*lmr = lmr_table_find(param.ia_handle, triplet->lmr_context);
	return *lmr ? DAT_SUCCESS : ONE_BAD_ARG(2);
}

DAT_RETURN dat_rmr_bind(DAT_RMR_HANDLE rmr, const DAT_LMR_TRIPLET *triplet,
			DAT_MEM_PRIV_FLAGS privileges, DAT_EP_HANDLE ep, DAT_RMR_COOKIE cookie,
			DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT *context)
{
	struct two_lmr_triplet two_triplet;
	DAT_LMR_HANDLE lmr;
	DAT_RETURN ret = lmr_to_bind(rmr, triplet, &lmr);

	if (ret != DAT_SUCCESS)
		return ret;
	if (triplet && !one_lmr_triplet_to_two(&two_triplet, triplet))
		return ONE_BAD_ARG(2);
	ret = two.rmr_bind(rmr, lmr, triplet ? &two_triplet : NULL, privileges, TWO_VA_TYPE_VA, ep,
			   cookie, flags, context);
	return ret == DAT_SUCCESS
		       ? DAT_SUCCESS
		       : one_failure_of_args(ret, rmr_bind_place, sizeof(rmr_bind_place));
}

DAT_RETURN dat_rmr_free(DAT_RMR_HANDLE rmr)
{
	return one_status(two.rmr_free(rmr));
}
