/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The provider: its table, and the three symbols that the registry uses. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include "dapl/udapl/base/ia.h"
#include "dapl/udapl/base/provider.h"
#include "dapl/udapl/ia/rooms.h"
#include "dapl/udapl/ia/wrapped.h"
#include "util/log.h"
#include "util/settings.h"

#define EXPORT __attribute__((visibility("default")))

/* Serves extension operations that this provider does not have. */
DAT_RETURN dapl_not_implemented(void)
{
	return DAT_ERROR(DAT_NOT_IMPLEMENTED, 0);
}

static const DAT_PROVIDER table = {
	.ia_open_func = dapl_ia_open,
	.ia_query_func = dapl_ia_query,
	.ia_close_func = dapl_ia_close,
	.set_consumer_context_func = dapl_set_consumer_context,
	.get_consumer_context_func = dapl_get_consumer_context,
	.get_handle_type_func = dapl_get_handle_type,
	.cno_create_func = dapl_cno_create,
	.cno_modify_agent_func = dapl_cno_modify_agent,
	.cno_query_func = dapl_cno_query,
	.cno_free_func = dapl_cno_free,
	.cno_wait_func = dapl_cno_wait,
	.cr_query_func = dapl_cr_query,
	.cr_accept_func = dapl_cr_accept,
	.cr_reject_func = dapl_cr_reject,
	.cr_handoff_func = dapl_cr_handoff,
	.evd_create_func = dapl_evd_create,
	.evd_query_func = dapl_evd_query,
	.evd_modify_cno_func = dapl_evd_modify_cno,
	.evd_enable_func = dapl_evd_enable,
	.evd_disable_func = dapl_evd_disable,
	.evd_wait_func = dapl_evd_wait,
	.evd_resize_func = dapl_evd_resize,
	.evd_post_se_func = dapl_evd_post_se,
	.evd_dequeue_func = dapl_evd_dequeue,
	.evd_free_func = dapl_evd_free,
	.ep_create_func = dapl_ep_create,
	.ep_query_func = dapl_ep_query,
	.ep_modify_func = dapl_ep_modify,
	.ep_connect_func = dapl_ep_connect,
	.ep_dup_connect_func = dapl_ep_dup_connect,
	.ep_disconnect_func = dapl_ep_disconnect,
	.ep_post_send_func = dapl_ep_post_send,
	.ep_post_recv_func = dapl_ep_post_recv,
	.ep_post_rdma_read_func = dapl_ep_post_rdma_read,
	.ep_post_rdma_write_func = dapl_ep_post_rdma_write,
	.ep_get_status_func = dapl_ep_get_status,
	.ep_free_func = dapl_ep_free,
	.lmr_create_func = dapl_lmr_create,
	.lmr_query_func = dapl_lmr_query,
	.lmr_free_func = dapl_lmr_free,
	.rmr_create_func = dapl_rmr_create,
	.rmr_query_func = dapl_rmr_query,
	.rmr_bind_func = dapl_rmr_bind,
	.rmr_free_func = dapl_rmr_free,
	.psp_create_func = dapl_psp_create,
	.psp_query_func = dapl_psp_query,
	.psp_free_func = dapl_psp_free,
	.rsp_create_func = dapl_rsp_create,
	.rsp_query_func = dapl_rsp_query,
	.rsp_free_func = dapl_rsp_free,
	.pz_create_func = dapl_pz_create,
	.pz_query_func = dapl_pz_query,
	.pz_free_func = dapl_pz_free,
	.psp_create_any_func = dapl_psp_create_any,
	.ep_reset_func = dapl_ep_reset,
	.evd_set_unwaitable_func = dapl_evd_set_unwaitable,
	.evd_clear_unwaitable_func = dapl_evd_clear_unwaitable,
	.lmr_sync_rdma_read_func = dapl_lmr_sync_rdma_read,
	.lmr_sync_rdma_write_func = dapl_lmr_sync_rdma_write,
	.ep_create_with_srq_func = dapl_ep_create_with_srq,
	.ep_recv_query_func = dapl_ep_recv_query,
	.ep_set_watermark_func = dapl_ep_set_watermark,
	.srq_create_func = dapl_srq_create,
	.srq_free_func = dapl_srq_free,
	.srq_post_recv_func = dapl_srq_post_recv,
	.srq_query_func = dapl_srq_query,
	.srq_resize_func = dapl_srq_resize,
	.srq_set_lw_func = dapl_srq_set_lw,
	.csp_create_func = dapl_csp_create,
	.csp_query_func = dapl_csp_query,
	.csp_free_func = dapl_csp_free,
	.ep_common_connect_func = dapl_ep_common_connect,
	.rmr_create_for_ep_func = dapl_rmr_create_for_ep,
	.ep_post_send_with_invalidate_func = dapl_ep_post_send_with_invalidate,
	.ep_post_rdma_read_to_rmr_func = dapl_ep_post_rdma_read_to_rmr,
	.cno_fd_create_func = dapl_cno_fd_create,
	.cno_trigger_func = dapl_cno_trigger,
	.ia_ha_related_func = dapl_ia_ha_related,
	.handle_extendedop_func = dapl_extensions,
};

