/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Behaviour that existing consumers rely on beyond the specification: dat.conf, IA names and their
 * list.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "test/unit/ep_util.h"
#include "util/clock.h"

/*
 * IA names that existing programs use, or from which they read the network interface; all name one
 * device.
 */
static const char *const names[] = {
	"ofa-v2-soft", "ofa-v2-lo", "ofa-v2-ib0",   "ib0",	  "ibd0",
	"ccil",	       "gmg2",	    "RO_AWARE_ib0", "OpenIB-cma",
};
static char path[300];

static void conf_write(void)
{
	const char *library = getenv("DAPL_SOFT_LIB");
	FILE *file;
	size_t i;

	snprintf(path, sizeof(path), "%s/dat.conf", unit_tmpdir());
	file = fopen(path, "w");
	if (!file || !library)
		abort();
	fprintf(file, "# a comment\n\n");
	for (i = 0; i < COUNT(names); i++)
		fprintf(file, "%s u2.0 nonthreadsafe default %s dapl.2.0 \"%s\" \"\" # so\n",
			names[i], library, i % 2 ? "lo 0" : "soft0 1");
	fprintf(file,
		"no-library u2.0 nonthreadsafe default /nowhere/libdapl.so.2 dapl.2.0 \"\" \"\"\n");
	fprintf(file,
		"no-device u2.0 nonthreadsafe default %s dapl.2.0 \"no-such-netdev 0\" \"\"\n",
		library);
	fprintf(file, "no-provider u2.0 nonthreadsafe default libc.so.6 dapl.2.0 \"\" \"\"\n");
	fclose(file);
}

/*
 * The registry reads dat.conf once in a process: this file, unless an earlier call already made it
 * read another.
 */
static void conf_use(void)
{
	static bool done;

	if (!done) {
		conf_write();
		setenv("DAT_OVERRIDE", path, 1);
	}
	done = true;
}

static DAT_RETURN open_name(const char *name, DAT_IA_HANDLE *ia)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;

	return dat_ia_open((DAT_NAME_PTR)(uintptr_t)name, 8, &async, ia);
}

/* Reads the file as one consumer does: words, the seventh in quotes. */
static unsigned read_conf(const char *file, char found[][64], unsigned most)
{
	char line[512], name[64], rest[8][128];
	FILE *f = fopen(file, "r");
	unsigned count = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	while (count < most && fgets(line, sizeof(line), f)) {
		if (line[0] == '#' || line[0] == '\n')
			continue;
		if (sscanf(line, "%63s %127s %127s %127s %127s %127s \"%127[^\"]\"", name, rest[0],
			   rest[1], rest[2], rest[3], rest[4], rest[5]) != 7)
			continue;
		CU_ASSERT_STRING_EQUAL(rest[0], "u2.0");
		CU_ASSERT_STRING_EQUAL(rest[2], "default");
		CU_ASSERT_PTR_NOT_NULL(strstr(rest[3], "libdapl"));
		strcpy(found[count++], name);
	}
	fclose(f);
	return count;
}

static void test_conf(void)
{
	char found[64][64];
	DAT_IA_HANDLE ia;
	unsigned i, count;

	/* the installed file */
	count = read_conf("dat.conf", found, 64);
	CU_ASSERT_TRUE(count >= 2);
	for (i = 0; i < count; i++)
		CU_ASSERT_EQUAL(strncmp(found[i], "ofa-v2-", 7), 0);
	/* the registry knows every name that the consumer reads */
	conf_use();
	count = read_conf(path, found, 64);
	CU_ASSERT_EQUAL(count, COUNT(names) + 1); /* and the name without a device */
	for (i = 0; i < COUNT(names) && i < count; i++) {
		CU_ASSERT_STRING_EQUAL(found[i], names[i]);
		MUST(open_name(found[i], &ia));
		OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	}
}

static void test_names(void)
{
	DAT_IA_HANDLE ias[COUNT(names)];
	DAT_PROVIDER_ATTR provider;
	DAT_IA_ATTR attr;
	size_t i;

	conf_use();
	for (i = 0; i < COUNT(names); i++) {
		MUST(open_name(names[i], &ias[i]));
		MUST(dat_ia_query(ias[i], NULL, DAT_IA_FIELD_ALL, &attr, DAT_PROVIDER_FIELD_ALL,
				  &provider));
		CU_ASSERT_STRING_EQUAL(provider.provider_name, names[i]);
		CU_ASSERT_STRING_EQUAL(attr.adapter_name, "soft0");
		CU_ASSERT_EQUAL(((struct sockaddr_in *)attr.ia_address_ptr)->sin_addr.s_addr,
				htonl(INADDR_LOOPBACK));
	}
	for (i = 0; i < COUNT(names); i++)
		OK(dat_ia_close(ias[i], DAT_CLOSE_GRACEFUL_FLAG));
}

static void list(DAT_COUNT room, DAT_COUNT entries)
{
	DAT_PROVIDER_INFO infos[64], *pointers[64];
	DAT_COUNT count = 0, i;

	memset(infos, 0xee, sizeof(infos));
	for (i = 0; i < 64; i++)
		pointers[i] = &infos[63 - i]; /* pointers to entries in any order, not an array */
	OK(dat_registry_list_providers(room, &count, pointers));
	CU_ASSERT_EQUAL(count, entries < room ? entries : room);
	for (i = 0; i < room && i < entries && i < (DAT_COUNT)COUNT(names); i++) {
		CU_ASSERT_STRING_EQUAL(infos[63 - i].ia_name, names[i]);
		CU_ASSERT_EQUAL(infos[63 - i].dapl_version_major, DAT_VERSION_MAJOR);
	}
	if (room < 64)
		CU_ASSERT_EQUAL(((unsigned char *)&infos[63 - room])[0], 0xee);
}

static void test_list(void)
{
	static const char *const unusable[] = { "no-library", "no-device", "no-provider",
						"unknown" };
	uint64_t begin;
	DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
	DAT_COUNT entries = (DAT_COUNT)COUNT(names) + 3;
	size_t i;

	conf_use();
	list(8, entries);
	list(64, entries);
	begin = clock_now();
	for (i = 0; i < COUNT(unusable); i++) {
		CU_ASSERT_TRUE(open_name(unusable[i], &ia) != DAT_SUCCESS);
		CU_ASSERT_PTR_EQUAL(ia, DAT_HANDLE_NULL);
	}
	CU_ASSERT_TRUE(clock_now() - begin < PATIENCE * NSEC_PER_USEC);
	MUST(open_name(names[0], &ia)); /* the failed open left nothing behind */
	OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

static const struct unit_test tests[] = {
	{ "C33: consumers can parse dat.conf themselves", test_conf },
	{ "C34: one device may have several names", test_names },
	{ "C35: the list of providers is an array of pointers; entries that do not work are listed",
	  test_list },
};

UNIT_MAIN("consumer_registry", tests)
