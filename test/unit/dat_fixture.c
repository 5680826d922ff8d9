/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Writes the dat.conf of the suites: IA ofa-v2-soft, served by the library that DAPL_SOFT_LIB
 * names.
 */
#include <stdio.h>
#include <stdlib.h>
#include "test/unit/unit.h"

/*
 * Runs before main, because the registry reads the file on first use. Variables that the caller has
 * set are kept.
 */
__attribute__((constructor)) static void write_conf(void)
{
	const char *library = getenv("DAPL_SOFT_LIB");
	char path[512];
	FILE *conf;

	if (!library || getenv("DAT_OVERRIDE"))
		return;
	snprintf(path, sizeof(path), "%s/dat.conf", unit_tmpdir());
	conf = fopen(path, "w");
	if (!conf ||
	    fprintf(conf,
		    "ofa-v2-soft u2.0 nonthreadsafe default %s dapl.2.0 "
		    "\"soft0 1\" \"\"\n",
		    library) < 0 ||
	    fclose(conf)) {
		perror(path);
		exit(1);
	}
	setenv("DAT_OVERRIDE", path, 1);
}
