/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Finds and opens libsoftverbs-fabric.so.1 and libsoftverbs-ofi.so.1, each once in a process. */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "softverbs/fabric/plugin.h"
#include "util/log.h"

/* Opens it in a folder beside the object that contains this function: `way` is relative to that one's. */
static void *open_beside(const char *way, const char *file)
{
	static const char here_is = 0;
	char path[PATH_MAX];
	const char *slash;
	Dl_info here;
	int length;

	if (!dladdr(&here_is, &here) || !here.dli_fname)
		return NULL;
	slash = strrchr(here.dli_fname, '/');
	length = slash ? (int)(slash - here.dli_fname) : 0;
	if (!slash || snprintf(path, sizeof(path), "%.*s/%s%s", length, here.dli_fname, way,
			       file) >= (int)sizeof(path))
		return NULL;
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/*
 * The table of `file`: beside the drop-in's libraries; in the folder `softverbs` beside libdaplsoft.so.2; from a test,
 * which has the device inside; else where the loader looks.
 */
static const void *find(const char *file, const char *symbol)
{
	static const char *const ways[] = { "", "softverbs/", "../lib/softverbs/" };
	const void *table = NULL;
	void *library = NULL;

	for (unsigned i = 0; !library && i < sizeof(ways) / sizeof(ways[0]); i++)
		library = open_beside(ways[i], file);
	if (!library)
		library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (library)
		table = dlsym(library, symbol);
	if (library && !table)
		log_at(LOG_ERROR, "softverbs: no fabric: %s is of another version", file);
	else if (!table)
		log_at(LOG_ERROR, "softverbs: no fabric: %s; it belongs to the package softverbs",
		       dlerror());
	return table;
}

/* Constant after they were found. */
static const struct sv_fabric_plugin *plugin;
static const struct sv_endpoint_calls *calls;

static void plugin_find(void)
{
	plugin = find("libsoftverbs-fabric.so.1", SV_PLUGIN_SYMBOL);
}

static void calls_find(void)
{
	calls = find("libsoftverbs-ofi.so.1", SV_ENDPOINT_SYMBOL);
}

const struct sv_fabric_plugin *sv_fabric_plugin(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, plugin_find);
	return plugin;
}

const struct sv_endpoint_calls *sv_endpoint_calls(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, calls_find);
	return calls;
}
