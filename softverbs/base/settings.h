/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The settings of the device: one table of names, ranges and defaults; their values come from the environment,
 * or else from the file softverbs.conf. */
#ifndef SV_BASE_SETTINGS_H
#define SV_BASE_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>
#include "softverbs/base/shared.h"

enum sv_setting {
	SV_SET_COPY,   /* enum sv_copy_wish */
	SV_SET_EAGER,  /* bytes */
	SV_SET_DIRECT, /* enum sv_direct_wish */
	SV_SET_LINK,   /* enum sv_link_wish */
	SV_SET_LOG,    /* LOG_* of util/log.h */
	SV_SET_DIR, /* a text: the folder in which processes of different network namespaces meet */
	SV_SET_FABRIC,	       /* a text: how processes of other hosts are reached; "off" */
	SV_SET_FABRIC_ADDRESS, /* a text: an address or interface of this host */
	SV_SET_FABRIC_PORT,
	SV_SET_FABRIC_KEY,     /* a text: the file of the shared secret, or "none" */
	SV_SET_FABRIC_TIMEOUT, /* seconds after which a silent host counts as gone */
	SV_SETTINGS
};

enum sv_copy_wish {
	SV_WISH_AUTO,
	SV_WISH_PVM,
	SV_WISH_MEMFD,
	SV_WISH_BOUNCE,
};

/* Which memory of a peer this process maps, and lets its peers map, for RDMA. */
enum sv_direct_wish {
	SV_DIRECT_OFF,
	SV_DIRECT_SHARED,  /* memory that is shared already */
	SV_DIRECT_PRIVATE, /* private memory that is used often, too */
};

/* How the port presents itself; messages take the same path either way. */
enum sv_link_wish {
	SV_LINK_ETHERNET,
	SV_LINK_INFINIBAND,
};

/* The value of a setting that is a number or a word; its default, with one log line in all, if the value is invalid.
 * Reads the environment at each call, and the file at the first one: not for the data path. A set-uid program
 * ignores the environment. */
SV_SHARED unsigned long sv_setting(enum sv_setting which);

/* The LID of the only port; 0 if it presents itself as Ethernet. As sv_setting, not for the data path. */
static inline uint16_t sv_lid(void)
{
	return sv_setting(SV_SET_LINK) == SV_LINK_INFINIBAND ? 1 : 0;
}

/* A setting that is a text, or its default; NULL if that is empty. */
SV_SHARED const char *sv_setting_text(enum sv_setting which);

/* For programs that list the settings. */
struct sv_setting_shown {
	const char *name,
		*value;	      /* the value in effect; valid until the next call in this thread */
	const char *variable; /* not NULL: the value comes from the environment */
	const char *file;     /* not NULL: from this line of this file */
	unsigned line;
};
SV_SHARED void sv_setting_show(enum sv_setting which, struct sv_setting_shown *shown);

#endif
