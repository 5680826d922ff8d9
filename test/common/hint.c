/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* What to try when an IA does not open: the software device works on any machine. */

#include <stdlib.h>
#include <string.h>

#include "common.h"

#include <dat2/dat_registry.h>

#define SOFT_NAME "ofa-v2-soft"

/* Returns the names that dat.conf has; *count is 0 if they cannot be read. */
static DAT_PROVIDER_INFO *names_list(DAT_COUNT *count)
{
	DAT_PROVIDER_INFO *infos, **list;
	DAT_COUNT total = 0, i;

	*count = 0;
	dat_registry_list_providers(0, &total, NULL);
	if (total <= 0)
		return NULL;
	infos = calloc((size_t)total, sizeof(*infos));
	list = calloc((size_t)total, sizeof(DAT_PROVIDER_INFO *));
	for (i = 0; infos && list && i < total; i++)
		list[i] = &infos[i];
	if (!infos || !list || dat_registry_list_providers(total, count, list) != DAT_SUCCESS)
		*count = 0;
	free(list);
	return infos;
}

static bool name_is_listed(const char *name)
{
	DAT_COUNT count, i;
	DAT_PROVIDER_INFO *infos = names_list(&count);

	for (i = 0; i < count && strcmp(infos[i].ia_name, name); i++)
		;
	free(infos);
	return i < count;
}

void open_hint(const char *name, const char *option)
{
	complain("datinfo shows why %s does not open, and which names do", name);
	if (strcmp(name, SOFT_NAME) && name_is_listed(SOFT_NAME))
		complain("%s %s, the software device, needs no RDMA hardware", option, SOFT_NAME);
}
