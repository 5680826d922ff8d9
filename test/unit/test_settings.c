/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dapl.conf, the environment that overrides it, and the diagnostics for mistakes in either. */
#include <pthread.h>
#include <sys/stat.h>
#include "test/unit/fake.h"
#include "util/log.h"
#include "util/settings.h"

/* libconfig leaks the strings that it has read before a syntax error. */
#pragma GCC visibility push(default)
const char *__lsan_default_suppressions(void);
const char *__lsan_default_options(void);
#pragma GCC visibility pop

const char *__lsan_default_suppressions(void)
{
	return "leak:libconfig";
}

const char *__lsan_default_options(void)
{
	return "print_suppressions=0";
}

static struct settings all;

static void forget_environment(void)
{
	int i;

	for (i = 0; i < SETTINGS; i++)
		unsetenv(settings_table[i].variable);
}

static const char *path_of(const char *name)
{
	static char path[300];

	snprintf(path, sizeof(path), "%s/%s", unit_tmpdir(), name);
	return path;
}

static void write_file(const char *path, const char *text, size_t len)
{
	FILE *file = fopen(path, "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	CU_ASSERT_EQUAL(fwrite(text, 1, len, file), len);
	CU_ASSERT_EQUAL(fclose(file), 0);
}

/* Returns the diagnostics after loading settings from this file. */
static const char *read_path(const char *path)
{
	struct fake_capture capture = fake_capture(STDERR_FILENO);

	setenv("DAPL_CONF", path, 1);
	settings_read(&all);
	return fake_captured(capture);
}

/* Reads the text as "dapl.conf"; returns the diagnostics without the test's folder. */
static const char *read_bytes(const char *text, size_t len)
{
	const char *path = path_of("dapl.conf"), *said, *found;
	size_t folder = strlen(unit_tmpdir()) + 1;
	static char shown[16384], *out;

	write_file(path, text, len);
	said = read_path(path);
	out = shown;
	while ((found = strstr(said, unit_tmpdir()))) {
		out = mempcpy(out, said, (size_t)(found - said));
		said = found + folder;
	}
	strcpy(out, said);
	return shown;
}

static const char *read_text(const char *text)
{
	return read_bytes(text, strlen(text));
}

static long value(enum setting which)
{
	return all.values[which].value;
}

static long value_for(const char *ia, const char *device, enum setting which)
{
	return settings_find(&all, ia, device, which)->value;
}

static void test_defaults(void)
{
	int i;

	forget_environment();
	CU_ASSERT_STRING_EQUAL(read_text(""), "");
	for (i = 0; i < SETTINGS; i++) {
		CU_ASSERT_PTR_NOT_NULL(settings_table[i].name);
		CU_ASSERT_PTR_NOT_NULL(settings_table[i].help);
		CU_ASSERT_EQUAL(strncmp(settings_table[i].variable, "DAPL_", 5), 0);
		CU_ASSERT_TRUE(setting_fits(&settings_table[i], settings_table[i].standard));
		CU_ASSERT_EQUAL(value((enum setting)i), settings_table[i].standard);
		CU_ASSERT_EQUAL(all.values[i].origin, SETTING_STANDARD);
	}
}

static void test_file_and_environment(void)
{
	forget_environment();
	CU_ASSERT_STRING_EQUAL(read_text("defaults = {\n"
					 "  ack_retry = 3;\n"
					 "  spin_us = 0x20;\n"
					 "  rnr_retry = \"5\";\n"
					 "};\n"),
			       "");
	CU_ASSERT_STRING_EQUAL(all.path, path_of("dapl.conf"));
	CU_ASSERT_EQUAL(value(SET_ACK_RETRY), 3);
	CU_ASSERT_EQUAL(all.values[SET_ACK_RETRY].origin, SETTING_FILE);
	CU_ASSERT_EQUAL(all.values[SET_ACK_RETRY].line, 2);
	CU_ASSERT_EQUAL(value(SET_SPIN_US), 32);
	CU_ASSERT_EQUAL(value(SET_RNR_RETRY), 5);

	setenv("DAPL_ACK_RETRY", "0x1", 1);
	CU_ASSERT_STRING_EQUAL(read_text("defaults = { ack_retry = 3; spin_us = 7; };"), "");
	CU_ASSERT_EQUAL(value(SET_ACK_RETRY), 1);
	CU_ASSERT_EQUAL(all.values[SET_ACK_RETRY].origin, SETTING_ENVIRONMENT);
	CU_ASSERT_EQUAL(value(SET_SPIN_US), 7);

	/* a bad value counts as unset */
	setenv("DAPL_ACK_RETRY", "8", 1);
	CU_ASSERT_STRING_EQUAL(read_text("defaults = { ack_retry = 3; };"),
			       "DAPL_ACK_RETRY: '8' is not a number from 0 to 7; 3 is used\n");
	CU_ASSERT_EQUAL(value(SET_ACK_RETRY), 3);
	forget_environment();
}

static void test_bad_values(void)
{
	static const struct {
		const char *text, *said;
	} cases[] = {
		{ "ack_retry = 8", "ack_retry: 8 is not a number from 0 to 7; 7" },
		{ "ack_retry = -1", "ack_retry: -1 is not a number from 0 to 7; 7" },
		{ "ack_timer = -2", "ack_timer: -2 is not a number from -1 to 31; -1" },
		{ "wr_max = 4294967296L",
		  "wr_max: 4294967296 is not a number from 1 to 2147483647; 2147483647" },
		{ "spin_us = 1.5", "spin_us: 1.5 is not a number from 0 to 1000000; 0" },
		{ "spin_us = true", "spin_us: true is not a number from 0 to 1000000; 0" },
		{ "spin_us = \"7x\"", "spin_us: '7x' is not a number from 0 to 1000000; 0" },
		{ "spin_us = \"\"", "spin_us: '' is not a number from 0 to 1000000; 0" },
		{ "spin_us = [ 1 ]",
		  "spin_us: a group or list is not a number from 0 to 1000000; 0" },
		{ "ib_mtu = 1000", "ib_mtu: 1000 is not 0 or a power of two from 256 to 4096; 0" },
		{ "ib_mtu = 128", "ib_mtu: 128 is not 0 or a power of two from 256 to 4096; 0" },
		{ "log_to = 8",
		  "log_to: 8 is not a sum of stdout 0x1, syslog 0x2, stderr 0x4; 0x4" },
		{ "log_to = \", \"",
		  "log_to: ', ' is not a sum of stdout 0x1, syslog 0x2, stderr 0x4; 0x4" },
		{ "log_to = \"\"",
		  "log_to: '' is not a sum of stdout 0x1, syslog 0x2, stderr 0x4; 0x4" },
		{ "wait_policy = \"sleep\"",
		  "wait_policy: 'sleep' is not one of block, spin, yield; block" },
		{ "wait_policy = \"block, spin\"",
		  "wait_policy: 'block, spin' is not one of block, spin, yield; block" },
		{ "wait_policy = 1", "wait_policy: 1 is not one of block, spin, yield; block" },
		{ "scm_netdev = 5", "scm_netdev: 5 is not a name of at most 15 bytes; \"\"" },
		{ "scm_netdev = \"a234567890123456\"",
		  "scm_netdev: 'a234567890123456' is not a name of at most 15 bytes; \"\"" },
		{ "scm_netdev = \"a b\"",
		  "scm_netdev: 'a b' is not a name of at most 15 bytes; \"\"" },
		{ "log_to = \"stdoutx\"",
		  "log_to: 'stdoutx' is not a sum of stdout 0x1, syslog 0x2, stderr 0x4; 0x4" },
	};
	char text[200], said[300];
	size_t i;

	forget_environment();
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(text, sizeof(text), "defaults = {\n\n%s; };", cases[i].text);
		snprintf(said, sizeof(said), "dapl.conf:3: %s is used\n", cases[i].said);
		CU_ASSERT_STRING_EQUAL(read_text(text), said);
	}
}

