/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The 40 bytes before a received datagram: an IPv4 header in the second half (RoCE v2), or an
 * IPv6 header. Writes them, and derives from them the address of the sender for a reply.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include "softverbs/ud/ud.h"

#define IPV4_AT	  20u /* offset of the header; the bytes before it are undefined */
#define IPV4_SIZE 20u
#define OVERHEAD  (8u + 12u + 8u + 4u) /* UDP, BTH, DETH, ICRC */
#define HOPS	  64u
#define VERSION_6 6u

/* Offsets in an IPv4 header. */
enum {
	AT_VERSION_SIZE = 0,
	AT_LENGTH = 2,
	AT_TTL = 8,
	AT_PROTOCOL = 9,
	AT_CHECKSUM = 10,
	AT_SOURCE = 12,
	AT_TARGET = 16,
};

static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

static bool is_ipv4(const uint8_t *gid)
{
	return !memcmp(gid, mapped, sizeof(mapped));
}

static uint16_t ipv4_checksum(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < IPV4_SIZE; i += 2)
		if (i != AT_CHECKSUM)
			sum += (uint32_t)ip[i] << 8 | ip[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static void grh_put16(uint8_t *to, uint32_t value)
{
	to[0] = (uint8_t)(value >> 8);
	to[1] = (uint8_t)value;
}

enum grh_l3 sv_grh_write(uint8_t grh[GRH_SIZE], const struct ud_ring_record *head)
{
	uint32_t payload = OVERHEAD + head->length + (head->flags & DATAGRAM_IMM ? 4 : 0);
	uint8_t *ip = grh + IPV4_AT;

	memset(grh, 0, GRH_SIZE);
	if (is_ipv4(head->sgid) && is_ipv4(head->dgid)) {
		ip[AT_VERSION_SIZE] = 0x45;
		grh_put16(ip + AT_LENGTH, IPV4_SIZE + payload);
		ip[AT_TTL] = HOPS;
		ip[AT_PROTOCOL] = IPPROTO_UDP;
		memcpy(ip + AT_SOURCE, head->sgid + sizeof(mapped), 4);
		memcpy(ip + AT_TARGET, head->dgid + sizeof(mapped), 4);
		grh_put16(ip + AT_CHECKSUM, ipv4_checksum(ip));
		return GRH_L3_IPV4;
	}
	grh[0] = VERSION_6 << 4;
	grh_put16(grh + offsetof(struct ibv_grh, paylen), payload);
	grh[offsetof(struct ibv_grh, next_hdr)] = IPPROTO_UDP;
	grh[offsetof(struct ibv_grh, hop_limit)] = HOPS;
	memcpy(grh + offsetof(struct ibv_grh, sgid), head->sgid, 16);
	memcpy(grh + offsetof(struct ibv_grh, dgid), head->dgid, 16);
	return GRH_L3_IPV6;
}

/*
 * Whether there is an IPv4 header. The 20 bytes before it may have any value, even the beginning
 * of an IPv6 header, so the checksum decides.
 */
static bool holds_ipv4(const uint8_t *grh)
{
	const uint8_t *ip = grh + IPV4_AT;
	uint16_t sum = (uint16_t)(ip[AT_CHECKSUM] << 8 | ip[AT_CHECKSUM + 1]);

	return ip[AT_VERSION_SIZE] == 0x45 && ipv4_checksum(ip) == sum;
}

/*
 * Reads the destination address, as GID index, and the sender's. False if there is neither kind
 * of header.
 */
static bool grh_read(const struct ibv_grh *grh, struct ibv_global_route *route, int *index)
{
	const uint8_t *raw = (const uint8_t *)grh, *ip = raw + IPV4_AT;
	union ibv_gid target;

	if (holds_ipv4(raw)) {
		memcpy(target.raw, mapped, sizeof(mapped));
		memcpy(route->dgid.raw, mapped, sizeof(mapped));
		memcpy(target.raw + sizeof(mapped), ip + AT_TARGET, 4);
		memcpy(route->dgid.raw + sizeof(mapped), ip + AT_SOURCE, 4);
		route->hop_limit = HOPS;
		route->traffic_class = ip[1];
	} else if (raw[0] >> 4 == VERSION_6) {
		uint32_t flow = ntohl(grh->version_tclass_flow);

		target = grh->dgid;
		route->dgid = grh->sgid;
		route->hop_limit = HOPS;
		route->traffic_class = (uint8_t)(flow >> 20);
		route->flow_label = flow & 0xfffff;
	} else {
		return false;
	}
	*index = sv_gid_index(&target);
	return true;
}

int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc,
			struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	int index = -1;

	(void)context;
	*attr = (struct ibv_ah_attr){
		/*
		 * `sl` stays 0: wc->sl is an enum grh_l3, and a reply without a VLAN has no
		 * priority.
		 */
		.dlid = wc->slid,
		.src_path_bits = wc->dlid_path_bits,
		.port_num = port,
	};
	if (port != SV_PORT) {
		errno = EINVAL;
		return -1;
	}
	if (!(wc->wc_flags & IBV_WC_GRH))
		return 0;
	attr->is_global = 1;
	if (!grh_read(grh, &attr->grh, &index)) {
		errno = EPROTONOSUPPORT;
		return -1;
	}
	if (index < 0) { /* this host does not have the address any more */
		errno = ENOENT;
		return -1;
	}
	attr->grh.sgid_index = (uint8_t)index;
	return 0;
}
