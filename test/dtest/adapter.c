/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* One open adapter and the objects made on it; every call is checked and timed. */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapter.h"

double adapter_limit(const struct adapter *a, double usual)
{
	return a->limit > 0 ? a->limit : usual;
}

/* Prints lines that only -v shows. */
void adapter_tell(const struct adapter *a, const char *fmt, ...)
{
	char text[256];
	va_list args;

	if (!a->verbose)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	note("%s", text);
}

bool adapter_did(struct adapter *a, enum call_kind kind, uint64_t start, DAT_RETURN ret,
		 const char *call)
{
	double us = clock_us_since(start);

	if (!dat_ok(ret, call))
		return false;
	a->took_us[kind] += us;
	a->calls[kind]++;
	adapter_tell(a, "%s: %.2f us", call, us);
	return true;
}

void adapter_freed(struct adapter *a, DAT_RETURN ret, const char *call)
{
	if (!dat_ok(ret, call))
		a->failed = true;
}

const char *named_find(const DAT_NAMED_ATTR *named, int count, const char *name)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(named[i].name, name))
			return named[i].value;
	return NULL;
}

bool adapter_has(const struct adapter *a, const char *name)
{
	const char *value = named_find(a->named, a->named_count, name);

	return value && !strcmp(value, "TRUE");
}

void adapter_name(struct adapter *a, const char *provider)
{
	memset(a->provider, 0, sizeof(a->provider));
	memcpy(a->provider, provider, strnlen(provider, sizeof(a->provider) - 1));
}

static bool adapter_query(struct adapter *a, uint64_t qual)
{
	DAT_PROVIDER_ATTR provider;
	const struct sockaddr *sa;
	char text[ADDRESS_TEXT];
	DAT_RETURN ret;

	memset(&provider, 0, sizeof(provider));
	ret = dat_ia_query(a->ia, NULL, DAT_IA_FIELD_ALL, &a->attr,
			   DAT_PROVIDER_FIELD_PROVIDER_SPECIFIC_ATTR, &provider);
	if (!dat_ok(ret, "dat_ia_query"))
		return false;
	sa = a->attr.ia_address_ptr;
	if (!sa) {
		complain("Error dat_ia_query: no address");
		return false;
	}
	memcpy(&a->addr, sa,
	       sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					 : sizeof(struct sockaddr_in));
	a->named = provider.provider_specific_attr;
	a->named_count = provider.num_provider_specific_attr;
	note("Local Address %s - %s port %llu", sa->sa_family == AF_INET6 ? "AF_INET6" : "AF_INET",
	     address_text(sa, text), (unsigned long long)qual);
	for (int i = 0; i < a->named_count; i++)
		adapter_tell(a, "Provider Specific Attribute[%d] %s=%s", i, a->named[i].name,
			     a->named[i].value);
	return true;
}

/* Opens the adapter that adapter_name() named, and makes the PZ. */
bool adapter_open(struct adapter *a, uint64_t qual)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	uint64_t start = clock_ns();
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;

	watchdog_set(adapter_limit(a, PART_SECONDS));
	if (!adapter_did(a, CALL_OPEN, start, dat_ia_open(a->provider, 8, &async, &ia),
			 "dat_ia_open")) {
		open_hint(a->provider, "-P");
		return false;
	}
	a->ia = ia;
	a->async_evd = async;
	if (!adapter_query(a, qual))
		return false;
	start = clock_ns();
	if (!adapter_did(a, CALL_PZ_CREATE, start, dat_pz_create(a->ia, &pz), "dat_pz_create"))
		return false;
	a->pz = pz;
	return true;
}

/* Closes what adapter_open() has opened. */
void adapter_close(struct adapter *a)
{
	uint64_t start = clock_ns();

	watchdog_set(adapter_limit(a, PART_SECONDS));
	if (a->pz && !adapter_did(a, CALL_PZ_FREE, start, dat_pz_free(a->pz), "dat_pz_free"))
		a->failed = true;
	a->pz = DAT_HANDLE_NULL;
	start = clock_ns();
	if (a->ia && !adapter_did(a, CALL_CLOSE, start, dat_ia_close(a->ia, DAT_CLOSE_ABRUPT_FLAG),
				  "dat_ia_close"))
		a->failed = true;
	a->ia = DAT_HANDLE_NULL;
	a->async_evd = DAT_HANDLE_NULL;
	a->named_count = 0;
}

