/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Opens an IA as programs do, and loads a provider library. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <link.h>
#include <netdb.h>
#include <stdlib.h>
#include "tools/datinfo.h"

void ia_address(const DAT_IA_ATTR *attr, char text[ADDRESS_MAX])
{
	const struct sockaddr *address = (const void *)attr->ia_address_ptr;
	socklen_t size;

	strcpy(text, "unknown");
	if (!address)
		return;
	size = address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					      : sizeof(struct sockaddr_in);
	getnameinfo(address, size, text, ADDRESS_MAX, NULL, 0, NI_NUMERICHOST);
}

static void file_of(const char *path, char file[PATH_MAX])
{
	if (!realpath(path, file))
		snprintf(file, PATH_MAX, "%s", path);
}

bool file_of_code(void *code, char file[PATH_MAX])
{
	Dl_info info;

	if (!dladdr(code, &info) || !info.dli_fname)
		return false;
	file_of(info.dli_fname, file);
	return true;
}

/* The file of the functions of an IA: the first word of its object is the provider's table. */
static void provider_file(DAT_IA_HANDLE ia, char file[PATH_MAX])
{
	const DAT_PROVIDER *provider;
	DAT_IA_HANDLE object;
	void *code;

	if (dats_get_ia_handle(ia, &object) != DAT_SUCCESS)
		return;
	memcpy(&provider, object, sizeof(provider));
	memcpy(&code, &provider->ia_query_func, sizeof(code));
	file_of_code(code, file);
}

static void opening_body(void *result)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	struct opening *opening = result;
	DAT_IA_ATTR attr = { .max_eps = 0 };
	DAT_IA_HANDLE ia;

	opening->status = dat_ia_open((DAT_NAME_PTR)opening->name, 8, &async, &ia);
	if (opening->status != DAT_SUCCESS)
		return;
	provider_file(ia, opening->provider_file);
	opening->status = dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL);
	if (opening->status == DAT_SUCCESS) {
		snprintf(opening->device, sizeof(opening->device), "%.*s", DAT_NAME_MAX_LENGTH - 1,
			 attr.adapter_name);
		ia_address(&attr, opening->address);
		if (opening->out)
			opening->status = ia_attributes(opening->out, ia);
	}
	dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
}

static void loading_body(void *result)
{
	struct loading *loading = result;
	void *dl = dlopen(loading->library, RTLD_NOW | RTLD_LOCAL);
	struct link_map *map;

	if (!dl) {
		snprintf(loading->error, sizeof(loading->error), "%s", dlerror());
		return;
	}
	if (!dlinfo(dl, RTLD_DI_LINKMAP, &map))
		file_of(map->l_name, loading->file);
	if (!dlsym(dl, DAT_PROVIDER_INIT_FUNC_STR))
		snprintf(loading->error, sizeof(loading->error), "%s has no %s", loading->library,
			 DAT_PROVIDER_INIT_FUNC_STR);
}

void loading_run(struct loading *loading)
{
	struct child child;

	child_run(loading_body, loading, sizeof(*loading), &child);
	if (child.end != CHILD_RETURNED)
		snprintf(loading->error, sizeof(loading->error), "%s cannot be loaded",
			 loading->library);
	free(child.messages);
}

void attempt_run(struct attempt *attempt, const char *name, struct out *attributes)
{
	struct opening *opening = &attempt->opening;

	opening->name = name;
	opening->out = attributes;
	child_run(opening_body, opening, sizeof(*opening), &attempt->child);
	if (!attempt->library || attempt_succeeded(attempt))
		return;
	attempt->loading.library = attempt->library;
	loading_run(&attempt->loading);
}

void attempt_end(struct attempt *attempt)
{
	free(attempt->child.messages);
}
