/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A device with the numbers of another one, preloaded before programs that use some features only
 * on devices that they recognise: VERBS_VENDOR is vendor:part.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <infiniband/verbs.h>

/* The program calls these functions in the place of the library's functions. */
#define INSTEAD __attribute__((visibility("default")))

INSTEAD int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	__typeof__(&ibv_query_device) next =
		(__typeof__(&ibv_query_device))dlsym(RTLD_NEXT, "ibv_query_device");
	const char *text = getenv("VERBS_VENDOR");
	int error = next(context, attr);

	if (!error && text &&
	    sscanf(text, "%i:%i", (int *)&attr->vendor_id, (int *)&attr->vendor_part_id) != 2) {
		fprintf(stderr, "verbs-vendor: VERBS_VENDOR=%s: not vendor:part\n", text);
		exit(2);
	}
	return error;
}
