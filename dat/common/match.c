/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Selects the record for a request of a name, a version and thread safety. */
#include "dat/common/reg.h"

/*
 * A match has the same name and major version, and the lowest minor version not below the requested one. A request
 * without thread safety prefers records without it, but accepts those with it.
 */
void match_offer(struct match *match, const DAT_PROVIDER_INFO *info)
{
	const DAT_PROVIDER_INFO *wanted = match->wanted, *best = match->best;
	enum match_reach reach = MATCH_THREAD_SAFETY;

	if (strcmp(info->ia_name, wanted->ia_name))
		return;
	if (info->dapl_version_major != wanted->dapl_version_major)
		reach = MATCH_NAME;
	else if (info->dapl_version_minor < wanted->dapl_version_minor)
		reach = MATCH_MAJOR;
	else if (wanted->is_thread_safe && !info->is_thread_safe)
		reach = MATCH_MINOR;
	if (reach > match->reach) {
		match->reach = reach;
		match->nearest = info;
	}
	if (reach < MATCH_THREAD_SAFETY)
		return;
	if (!best || (!info->is_thread_safe == !best->is_thread_safe
			      ? info->dapl_version_minor < best->dapl_version_minor
			      : !info->is_thread_safe == !wanted->is_thread_safe))
		match->best = info;
}

DAT_RETURN match_status(const struct match *match)
{
	static const DAT_RETURN_SUBTYPE missing[] = {
		[MATCH_NOTHING] = DAT_NAME_NOT_REGISTERED,
		[MATCH_NAME] = DAT_MAJOR_NOT_FOUND,
		[MATCH_MAJOR] = DAT_MINOR_NOT_FOUND,
		[MATCH_MINOR] = DAT_THREAD_SAFETY_NOT_FOUND,
	};

	if (match->best)
		return DAT_SUCCESS;
	return DAT_ERROR(DAT_PROVIDER_NOT_FOUND, missing[match->reach]);
}
