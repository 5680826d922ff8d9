/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A program that loads a plugin: host local|global PLUGIN. Both use DAT, before and after each
 * other, and the plugin uses an IA that the program opened; each may be compiled for DAT 1.2 or
 * 2.0.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <dat2/udat.h>
#include "test/one/exercise.h"

int main(int argc, char **argv)
{
	int (*plugin)(void *), failures = 0;
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;
	void *dl, *found;

	if (argc != 3)
		return 2;
	failures += exercise(NULL);
	dl = dlopen(argv[2], RTLD_NOW | (strcmp(argv[1], "global") ? RTLD_LOCAL : RTLD_GLOBAL));
	found = dl ? dlsym(dl, "exercise") : NULL;
	if (!found) {
		fprintf(stderr, "%s\n", dlerror());
		return 2;
	}
	memcpy(&plugin, &found, sizeof(plugin));
	failures += plugin(NULL);
	failures += exercise(NULL);
	if (dat_ia_open((DAT_NAME_PTR) "ofa-v2-soft", 8, &async, &ia) != DAT_SUCCESS)
		return 2;
	failures += plugin(ia);
	failures += exercise(ia);
	failures += dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG) != DAT_SUCCESS;
	dlclose(dl);
	failures += exercise(NULL);
	if (failures)
		fprintf(stderr, "%d failures\n", failures);
	return failures ? 1 : 0;
}
