/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The file softverbs.conf: lines NAME = value, and comments after '#'. */
#ifndef SV_BASE_SETTINGS_FILE_H
#define SV_BASE_SETTINGS_FILE_H

#include "softverbs/base/settings.h"

const char *sv_setting_name(enum sv_setting which); /* settings.c: as in the environment */

/* The text of a setting in the file, and its line; NULL if it is not there. The first call reads the file:
 * the one that SOFTVERBS_CONF names (none, if that is empty), or else SYSCONFDIR/softverbs.conf. Faults are
 * logged once, with their line. */
const char *sv_settings_file_text(enum sv_setting which, unsigned *line);

/* Its path, if the first call above found one; else an empty string. */
const char *sv_settings_file_path(void);

#endif
