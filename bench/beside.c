/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "bench/beside.h"

const char *const beside_name[VARIANTS] = { [OURS] = "this build",
					    [PACKAGED] = "OFED as it comes",
					    [PACKAGED_QUIET] = "OFED with DAPL_DBG_TYPE=0" };

static char build[PATH_MAX], folder[] = "/tmp/beside.XXXXXX", conf[sizeof(folder) + 16];

static bool find_build(void)
{
	ssize_t length = readlink("/proc/self/exe", build, sizeof(build) - 1);
	char *slash;
	int i;

	build[length < 0 ? 0 : length] = 0;
	for (i = 0; i < 2; i++) { /* from BUILD/bench/exact */
		slash = strrchr(build, '/');
		if (!slash)
			return false;
		*slash = 0;
	}
	return true;
}

static bool write_conf(enum variant variant)
{
	FILE *file = fopen(conf, "w");

	if (!file)
		return false;
	fprintf(file,
		"exact u2.0 nonthreadsafe default %s%slibdaplofa.so.2 dapl.2.0 \"127.0.0.1 0\" "
		"\"\"\n",
		variant == OURS ? build : "", variant == OURS ? "/lib/" : "");
	return !fclose(file);
}

static void set_environment(enum variant variant)
{
	char path[2 * PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/lib/softverbs%s%s", build, variant == OURS ? ":" : "",
		 variant == OURS ? build : "");
	if (variant == OURS)
		strcat(path, "/lib");
	setenv("LD_LIBRARY_PATH", path, 1);
	setenv("LD_BIND_NOW", "1", 1);
	setenv("DAT_OVERRIDE", conf, 1);
	if (variant == PACKAGED_QUIET)
		setenv("DAPL_DBG_TYPE", "0", 1);
	else
		unsetenv("DAPL_DBG_TYPE");
}

bool beside_is_of_build(const char *path)
{
	return !strncmp(path, build, strlen(build)) && path[strlen(build)] == '/';
}

bool beside_begin(void)
{
	if (find_build() && mkdtemp(folder)) {
		snprintf(conf, sizeof(conf), "%s/dat.conf", folder);
		return true;
	}
	fprintf(stderr, "the build folder is not found: %s\n", strerror(errno));
	return false;
}

bool beside_set(enum variant variant)
{
	set_environment(variant);
	if (write_conf(variant))
		return true;
	fprintf(stderr, "%s: %s\n", conf, strerror(errno));
	return false;
}

/* The loader prints what it would load; the provider comes in the same package. */
bool beside_has_packaged(const char *program)
{
	char line[PATH_MAX + 64];
	bool found = false;
	FILE *out;

	snprintf(line, sizeof(line), "LD_TRACE_LOADED_OBJECTS=1 '%s'", program);
	out = beside_set(PACKAGED) ? popen(line, "r") : NULL;
	while (out && fgets(line, sizeof(line), out))
		found |= strstr(line, "libdat2.so.2 => /") != NULL;
	if (out)
		pclose(out);
	return found;
}

void beside_end(void)
{
	unlink(conf);
	rmdir(folder);
}

const char *beside_program(const char *name)
{
	static char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/bench/%s", build, name);
	return path;
}

void beside_stay(void)
{
	cpu_set_t set;
	int here = sched_getcpu();

	if (here < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET((unsigned)here, &set);
	sched_setaffinity(0, sizeof(set), &set);
}
