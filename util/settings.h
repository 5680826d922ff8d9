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
	SET_SCM_NETDEV,
	SET_UCM_REP_TIME,
	SET_UCM_RTU_TIME,
	SET_UCM_RETRY,
	SET_UCM_DREP_TIME,
	SET_UCM_DREQ_RETRY,
	SET_UCM_WAIT_TIME,
	SET_UCM_QP_SIZE,
	SET_NETWORK_PROCESS_NUM,
	SET_NETWORK_NODES,
	SET_NETWORK_PPN,
	SET_NETWORK_THRESHOLD,
	SET_IB_SL,
	SET_IB_PKEY,
	SET_GLOBAL_ROUTING,
	SET_HOP_LIMIT,
	SET_TCLASS,
	SET_MAX_INLINE,
	SET_WR_MAX,
	SET_SGE_MAX,
	SET_EVD_QLEN_MAX,
	SET_WAIT_POLICY,
	SET_SPIN_US,
	SET_ASYNC_CANCEL,
	SET_DBG_TYPE,
	SET_DBG_DEST,
	SETTINGS
};

enum setting_type {
	SETTING_NUMBER, /* least to most */
	SETTING_POWER,	/* 0, or a power of two from least to most */
	SETTING_BITS,	/* 0 to most, or words for the bits */
	SETTING_CHOICE, /* one of the words */
	SETTING_NAME	/* a network interface, or empty; the number is 0 */
};

struct setting_word {
	const char *word;
	long bits;
};

struct setting_row {
	const char *name;     /* its name in dapl.conf */
	const char *variable; /* its name in the environment */
	enum setting_type type;
	bool per_device; /* the section of a device may set it, too */
	long least, most, standard;
	/* of SETTING_BITS and SETTING_CHOICE; the last one is NULL */
	const struct setting_word *words;
	const char *help;
};

extern const struct setting_row settings_table[SETTINGS];

enum setting_origin { SETTING_STANDARD, SETTING_FILE, SETTING_ENVIRONMENT };

#define SETTING_WORD_MAX 16 /* with its NUL: IFNAMSIZ */

struct setting_value {
	long value;
	enum setting_origin origin;
	unsigned line;		     /* line in dapl.conf, for SETTING_FILE */
	char name[SETTING_WORD_MAX]; /* of SETTING_NAME */
};

#define SETTINGS_NAME_MAX 256 /* with its NUL: an IA name, or a shorter device name */
#define SETTINGS_DEVICES  64  /* sections beyond this number are reported and ignored */

struct settings_device {
	char name[SETTINGS_NAME_MAX];
	unsigned line;
	struct setting_value values[SETTINGS]; /* SETTING_STANDARD if it is not set here */
};

/*
 * Holds no other memory and is never freed or moved, so that threads may read it until the process
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
 * SYSCONFDIR/dapl.conf, if there is one, and from the environment. An error is logged once, with
 * its place, and the faulty item is ignored.
 */
void settings_read(struct settings *all);

/*
 * Returns the value in effect for an IA on a device, either of which may be NULL: that of the environment; else of the
 * section of the IA; else of the device; else for all devices.
 */
const struct setting_value *settings_find(const struct settings *all, const char *ia,
					  const char *device, enum setting which);

/* The settings of this process: read by the first call, whichever thread makes it. */
void settings_load(void);
long setting(enum setting which); /* the value for all devices; the default before settings_load */

/* Not for the data path, because it compares names. `device` may be an IA name. */
long setting_for(const char *device, enum setting which);
long setting_for_ia(const char *ia, const char *device, enum setting which);

/* Returns the name of a SETTING_NAME, valid until the process ends. */
const char *setting_name_for(const char *device, enum setting which);

/*
 * Parses a decimal number, a hexadecimal number after 0x, words, or a name; returns false if that
 * is not a value of the row. Sets the number and the name of `value`.
 */
bool setting_parse(const struct setting_row *row, const char *text, struct setting_value *value);
bool setting_fits(const struct setting_row *row, long value);

/*
 * Write to `text`, and return it: a number or a value in the syntax of the file, and the valid
 * values.
 */
#define SETTING_TEXT_MAX 160
const char *setting_format(const struct setting_row *row, long value, char text[SETTING_TEXT_MAX]);
const char *setting_show(const struct setting_row *row, const struct setting_value *value,
			 char text[SETTING_TEXT_MAX]);
const char *setting_range(const struct setting_row *row, char text[SETTING_TEXT_MAX]);

/* settings_file.c: reads the file into `all`, replacing the defaults. */
void settings_file_read(struct settings *all, const char *path, bool must_exist);

/* settings_job.c: adapts the defaults to the size of the job. */
void settings_job(struct settings *all);

/*
 * settings_text.c: returns false, and logs the line, for a text that libconfig would misread or end the process for.
 */
bool settings_text_check(const char *path, const char *text);

#endif
