/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Processes that listened when a search found them, so that the next request needs no search. */
#include <string.h>
#include "softverbs/cm/cm.h"

#define KNOWN 64

static struct entry { /* indexed by space and number */
	struct sv_ip ip;
	uint32_t space;
	uint16_t number;
	struct cm_known process; /* zeros: empty */
} entries[KNOWN];

static struct entry *entry_of(uint32_t space, uint16_t number)
{
	return &entries[(space * 31 + number) % KNOWN];
}

void sv_cm_known_keep_locked(const struct cm_id *id, uint16_t slot, const uint64_t nonce[2])
{
	uint16_t number;
	struct sv_ip ip;

	if (sv_ip_from_sockaddr(&ip, &number, &id->id.route.addr.dst_addr))
		return;
	*entry_of(id->id.ps, number) =
		(struct entry){ .ip = ip,
				.space = id->id.ps,
				.number = number,
				.process = { .slot = slot, .nonce = { nonce[0], nonce[1] } } };
}

const struct cm_known *sv_cm_known_find_locked(uint32_t space, uint16_t number,
					       const struct sv_ip *ip)
{
	const struct entry *entry = entry_of(space, number);

	return (entry->process.nonce[0] | entry->process.nonce[1]) && entry->space == space &&
			       entry->number == number && sv_ip_same(&entry->ip, ip)
		       ? &entry->process
		       : NULL;
}

void sv_cm_known_drop_locked(uint32_t space, uint16_t number)
{
	memset(entry_of(space, number), 0, sizeof(struct entry));
}
