/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The table of libsoftverbs-fabric.so.1. */
#include <nettle/hmac.h>
#include "softverbs/fabric/plugin.h"

static void hmac(const void *key, size_t key_size, const void *data, size_t size,
		 uint8_t out[SV_DIGEST])
{
	struct hmac_sha256_ctx context;

	hmac_sha256_set_key(&context, key_size, key);
	hmac_sha256_update(&context, size, data);
	hmac_sha256_digest(&context, SV_DIGEST, out);
}

extern const struct sv_fabric_plugin sv_fabric_plugin_1;
__attribute__((visibility("default"))) const struct sv_fabric_plugin sv_fabric_plugin_1 = {
	.digest = hmac,
};
