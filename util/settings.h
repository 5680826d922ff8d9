/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The settings of the provider: one table of names, ranges, defaults and help, filled from
 * dapl.conf and the environment.
 */
#ifndef UTIL_SETTINGS_H
#define UTIL_SETTINGS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum setting {
	SET_CM_ARP_TIMEOUT_MS,
	SET_CM_ARP_RETRY_COUNT,
	SET_CM_ROUTE_TIMEOUT_MS,
	SET_CM_ROUTE_RETRY_COUNT,
	SET_CM_TOS,
	SET_ACK_TIMER,
	SET_ACK_RETRY,
	SET_RNR_TIMER,
	SET_RNR_RETRY,
	SET_IB_MTU,
	SET_MAX_INLINE,
	SET_WR_MAX,
	SET_SGE_MAX,
	SET_EVD_QLEN_MAX,
	SET_WAIT_POLICY,
	SET_SPIN_US,
	SET_DBG_TYPE,
	SET_DBG_DEST,
	SETTINGS
};

enum setting_type {
	SETTING_NUMBER, /* least to most */
	SETTING_POWER,	/* 0, or a power of two from least to most */
	SETTING_BITS,	/* 0 to most, or the words of bits */
	SETTING_CHOICE	/* one of the words */
};

struct setting_word {
	const char *word;
	long bits;
};

struct setting_row {
	const char *name;     /* in dapl.conf */
	const char *variable; /* in the environment */
	enum setting_type type;
	bool per_device; /* may stand in the section of a device, too */
	long least, most, standard;
	/* of SETTING_BITS, SETTING_CHOICE; the last one is NULL */
	const struct setting_word *words;
	const char *help;
};

extern const struct setting_row settings_table[SETTINGS];

enum setting_origin { SETTING_STANDARD, SETTING_FILE, SETTING_ENVIRONMENT };

struct setting_value {
	long value;
	enum setting_origin origin;
	unsigned line; /* of dapl.conf, for SETTING_FILE */
};

#define SETTINGS_NAME_MAX 256 /* with its NUL: an IA name, or a shorter device name */
#define SETTINGS_DEVICES  64  /* sections; those after them are reported and ignored */

struct settings_device {
	char name[SETTINGS_NAME_MAX];
	unsigned line;
	struct setting_value values[SETTINGS]; /* SETTING_STANDARD: not set here */
};

/*
 * Holds no other memory: never freed, never moved, so that threads may read it until the process
 * ends.
 */
struct settings {
	char path[PATH_MAX]; /* of dapl.conf; empty if none was read */
	struct setting_value values[SETTINGS];
	unsigned device_count;
	struct settings_device devices[SETTINGS_DEVICES];
};

/*
 * Fills `all` from the file that DAPL_CONF names (none, if that is empty) or else
 * SYSCONFDIR/dapl.conf, if there is one, and from the environment. What is wrong is said once, with
 * its place, and as if it were not there.
 */
void settings_read(struct settings *all);

/*
 * What counts for an IA on a device, either of which may be NULL: the environment; else the section
 * of the IA; else that of the device; else the value for all devices.
 */
const struct setting_value *settings_find(const struct settings *all, const char *ia,
					  const char *device, enum setting which);

/* The settings of this process: read by the first call, whichever thread makes it. */
void settings_load(void);
long setting(enum setting which); /* for all devices; the default before settings_load */

/* Not for the data path: compares names. `device` may be an IA name. */
long setting_for(const char *device, enum setting which);
long setting_for_ia(const char *ia, const char *device, enum setting which);

/*
 * A number in decimal or after 0x in hexadecimal, or words; false if that is no value of the row.
 */
bool setting_parse(const struct setting_row *row, const char *text, long *value);
bool setting_fits(const struct setting_row *row, long value);

/* Into `text`, which is returned: a value as the file would have it, and what values there are. */
#define SETTING_TEXT_MAX 160
const char *setting_format(const struct setting_row *row, long value, char text[SETTING_TEXT_MAX]);
const char *setting_range(const struct setting_row *row, char text[SETTING_TEXT_MAX]);

/* settings_file.c: what the file says goes into `all`, over the defaults that are there. */
void settings_file_read(struct settings *all, const char *path, bool must_exist);

/*
 * settings_text.c: false, with the line said, for a text that libconfig would end the process for
 * or misread.
 */
bool settings_text_check(const char *path, const char *text);

#endif
