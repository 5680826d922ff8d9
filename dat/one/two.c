/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Resolves the functions of libdat2.so.2. Both libraries use the same names, and a linker cannot define a name in one
 * version and refer to it in another, so each is looked up at run time with dlvsym(3).
 */
#include <dlfcn.h>
#include <stddef.h>
#include <unistd.h>
#include "dat/one/one.h"

struct two two;

#define ENTRY(name)                                      \
	{                                                \
		"dat_" #name, offsetof(struct two, name) \
	}
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
	const char *name;
	size_t offset;
} entries[] = {
	{ "dats_get_ia_handle", offsetof(struct two, get_ia_handle) },
	ENTRY(ia_openv),
	ENTRY(ia_close),
	ENTRY(ia_query),
	ENTRY(registry_list_providers),
	ENTRY(registry_add_provider),
	ENTRY(registry_remove_provider),
	ENTRY(strerror),
	ENTRY(set_consumer_context),
	ENTRY(get_consumer_context),
	ENTRY(get_handle_type),
	ENTRY(cno_create),
	ENTRY(cno_modify_agent),
	ENTRY(cno_query),
	ENTRY(cno_free),
	ENTRY(cno_wait),
	ENTRY(cr_query),
	ENTRY(cr_accept),
	ENTRY(cr_reject),
	ENTRY(cr_handoff),
	ENTRY(evd_create),
	ENTRY(evd_query),
	ENTRY(evd_modify_cno),
	ENTRY(evd_enable),
	ENTRY(evd_disable),
	ENTRY(evd_set_unwaitable),
	ENTRY(evd_clear_unwaitable),
	ENTRY(evd_resize),
	ENTRY(evd_wait),
	ENTRY(evd_post_se),
	ENTRY(evd_dequeue),
	ENTRY(evd_free),
	ENTRY(ep_create),
	ENTRY(ep_create_with_srq),
	ENTRY(ep_query),
	ENTRY(ep_modify),
	ENTRY(ep_connect),
	ENTRY(ep_dup_connect),
	ENTRY(ep_disconnect),
	ENTRY(ep_get_status),
	ENTRY(ep_recv_query),
	ENTRY(ep_set_watermark),
	ENTRY(ep_reset),
	ENTRY(ep_free),
	ENTRY(ep_post_send),
	ENTRY(ep_post_recv),
	ENTRY(ep_post_rdma_read),
	ENTRY(ep_post_rdma_write),
	ENTRY(lmr_create),
	ENTRY(lmr_query),
	ENTRY(lmr_free),
	ENTRY(lmr_sync_rdma_read),
	ENTRY(lmr_sync_rdma_write),
	ENTRY(rmr_create),
	ENTRY(rmr_query),
	ENTRY(rmr_bind),
	ENTRY(rmr_free),
	ENTRY(psp_create),
	ENTRY(psp_create_any),
	ENTRY(psp_query),
	ENTRY(psp_free),
	ENTRY(rsp_create),
	ENTRY(rsp_query),
	ENTRY(rsp_free),
	ENTRY(pz_create),
	ENTRY(pz_query),
	ENTRY(pz_free),
	ENTRY(srq_create),
	ENTRY(srq_query),
	ENTRY(srq_post_recv),
	ENTRY(srq_resize),
	ENTRY(srq_set_lw),
	ENTRY(srq_free),
};

_Static_assert(COUNT(entries) * sizeof(void *) == sizeof(struct two),
	       "each member of struct two has an entry");

/* A missing function ends the process, as a missing symbol does in the loader. */
static void two_fail(const char *reason)
{
	log_write("libdat.so.1 cannot use libdat2.so.2: %s", reason);
	_exit(127);
}

/* libdat2 is loaded already, and stays loaded as long as this library, which depends on it. */
__attribute__((constructor)) static void two_find(void)
{
	void *dl = dlopen("libdat2.so.2", RTLD_NOW | RTLD_LOCAL), *found;
	size_t i;

	one_log_open();
	if (!dl)
		two_fail(dlerror());
	for (i = 0; i < COUNT(entries); i++) {
		found = dlvsym(dl, entries[i].name, "DAT_2.0");
		if (!found)
			two_fail(dlerror());
		memcpy((char *)&two + entries[i].offset, &found, sizeof(found));
	}
	dlclose(dl);
}