static void test_good_values(void)
{
	static const struct {
		const char *text;
		enum setting which;
		long value;
	} cases[] = {
		{ "ib_mtu = 2048", SET_IB_MTU, 2048 },
		{ "ib_mtu = 0", SET_IB_MTU, 0 },
		{ "wr_max = 2147483647", SET_WR_MAX, INT_MAX },
		{ "log = 0xffffffff", SET_DBG_TYPE, 0xffffffff },
		{ "log = -1", SET_DBG_TYPE, 0xffffffff },
		{ "log = \"-1\"", SET_DBG_TYPE, 0xffffffff },
		{ "log = 0", SET_DBG_TYPE, 0 },
		{ "log = \"errors\"", SET_DBG_TYPE, LOG_ERROR },
		{ "log = \"errors, notes|traces\"", SET_DBG_TYPE,
		  LOG_ERROR | LOG_NOTE | LOG_TRACE },
		{ "log_to = \"syslog+stderr\"", SET_DBG_DEST, LOG_TO_SYSLOG | LOG_TO_STDERR },
		{ "wait_policy = \"block\"", SET_WAIT_POLICY, 0 },
		{ "wait_policy = \"spin\"", SET_WAIT_POLICY, 1 },
		{ "wait_policy = \"yield\"", SET_WAIT_POLICY, 2 },
	};
	char text[200];
	size_t i;

	forget_environment();
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(text, sizeof(text), "defaults = { %s; };", cases[i].text);
		CU_ASSERT_STRING_EQUAL(read_text(text), "");
		CU_ASSERT_EQUAL(value(cases[i].which), cases[i].value);
		CU_ASSERT_EQUAL(all.values[cases[i].which].origin, SETTING_FILE);
	}
}