bool evd_create(struct adapter *a, int qlen, DAT_EVD_FLAGS flags, DAT_EVD_HANDLE *evd)
{
	uint64_t start = clock_ns();
	DAT_EVD_HANDLE made;
	DAT_EVD_PARAM param;

	if (!adapter_did(a, CALL_EVD_CREATE, start,
			 dat_evd_create(a->ia, qlen, DAT_HANDLE_NULL, flags, &made),
			 "dat_evd_create"))
		return false;
	*evd = made;
	memset(&param, 0, sizeof(param));
	if (!dat_ok(dat_evd_query(made, DAT_EVD_FIELD_EVD_QLEN, &param), "dat_evd_query"))
		return false;
	if (param.evd_qlen < qlen) {
		complain("Error dat_evd_create: asked for %d events, got room for %d", qlen,
			 param.evd_qlen);
		return false;
	}
	return true;
}

void evd_free(struct adapter *a, DAT_EVD_HANDLE *evd)
{
	uint64_t start = clock_ns();

	if (*evd && !adapter_did(a, CALL_EVD_FREE, start, dat_evd_free(*evd), "dat_evd_free"))
		a->failed = true;
	*evd = DAT_HANDLE_NULL;
}

bool memory_create(struct adapter *a, struct memory *m, size_t size, int privileges)
{
	DAT_REGION_DESCRIPTION where;
	DAT_VLEN registered_size;
	DAT_VADDR registered_at;
	DAT_LMR_HANDLE lmr;
	DAT_RETURN ret;
	uint64_t start;
	void *base;

	if (posix_memalign(&base, 64, size)) {
		complain("Error: no memory for %zu bytes", size);
		return false;
	}
	memset(base, 0, size);
	m->base = base;
	memset(&where, 0, sizeof(where));
	where.for_va = base;
	start = clock_ns();
	ret = dat_lmr_create(a->ia, DAT_MEM_TYPE_VIRTUAL, where, size, a->pz,
			     (DAT_MEM_PRIV_FLAGS)privileges, DAT_VA_TYPE_VA, &lmr, &m->lkey,
			     &m->rkey, &registered_size, &registered_at);
	if (!adapter_did(a, CALL_LMR_CREATE, start, ret, "dat_lmr_create"))
		return false;
	m->lmr = lmr;
	if (registered_at > (uintptr_t)base ||
	    registered_size < size + ((uintptr_t)base - registered_at)) {
		complain("Error dat_lmr_create: registered less than asked");
		return false;
	}
	return true;
}

/* Memory is not freed while it may still be registered. */
void memory_free(struct adapter *a, struct memory *m)
{
	uint64_t start = clock_ns();

	if (m->lmr && !adapter_did(a, CALL_LMR_FREE, start, dat_lmr_free(m->lmr), "dat_lmr_free"))
		a->failed = true;
	else
		free(m->base);
	memset(m, 0, sizeof(*m));
}

DAT_LMR_TRIPLET memory_part(const struct memory *m, size_t offset, uint32_t length)
{
	DAT_LMR_TRIPLET part;

	memset(&part, 0, sizeof(part));
	part.virtual_address = (DAT_VADDR)(uintptr_t)(m->base + offset);
	part.segment_length = length;
	part.lmr_context = m->lkey;
	return part;
}

void ep_free(struct adapter *a, DAT_EP_HANDLE *ep)
{
	uint64_t start = clock_ns();

	if (*ep && !adapter_did(a, CALL_EP_FREE, start, dat_ep_free(*ep), "dat_ep_free"))
		a->failed = true;
	*ep = DAT_HANDLE_NULL;
}

void psp_free(struct adapter *a, DAT_PSP_HANDLE *psp)
{
	if (*psp)
		adapter_freed(a, dat_psp_free(*psp), "dat_psp_free");
	*psp = DAT_HANDLE_NULL;
}

/* Only this EVD reports errors that belong to no connection. */
void async_check(struct adapter *a)
{
	DAT_EVENT event;
	bool found;

	while (a->async_evd && event_look(a->async_evd, &event, &found) && found) {
		complain("Error asynchronous event: %s", event_name(event.event_number));
		a->failed = true;
	}
}
