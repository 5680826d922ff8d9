/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Links that have not proven the key are limited. A peer speaks as soon as it has connected, so that a silent one makes room. */
#include "softverbs/fabric/unproven.h"
#include "util/clock.h"

#define UNPROVEN    128u
#define SILENT_TIME (200 * NSEC_PER_MSEC)

static TAILQ_HEAD(, fabric_link) unproven = TAILQ_HEAD_INITIALIZER(unproven); /* by age */
static unsigned count;

void sv_unproven_add(struct fabric_link *link)
{
	link->accepted_at = clock_now();
	TAILQ_INSERT_TAIL(&unproven, link, unproven_entry);
	count++;
}

void sv_unproven_remove(struct fabric_link *link)
{
	TAILQ_REMOVE(&unproven, link, unproven_entry);
	count--;
}

bool sv_unproven_has_room(void)
{
	return count < UNPROVEN;
}

struct fabric_link *sv_unproven_silent(void)
{
	struct fabric_link *link;

	TAILQ_FOREACH(link, &unproven, unproven_entry)
		if (link->state == FABRIC_PRELUDE)
			break;
	return link && clock_now() - link->accepted_at >= SILENT_TIME ? link : NULL;
}

void sv_unproven_forget(void)
{
	TAILQ_INIT(&unproven);
	count = 0;
}
