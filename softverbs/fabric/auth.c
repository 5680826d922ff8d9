/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The shared secret, and the proofs that both sides of a link have it. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "softverbs/base/settings.h"
#include "softverbs/fabric/link.h"
#include "softverbs/fabric/plugin.h"
#include "util/log.h"
#include "util/text_file.h"

#define KEY_LEAST 16u
#define KEY_MOST  4096u

static_assert(SV_DIGEST == WIRE_PROOF, "a proof is a digest");

static char *key; /* constant once it is read; NULL: SOFTVERBS_FABRIC_KEY is `none` */
static size_t key_size;

/* As ssh does with its keys: a secret that other users can read is none. */
static int key_is_private(const char *path)
{
	struct stat is;

	if (stat(path, &is))
		return errno;
	return is.st_mode & S_IRWXO || (is.st_uid != geteuid() && is.st_uid) ? EPERM : 0;
}

static int key_load(const char *path)
{
	int error = text_file_read(path, KEY_MOST, &key, &key_size);

	if (!error)
		error = key_is_private(path);
	while (!error && key_size && strchr("\r\n", key[key_size - 1]))
		key_size--;
	if (!error && key_size < KEY_LEAST)
		error = ENODATA;
	if (!error)
		return 0;
	log_at(LOG_ERROR, "softverbs: no fabric: SOFTVERBS_FABRIC_KEY, %s: %s", path,
	       error == EPERM	  ? "other users may read it"
	       : error == ENODATA ? "it has less than 16 bytes"
				  : strerror(error));
	free(key);
	key = NULL;
	return error;
}

int sv_fabric_key_read(void)
{
	const char *path = sv_setting_text(SV_SET_FABRIC_KEY);

	if (key)
		return 0;
	if (!path) {
		log_at(LOG_ERROR,
		       "softverbs: no fabric: SOFTVERBS_FABRIC_KEY names no file with a secret, "
		       "see "
		       "softverbs(7)");
		return ENOKEY;
	}
	if (!strcmp(path, "none")) {
		static bool said;

		if (said)
			return 0;
		said = true;
		log_at(LOG_ERROR, "softverbs: SOFTVERBS_FABRIC_KEY=none: each process that reaches "
				  "this host's port can connect");
		return 0;
	}
	return key_load(path);
}

void sv_fabric_prove(uint8_t proof[static WIRE_PROOF], bool active,
		     const uint8_t nonce[2][WIRE_NONCE])
{
	uint8_t said[8 + 2 * WIRE_NONCE];

	memcpy(said, active ? "softverA" : "softverP", 8);
	memcpy(said + 8, nonce, 2 * WIRE_NONCE);
	sv_fabric_plugin()->digest(key ? key : "", key_size, said, sizeof(said), proof);
}

bool sv_fabric_proof_is_right(const uint8_t proof[static WIRE_PROOF], bool active,
			      const uint8_t nonce[2][WIRE_NONCE])
{
	uint8_t right[WIRE_PROOF];
	unsigned differ = 0;

	sv_fabric_prove(right, active, nonce);
	/* in a time that does not depend on where they differ */
	for (unsigned i = 0; i < WIRE_PROOF; i++)
		differ |= right[i] ^ proof[i];
	return !differ;
}