/* Interface names: in the file, for one device, in the environment. */
static void test_names(void)
{
	struct setting_value row = { .value = 0 };
	char text[SETTING_TEXT_MAX];

	forget_environment();
	CU_ASSERT_STRING_EQUAL(read_text("defaults = { scm_netdev = \"eth0.15chars..\"; };"
					 "devices = ( { name = \"soft0\"; scm_netdev = \"\"; } );"),
			       "");
	CU_ASSERT_STRING_EQUAL(all.values[SET_SCM_NETDEV].name, "eth0.15chars..");
	CU_ASSERT_STRING_EQUAL(settings_find(&all, NULL, "soft0", SET_SCM_NETDEV)->name, "");
	setenv("DAPL_SCM_NETDEV", "lo", 1);
	settings_read(&all);
	CU_ASSERT_STRING_EQUAL(settings_find(&all, NULL, "soft0", SET_SCM_NETDEV)->name, "lo");
	CU_ASSERT_STRING_EQUAL(setting_show(&settings_table[SET_SCM_NETDEV],
					    &all.values[SET_SCM_NETDEV], text),
			       "lo");
	CU_ASSERT_STRING_EQUAL(setting_show(&settings_table[SET_SCM_NETDEV], &row, text), "\"\"");
	forget_environment();
}

/* The defaults of the UD CM follow the size of the job; what is set stays. */
static void test_large_job(void)
{
	forget_environment();
	CU_ASSERT_STRING_EQUAL(read_text("defaults = { network_process_num = 1024; };"), "");
	CU_ASSERT_EQUAL(value(SET_UCM_REP_TIME), 800);
	CU_ASSERT_STRING_EQUAL(
		read_text("defaults = { network_process_num = 1025; ucm_rtu_time = 70; };"), "");
	CU_ASSERT_EQUAL(value(SET_UCM_REP_TIME), 16000);
	CU_ASSERT_EQUAL(value(SET_UCM_RTU_TIME), 70);
	CU_ASSERT_EQUAL(value(SET_UCM_DREP_TIME), 400);
	CU_ASSERT_EQUAL(value(SET_UCM_QP_SIZE), 8192);
	setenv("DAPL_NETWORK_NODES", "64", 1);
	setenv("DAPL_UCM_DREP_TIME", "300", 1);
	CU_ASSERT_STRING_EQUAL(read_text(""), "");
	CU_ASSERT_EQUAL(value(SET_UCM_REP_TIME), 16000);
	CU_ASSERT_EQUAL(value(SET_UCM_DREP_TIME), 300);
	setenv("DAPL_NETWORK_TRESHOLD", "2048", 1);
	CU_ASSERT_STRING_EQUAL(read_text(""), "");
	CU_ASSERT_EQUAL(value(SET_UCM_REP_TIME), 800);
	setenv("DAPL_NETWORK_PPN", "33", 1);
	CU_ASSERT_STRING_EQUAL(read_text(""), "");
	CU_ASSERT_EQUAL(value(SET_UCM_QP_SIZE), 8192);
	forget_environment();
}

