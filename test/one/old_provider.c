/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A provider of DAT 1.2 as such libraries are: it registers itself for the record of dat.conf, and
 * exports only what that needs. Its table ends where its memory ends, so that a registry that reads
 * beyond it crashes.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <dat/udat.h>
#include <dat/dat_registry.h>

#pragma GCC visibility push(default)
void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *params);
void dat_provider_fini(const DAT_PROVIDER_INFO *info);
#pragma GCC visibility pop

static DAT_PROVIDER *table;

/* Must not be reached, because the caller takes its objects for those of DAT 2.0. */
static DAT_RETURN ia_open(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *evd,
			  DAT_IA_HANDLE *ia)
{
	(void)name;
	(void)qlen;
	(void)evd;
	(void)ia;
	_exit(99);
}

void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *params)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *pages =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)params;
	if (pages == MAP_FAILED || mprotect(pages + page, page, PROT_NONE))
		_exit(98);
	table = (DAT_PROVIDER *)(pages + page - sizeof(*table));
	table->device_name = "old";
	table->ia_open_func = ia_open;
	dat_registry_add_provider(table, info);
}

void dat_provider_fini(const DAT_PROVIDER_INFO *info)
{
	dat_registry_remove_provider(table, info);
}
