/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* What the environment says about the device: one table of variables, ranges and defaults. */
#ifndef SV_SETTINGS_H
#define SV_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

enum sv_setting {
	SV_SET_COPY,  /* enum sv_copy_wish */
	SV_SET_EAGER, /* bytes */
	SV_SET_AREA_MB,
	SV_SET_LOG, /* LOG_* of util/log.h */
	SV_SETTINGS
};

enum sv_copy_wish {
	SV_WISH_AUTO,
	SV_WISH_PVM,
	SV_WISH_MEMFD,
	SV_WISH_BOUNCE,
};

/*
 * The value, or the default with one line for one that is none. Looked up each time: not for the
 * data path. A set-uid program has the defaults.
 */
unsigned long sv_setting(enum sv_setting which);

/* SOFTVERBS_VENDOR=vendor:part, for programs that know a device by its numbers; left alone else. */
void sv_setting_vendor(uint32_t *vendor, uint32_t *part);

/* SOFTVERBS_DIR: where processes meet that share no network namespace; NULL: not set. */
const char *sv_setting_folder(void);

#endif