static void test_devices(void)
{
	forget_environment();
	CU_ASSERT_STRING_EQUAL(
		read_text("devices = (\n"
			  "{ name = \"soft0\"; ack_retry = 1; rnr_retry = 1; },\n"
			  "{ ack_retry = 2; name = \"ofa-v2-soft\"; spin_us = 9; } );\n"
			  "defaults = { ack_retry = 3; };\n"),
		"");
	CU_ASSERT_EQUAL(all.device_count, 2);
	CU_ASSERT_EQUAL(all.devices[1].line, 3);
	CU_ASSERT_EQUAL(value(SET_ACK_RETRY), 3);
	CU_ASSERT_EQUAL(value_for(NULL, "soft1", SET_ACK_RETRY), 3);
	CU_ASSERT_EQUAL(value_for(NULL, "soft0", SET_ACK_RETRY), 1);
	CU_ASSERT_EQUAL(value_for(NULL, "ofa-v2-soft", SET_ACK_RETRY), 2);
	CU_ASSERT_EQUAL(value_for("ofa-v2-soft", "soft0", SET_ACK_RETRY), 2);
	CU_ASSERT_EQUAL(value_for("ofa-v2-soft", "soft0", SET_RNR_RETRY), 1);
	CU_ASSERT_EQUAL(value_for("ofa-v2-soft", "soft0", SET_SPIN_US), 9);
	CU_ASSERT_EQUAL(value_for("ofa-v2-soft", "soft0", SET_CM_TOS), 0);

	setenv("DAPL_ACK_RETRY", "7", 1);
	settings_read(&all);
	CU_ASSERT_EQUAL(value_for("ofa-v2-soft", "soft0", SET_ACK_RETRY), 7);
	forget_environment();
}

static void test_bad_devices(void)
{
	static const char start[] = "defaults = { ack_retry = 3; }; devices = (\n";
	char text[SETTINGS_DEVICES * 40 + 400], name[SETTINGS_NAME_MAX + 1];
	size_t len;
	int i;

	forget_environment();
	snprintf(text, sizeof(text), "%s{ name = \"a\"; ack_retry = 9; log = 1;\nnosuch = 1; } );",
		 start);
	CU_ASSERT_STRING_EQUAL(read_text(text),
			       "dapl.conf:2: ack_retry: 9 is not a number from 0 to 7; 3 is used\n"
			       "dapl.conf:2: log is the same for all devices; ignored\n"
			       "dapl.conf:3: nosuch is not known here; ignored\n");
	CU_ASSERT_EQUAL(value_for("a", NULL, SET_ACK_RETRY), 3);

	CU_ASSERT_STRING_EQUAL(
		read_text("devices = ( { spin_us = 1; },\n7,\n{ name = 3; },\n{ name = \"\"; } );"),
		"dapl.conf:1: a device without a name; ignored\n"
		"dapl.conf:2: a device is a group, { name = \"...\"; ... }; ignored\n"
		"dapl.conf:3: a device without a name; ignored\n"
		"dapl.conf:4: a device without a name; ignored\n");
	CU_ASSERT_EQUAL(all.device_count, 0);

	memset(name, 'x', SETTINGS_NAME_MAX);
	name[SETTINGS_NAME_MAX] = '\0';
	snprintf(text, sizeof(text), "devices = ( { name = \"%s\"; }, { name = \"%s\"; } );", name,
		 name + 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(read_text(text), "xxx: too long a name; ignored\n"));
	CU_ASSERT_EQUAL(all.device_count, 1);

	len = (size_t)sprintf(text, "devices = ( { name = \"d0\"; }");
	for (i = 0; i <= SETTINGS_DEVICES; i++)
		len += (size_t)sprintf(text + len, ",\n{ name = \"d%d\"; }", i);
	strcpy(text + len, " );");
	CU_ASSERT_STRING_EQUAL(read_text(text),
			       "dapl.conf:2: d0: this device has a section already; ignored\n"
			       "dapl.conf:66: d64: too many devices; ignored\n");
	CU_ASSERT_EQUAL(all.device_count, SETTINGS_DEVICES);
}