/*
 * An IA name that the registry announced. It stays with its table until unload, because stale
 * handles lead to it.
 */
struct name {
	SLIST_ENTRY(name) entry;
	DAT_PROVIDER table; /* the table of this name; device_name is `text` */
	char text[DAT_NAME_MAX_LENGTH];
	char *params;
	DAT_BOOLEAN thread_safe; /* the name in the registry's list */
	bool registered;
};

static SLIST_HEAD(, name) names = SLIST_HEAD_INITIALIZER(names);
static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;

void names_fork_prepare(void)
{
	pthread_mutex_lock(&names_lock);
}

void names_fork_end(void)
{
	pthread_mutex_unlock(&names_lock);
}

static struct name *name_find_locked(const char *text)
{
	struct name *name;

	SLIST_FOREACH(name, &names, entry)
		if (!strcmp(name->text, text))
			break;
	return name;
}

const DAT_PROVIDER *provider_find(const char *text, const char **params, DAT_BOOLEAN *thread_safe)
{
	struct name *name;

	pthread_mutex_lock(&names_lock);
	name = name_find_locked(text);
	if (name && !name->registered)
		name = NULL;
	if (name) {
		*params = name->params;
		*thread_safe = name->thread_safe;
	}
	pthread_mutex_unlock(&names_lock);
	return name ? &name->table : NULL;
}

/*
 * Finds or adds the name and stores the parameters of this announcement. Returns NULL without
 * memory.
 */
static struct name *name_add(const DAT_PROVIDER_INFO *info, const char *params)
{
	char *copy = strdup(params ? params : "");
	struct name *name;

	if (!copy)
		return NULL;
	pthread_mutex_lock(&names_lock);
	name = name_find_locked(info->ia_name);
	if (!name) {
		name = calloc(1, sizeof(*name));
		if (name) {
			snprintf(name->text, sizeof(name->text), "%s", info->ia_name);
			name->table = table;
			name->table.device_name = name->text;
			if (log_on(LOG_TRACE) || setting(SET_ASYNC_CANCEL))
				wrapped_put(&name->table);
			SLIST_INSERT_HEAD(&names, name, entry);
		}
	}
	if (name) {
		free(name->params);
		name->params = copy;
		name->thread_safe = info->is_thread_safe;
		name->registered = true;
	} else {
		free(copy);
	}
	pthread_mutex_unlock(&names_lock);
	return name;
}

/* Returns the name if it was announced and not withdrawn since. */
static struct name *name_withdraw(const char *text)
{
	struct name *name;

	pthread_mutex_lock(&names_lock);
	name = name_find_locked(text);
	if (name && !name->registered)
		name = NULL;
	if (name)
		name->registered = false;
	pthread_mutex_unlock(&names_lock);
	return name;
}

bool provider_has_own_registry(void)
{
	/*
	 * The symbol is found among the libraries that this one is linked with; OFED's libdat2 does
	 * not have it.
	 */
	return dlsym(RTLD_DEFAULT, "dat_registry_providers_related");
}

static const char *type_of(DAT_RETURN status)
{
	const char *type = "an unknown status", *detail;

	dat_strerror(status, &type, &detail);
	return type;
}

static void provider_start(void)
{
	log_open("dapl", LOG_ERROR | LOG_WARN, LOG_TO_STDERR);
	settings_load();
	fork_register();
	log_open("dapl", (unsigned)setting(SET_DBG_TYPE), (unsigned)setting(SET_DBG_DEST));
}

EXPORT void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *params)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct name *name;
	DAT_RETURN status;

	pthread_once(&once, provider_start);
	name = name_add(info, params);
	if (!name) {
		log_at(LOG_ERROR, "%s: no memory", info->ia_name);
		return;
	}
	status = dat_registry_add_provider(&name->table, info);
	if (status != DAT_SUCCESS) {
		log_at(LOG_ERROR, "%s: the registry refuses it: %s", info->ia_name,
		       type_of(status));
		name_withdraw(info->ia_name);
	}
}

EXPORT void dat_provider_fini(const DAT_PROVIDER_INFO *info)
{
	struct name *name = name_withdraw(info->ia_name);
	DAT_RETURN status;

	if (!name)
		return;
	status = dat_registry_remove_provider(&name->table, info);
	if (status != DAT_SUCCESS)
		log_at(LOG_WARN, "%s: the registry keeps it: %s", info->ia_name, type_of(status));
}

__attribute__((constructor)) static void provider_load(void)
{
	rooms_open();
}

/*
 * A process may end with open IAs whose event threads still run; then everything is left unchanged.
 */
__attribute__((destructor)) static void provider_unload(void)
{
	struct name *name;

	if (!TAILQ_EMPTY(&ia_all))
		return;
	while ((name = SLIST_FIRST(&names))) {
		SLIST_REMOVE_HEAD(&names, entry);
		free(name->params);
		free(name);
	}
	obj_pools_free();
}
