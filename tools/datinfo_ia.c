/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The attributes of an IA and of its provider. */
#include <stdlib.h>
#include "tools/datinfo.h"

enum kind {
	KIND_TEXT,
	KIND_COUNT,
	KIND_U32,
	KIND_U64,
	KIND_BOOL,
	KIND_ADDRESS,
	KIND_ENUM,
	KIND_BITS
};

/*
 * Prints the words of an enum, which are those of 0, 1, 2...; of bits, the word of 0, if it is
 * always printed, then those of 1, 2, 4...
 */
struct attr {
	const char *name;
	enum kind kind;
	size_t offset;
	const char *const *words;
	size_t word_count;
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define ATTR(type, member, kind)                               \
	{                                                      \
#member, kind, offsetof(type, member), NULL, 0 \
	}
#define WORDS(type, member, kind, list)                                  \
	{                                                                \
#member, kind, offsetof(type, member), list, COUNT(list) \
	}
#define IA(member, kind)       ATTR(DAT_IA_ATTR, member, kind)
#define PROVIDER(member, kind) ATTR(DAT_PROVIDER_ATTR, member, kind)

static const char *const extensions[] = { "NONE", "IB", "IW" };
static const char *const mem_types[] = { "VIRTUAL", "LMR", "SHARED_VIRTUAL" };
static const char *const iov_owners[] = { "CONSUMER", "PROVIDER_NOMOD", "PROVIDER_MOD" };
static const char *const qos[] = { "BEST_EFFORT", "HIGH_THROUGHPUT", "LOW_LATENCY", "ECONOMY",
				   "PREMIUM" };
static const char *const completions[] = {
	"DEFAULT",	 "SUPPRESS",	  "SOLICITED_WAIT",	 "UNSIGNALLED",
	"BARRIER_FENCE", "EVD_THRESHOLD", "LMR_INVALIDATE_FENCE"
};
static const char *const ep_creators[] = { "NEVER", "IFASKED", "ALWAYS" };
static const char *const pz_support[] = { "UNIQUE", "SHAREABLE" };
static const char *const rmr_scopes[] = { "EP", "PZ", "ANY" };
static const char *const ha_lb[] = { NULL, "INTERCOMM", "INTRACOMM" };
static const char *const streams[] = { "SOFTWARE", "CR", "DTO", "CONNECTION", "RMR_BIND", "ASYNC" };

static const struct attr ia_attrs[] = {
	IA(adapter_name, KIND_TEXT),
	IA(vendor_name, KIND_TEXT),
	IA(hardware_version_major, KIND_U32),
	IA(hardware_version_minor, KIND_U32),
	IA(firmware_version_major, KIND_U32),
	IA(firmware_version_minor, KIND_U32),
	IA(ia_address_ptr, KIND_ADDRESS),
	IA(max_eps, KIND_COUNT),
	IA(max_dto_per_ep, KIND_COUNT),
	IA(max_rdma_read_per_ep_in, KIND_COUNT),
	IA(max_rdma_read_per_ep_out, KIND_COUNT),
	IA(max_evds, KIND_COUNT),
	IA(max_evd_qlen, KIND_COUNT),
	IA(max_iov_segments_per_dto, KIND_COUNT),
	IA(max_lmrs, KIND_COUNT),
	IA(max_lmr_block_size, KIND_U32),
	IA(max_lmr_virtual_address, KIND_U64),
	IA(max_pzs, KIND_COUNT),
	IA(max_message_size, KIND_U32),
	IA(max_rdma_size, KIND_U32),
	IA(max_rmrs, KIND_COUNT),
	IA(max_rmr_target_address, KIND_U64),
	IA(max_srqs, KIND_COUNT),
	IA(max_ep_per_srq, KIND_COUNT),
	IA(max_recv_per_srq, KIND_COUNT),
	IA(max_iov_segments_per_rdma_read, KIND_COUNT),
	IA(max_iov_segments_per_rdma_write, KIND_COUNT),
	IA(max_rdma_read_in, KIND_COUNT),
	IA(max_rdma_read_out, KIND_COUNT),
	IA(max_rdma_read_per_ep_in_guaranteed, KIND_BOOL),
	IA(max_rdma_read_per_ep_out_guaranteed, KIND_BOOL),
	IA(zb_supported, KIND_BOOL),
	WORDS(DAT_IA_ATTR, extension_supported, KIND_ENUM, extensions),
	IA(extension_version, KIND_COUNT),
};

static const struct attr provider_attrs[] = {
	PROVIDER(provider_name, KIND_TEXT),
	PROVIDER(provider_version_major, KIND_U32),
	PROVIDER(provider_version_minor, KIND_U32),
	PROVIDER(dapl_version_major, KIND_U32),
	PROVIDER(dapl_version_minor, KIND_U32),
	WORDS(DAT_PROVIDER_ATTR, lmr_mem_types_supported, KIND_BITS, mem_types),
	WORDS(DAT_PROVIDER_ATTR, iov_ownership_on_return, KIND_ENUM, iov_owners),
	WORDS(DAT_PROVIDER_ATTR, dat_qos_supported, KIND_BITS, qos),
	WORDS(DAT_PROVIDER_ATTR, completion_flags_supported, KIND_BITS, completions),
	PROVIDER(is_thread_safe, KIND_BOOL),
	PROVIDER(max_private_data_size, KIND_COUNT),
	PROVIDER(supports_multipath, KIND_BOOL),
	WORDS(DAT_PROVIDER_ATTR, ep_creator, KIND_ENUM, ep_creators),
	WORDS(DAT_PROVIDER_ATTR, pz_support, KIND_ENUM, pz_support),
	PROVIDER(optimal_buffer_alignment, KIND_U32),
	PROVIDER(srq_supported, KIND_BOOL),
	PROVIDER(srq_watermarks_supported, KIND_COUNT),
	PROVIDER(srq_ep_pz_difference_supported, KIND_BOOL),
	PROVIDER(srq_info_supported, KIND_COUNT),
	PROVIDER(ep_recv_info_supported, KIND_COUNT),
	PROVIDER(lmr_sync_req, KIND_BOOL),
	PROVIDER(dto_async_return_guaranteed, KIND_BOOL),
	PROVIDER(rdma_write_for_rdma_read_req, KIND_BOOL),
	PROVIDER(rdma_read_lmr_rmr_context_exposure, KIND_BOOL),
	WORDS(DAT_PROVIDER_ATTR, rmr_scope_supported, KIND_ENUM, rmr_scopes),
	PROVIDER(is_signal_safe, KIND_BOOL),
	PROVIDER(ha_supported, KIND_BOOL),
	WORDS(DAT_PROVIDER_ATTR, ha_loadbalancing, KIND_BITS, ha_lb),
};

static void report_address(struct out *out, const char *name, const DAT_IA_ATTR *attr)
{
	char text[ADDRESS_MAX];

	ia_address(attr, text);
	out_text(out, name, "%s", text);
}

static void report_bits(struct out *out, const struct attr *attr, unsigned bits)
{
	const char *set[33];
	size_t count = 0, i;
	char rest[16];

	if (attr->words[0])
		set[count++] = attr->words[0];
	for (i = 1; i < attr->word_count; i++) {
		if (bits & 1u << (i - 1))
			set[count++] = attr->words[i];
		bits &= ~(1u << (i - 1));
	}
	snprintf(rest, sizeof(rest), "0x%x", bits);
	if (bits)
		set[count++] = rest;
	out_words(out, attr->name, set, count);
}

static void report_attr(struct out *out, const struct attr *attr, const void *all)
{
	const void *at = (const char *)all + attr->offset;
	uint64_t wide;
	uint32_t bits;

	memcpy(&bits, at, sizeof(bits));
	switch (attr->kind) {
	case KIND_TEXT:
		out_text(out, attr->name, "%.*s", DAT_NAME_MAX_LENGTH, (const char *)at);
		break;
	case KIND_COUNT: out_signed(out, attr->name, (int32_t)bits); break;
	case KIND_U32: out_unsigned(out, attr->name, bits); break;
	case KIND_U64:
		memcpy(&wide, at, sizeof(wide));
		out_unsigned(out, attr->name, wide);
		break;
	case KIND_BOOL: out_bool(out, attr->name, bits); break;
	case KIND_ADDRESS: report_address(out, attr->name, all); break;
	case KIND_ENUM:
		if (bits < attr->word_count)
			out_text(out, attr->name, "%s", attr->words[bits]);
		else
			out_text(out, attr->name, "%u", bits);
		break;
	case KIND_BITS: report_bits(out, attr, bits); break;
	}
}

static void report_named(struct out *out, const char *name, const DAT_NAMED_ATTR *named,
			 DAT_COUNT count)
{
	DAT_COUNT i;

	out_group(out, name);
	for (i = 0; named && i < count; i++)
		if (named[i].name && named[i].value)
			out_text(out, named[i].name, "%s", named[i].value);
	out_group_end(out);
}

static void report_merging(struct out *out, const DAT_PROVIDER_ATTR *attr)
{
	const char *merged[COUNT(streams)];
	size_t i, j, count;

	out_group(out, "evd_stream_merging_supported");
	for (i = 0; i < COUNT(streams); i++) {
		for (count = j = 0; j < COUNT(streams); j++)
			if (attr->evd_stream_merging_supported[i][j])
				merged[count++] = streams[j];
		out_words(out, streams[i], merged, count);
	}
	out_group_end(out);
}

static void report_open(struct out *out, const DAT_IA_ATTR *ia, const DAT_PROVIDER_ATTR *provider)
{
	size_t i;

	out_group(out, "ia");
	for (i = 0; i < COUNT(ia_attrs); i++)
		report_attr(out, &ia_attrs[i], ia);
	report_named(out, "transport_attr", ia->transport_attr, ia->num_transport_attr);
	report_named(out, "vendor_attr", ia->vendor_attr, ia->num_vendor_attr);
	out_group_end(out);

	out_group(out, "provider");
	for (i = 0; i < COUNT(provider_attrs); i++)
		report_attr(out, &provider_attrs[i], provider);
	report_merging(out, provider);
	report_named(out, "provider_specific_attr", provider->provider_specific_attr,
		     provider->num_provider_specific_attr);
	out_group_end(out);
}

DAT_RETURN ia_attributes(struct out *out, DAT_IA_HANDLE ia)
{
	DAT_IA_ATTR attr = { .max_eps = 0 };
	DAT_PROVIDER_ATTR provider;
	DAT_RETURN status;

	memset(&provider, 0, sizeof(provider));
	status = dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attr, DAT_PROVIDER_FIELD_ALL, &provider);
	if (status == DAT_SUCCESS)
		report_open(out, &attr, &provider);
	return status;
}

bool ia_report(struct out *out, const struct registry *registry, const char *name)
{
	struct attempt attempt = { .dat_conf = registry->source };
	struct out inner = *out;
	char *text;
	size_t len;
	bool good;

	registry_find(registry, name, &attempt.library, &attempt.parameters);
	out_item(out, "name", name);
	inner = *out;
	inner.stream = memory_file();
	inner.more = true;
	attempt_run(&attempt, name, &inner);
	text = memory_file_end(inner.stream, &len);
	attempt_report(out, &attempt);
	attempt_report_messages(out, &attempt);
	good = attempt_succeeded(&attempt);
	if (good)
		out_copy(out, text, len);
	out_item_end(out);
	attempt_end(&attempt);
	free(text);
	return good;
}
