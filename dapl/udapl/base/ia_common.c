/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The interface adapter as all other objects see it: the list of open ones, its handle, its settings. */
#include "dapl/udapl/base/ia.h"

/* libdat2 exports it, but no public header declares it. */
DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE in, DAT_IA_HANDLE *out);

struct ia_list ia_all = TAILQ_HEAD_INITIALIZER(ia_all);
pthread_mutex_t ia_all_lock = PTHREAD_MUTEX_INITIALIZER;

DAT_IA_HANDLE ia_handle(struct dapl_ia *ia)
{
	DAT_IA_HANDLE index;

	return dats_get_ia_handle(ia, &index) == DAT_SUCCESS ? index : DAT_HANDLE_NULL;
}

long ia_setting(const struct dapl_ia *ia, enum setting which)
{
	return setting_for_ia(ia->name, ia->attr->device_name, which);
}

DAT_RETURN ia_no_cq(struct dapl_ia *ia, struct ib_cq **cq)
{
	DAT_RETURN status = DAT_SUCCESS;

	pthread_mutex_lock(&ia->no_cq_lock);
	if (!ia->no_cq)
		status = ib_cq_create(ia->device, 1, NULL, &ia->no_cq);
	if (status == DAT_SUCCESS)
		*cq = ia->no_cq;
	pthread_mutex_unlock(&ia->no_cq_lock);
	return status;
}