static void test_unknown(void)
{
	forget_environment();
	CU_ASSERT_STRING_EQUAL(
		read_text("default = { };\nspin_us = 1;\ndefaults = {\nspinn_us = 1; };"),
		"dapl.conf:4: spinn_us is not known here; ignored\n"
		"dapl.conf:1: default is not known here; ignored\n"
		"dapl.conf:2: spin_us is not known here; ignored\n");
	CU_ASSERT_STRING_EQUAL(read_text("defaults = 1;\ndevices = { };"),
			       "dapl.conf:1: defaults is a group, { ... }; ignored\n"
			       "dapl.conf:2: devices is a list, ( { ... }, ... ); ignored\n");
}

static void test_unreadable_texts(void)
{
	static const char nul[] = "defaults = { spin_us = 1; };\0";

	forget_environment();
	CU_ASSERT_STRING_EQUAL(read_text("defaults = {\nspin_us = ; };"),
			       "dapl.conf:2: syntax error; the file is ignored\n");
	CU_ASSERT_STRING_EQUAL(read_text("defaults = { spin_us = 1;\nspin_us = 2; };"),
			       "dapl.conf:2: duplicate setting name; the file is ignored\n");
	CU_ASSERT_EQUAL(value(SET_SPIN_US), 0);
	CU_ASSERT_STRING_EQUAL(
		read_text("# @include\n/* 99999999999\n */ defaults = {\nspin_us = 4294967297; };"),
		"dapl.conf:4: a number that does not fit; the file is ignored\n");
	CU_ASSERT_STRING_EQUAL(read_text("defaults = { spin_us = 0x100000001; };"),
			       "dapl.conf:1: a number that does not fit; the file is ignored\n");
	CU_ASSERT_STRING_EQUAL(read_text("defaults = {};\n  @include \"/\"\n"),
			       "dapl.conf:2: @include is not supported; the file is ignored\n");
	CU_ASSERT_STRING_EQUAL(read_text("defaults = {\nlog = \"x;\n\\\""),
			       "dapl.conf:2: a string without an end; the file is ignored\n");
	CU_ASSERT_STRING_EQUAL(read_bytes(nul, sizeof(nul)),
			       "dapl.conf: a NUL byte; the file is ignored\n");
	CU_ASSERT_EQUAL(value(SET_SPIN_US), 0);
}

static void test_unreadable_files(void)
{
	forget_environment();
	CU_ASSERT_PTR_NOT_NULL(strstr(read_path(path_of("absent")),
				      "absent: No such file or directory; the defaults are used"));
	CU_ASSERT_STRING_EQUAL(all.path, "");
	CU_ASSERT_PTR_NOT_NULL(
		strstr(read_path(unit_tmpdir()), "Is a directory; the defaults are used"));
	CU_ASSERT_STRING_EQUAL(read_path(""), "");
	CU_ASSERT_STRING_EQUAL(all.path, "");
}

/*
 * A file beyond the size limit, and files that only look like text; neither costs memory or time.
 */
static void test_no_text_files(void)
{
	const char *fifo = path_of("fifo");

	forget_environment();
	CU_ASSERT_EQUAL(mkfifo(fifo, 0600), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(read_path(path_of("fifo")),
				      "fifo: Operation not supported; the defaults are used"));
	CU_ASSERT_PTR_NOT_NULL(
		strstr(read_path("/dev/zero"), "zero: File too large; the defaults are used"));
	CU_ASSERT_STRING_EQUAL(all.path, "");
	CU_ASSERT_STRING_EQUAL(read_path("/dev/null"), "");
	CU_ASSERT_STRING_EQUAL(read_text("\xef\xbb\xbf"
					 "defaults = { spin_us = 7; };"),
			       "");
	CU_ASSERT_EQUAL(value(SET_SPIN_US), 7);
}

