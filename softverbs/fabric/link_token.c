/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The links that are ready, by the token with which a peer's messages to the endpoint begin. */
#include <string.h>
#include "softverbs/fabric/link.h"

static LIST_HEAD(, fabric_link) by_token[256]; /* fabric's lock */

void sv_fabric_link_opened_locked(struct fabric_link *link)
{
	link->state = FABRIC_READY;
	LIST_INSERT_HEAD(&by_token[link->token % 256], link, token_entry);
}

struct fabric_peer *sv_fabric_link_peer_locked(uint64_t token)
{
	struct fabric_link *link;

	LIST_FOREACH(link, &by_token[token % 256], token_entry)
		if (link->token == token)
			return link->peer;
	return NULL;
}

void sv_fabric_tokens_forget(void)
{
	memset(by_token, 0, sizeof(by_token));
}
