/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Attributes of a provider that is opened only for the query. */

#include <string.h>

#include "dtestx.h"

static bool attributes_show(const DAT_IA_ATTR *ia, const DAT_PROVIDER_ATTR *provider)
{
	const struct sockaddr *sa = ia->ia_address_ptr;
	char text[ADDRESS_TEXT];

	if (!sa || provider->num_provider_specific_attr <= 0) {
		complain("Error dat_ib_open_query: %s", sa ? "no attributes" : "no address");
		return false;
	}
	note("Open_Query: Local Address %s - %s",
	     sa->sa_family == AF_INET6 ? "AF_INET6" : "AF_INET", address_text(sa, text));
	for (int i = 0; i < provider->num_provider_specific_attr; i++)
		note("Open_Query: Provider Specific Attribute[%d] %s=%s", i,
		     provider->provider_specific_attr[i].name,
		     provider->provider_specific_attr[i].value);
	return true;
}

bool x_query(struct x_test *t)
{
	DAT_PROVIDER_ATTR provider;
	DAT_HANDLE handle = DAT_HANDLE_NULL;
	DAT_IA_ATTR ia;
	DAT_RETURN ret;
	bool shown;

	memset(&ia, 0, sizeof(ia));
	memset(&provider, 0, sizeof(provider));
	watchdog_set(adapter_limit(&t->a, PART_SECONDS));
	ret = dat_ib_open_query(t->a.provider, &handle, DAT_IA_FIELD_ALL, &ia,
				DAT_PROVIDER_FIELD_ALL, &provider);
	if (!dat_ok(ret, "dat_ib_open_query"))
		return false;
	shown = attributes_show(&ia, &provider);
	return dat_ok(dat_ib_close_query(handle), "dat_ib_close_query") && shown;
}