/* Fragments of the syntax in random order must never end the process. */
static void test_any_text(void)
{
	static const char *const pieces[] = {
		"defaults",
		"devices",
		"name",
		"spin_us",
		"log",
		" = ",
		":",
		"{",
		"}",
		"(",
		")",
		"[",
		"]",
		";",
		",",
		"\n",
		"1",
		"-",
		"0x",
		"99999999999",
		"1e5",
		".",
		"L",
		"\"",
		"\\",
		"x",
		"//",
		"#",
		"/*",
		"*/",
		"@include \"/\"",
		"@include",
		"true",
		"\"soft0\"",
		"\t",
		"\r",
		"\xff",
		"defaults = {",
		"+",
		"*",
	};
	unsigned state = 1, i, n;
	char text[400];

	forget_environment();
	atomic_store(&log_mask, 0);
	for (i = 0; i < 1000; i++) {
		text[0] = '\0';
		for (n = 0; n < 24; n++) {
			state = state * 1103515245 + 12345;
			strcat(text, pieces[(state >> 16) % (sizeof(pieces) / sizeof(pieces[0]))]);
		}
		read_text(text);
	}
	atomic_store(&log_mask, LOG_ERROR);
	CU_ASSERT_STRING_EQUAL(read_text("defaults = { spin_us = 1; };"), "");
	CU_ASSERT_EQUAL(value(SET_SPIN_US), 1);
}

static void *loads(void *arg)
{
	(void)arg;
	settings_load();
	return setting(SET_SPIN_US) == 1 && setting_for("soft0", SET_SPIN_US) == 2 ? arg : NULL;
}

static void child_load(void)
{
	pthread_t threads[4];
	void *result;
	int i;

	read_text("defaults = { spin_us = 1; }; devices = ( { name = \"soft0\"; spin_us = 2; } );");
	CU_ASSERT_EQUAL(setting(SET_SPIN_US), 0);
	CU_ASSERT_EQUAL(setting_for("soft0", SET_SPIN_US), 0);
	for (i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(pthread_create(&threads[i], NULL, loads, &all), 0);
	for (i = 0; i < 4; i++) {
		CU_ASSERT_EQUAL(pthread_join(threads[i], &result), 0);
		CU_ASSERT_PTR_EQUAL(result, &all);
	}
	setenv("DAPL_SPIN_US", "5", 1);
	settings_load();
	CU_ASSERT_EQUAL(setting(SET_SPIN_US), 1);
	CU_ASSERT_EQUAL(setting_for_ia("ofa-v2-soft", "soft0", SET_SPIN_US), 2);
}

static void test_load_once(void)
{
	forget_environment();
	fake_in_child(NULL, child_load);
}

static const struct unit_test tests[] = {
	{ "settings: without file and environment the defaults of the table are used",
	  test_defaults },
	{ "settings: the environment overrides the file", test_file_and_environment },
	{ "settings: a bad value is reported with file and line, and the default is used",
	  test_bad_values },
	{ "settings: good values of each type are accepted", test_good_values },
	{ "settings: names of interfaces are checked", test_names },
	{ "settings: a large job changes the defaults of the UD CM", test_large_job },
	{ "settings: sections of devices and IAs override the defaults", test_devices },
	{ "settings: invalid sections are reported", test_bad_devices },
	{ "settings: unknown names are reported with file and line", test_unknown },
	{ "settings: a text that is no configuration is reported", test_unreadable_texts },
	{ "settings: a file that cannot be read is reported", test_unreadable_files },
	{ "settings: FIFOs and endless files are refused, and byte order marks skipped",
	  test_no_text_files },
	{ "settings: no text ends the process", test_any_text },
	{ "settings: loaded once, by any thread", test_load_once },
};

UNIT_MAIN("settings", tests)
