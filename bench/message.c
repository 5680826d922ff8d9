/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * What a provider of libfabric allows, without the device on it: messages of an endpoint, injected or reported as the device
 * has them. The tests lat, rate and bw of traffic.h. -w names the provider, -a the address at which side 1 listens.
 */
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include "bench/measure.h"

#define POLL	   16
#define NAME_BYTES 128

struct end {
	struct fid_ep *ep;
	struct fid_cq *cq;
	fi_addr_t peer;
	size_t injected; /* bytes of a message that may be */
	uint8_t *from, *to;
	struct found found; /* while a send was tried again */
};

static inline void end_use(struct end *end, unsigned i)
{
	(void)end;
	must(i == 0, "-n: this test has only one connection");
}

static inline void end_recv(struct end *end, unsigned count)
{
	while (count--)
		must(!fi_recv(end->ep, end->to, options.size, NULL, FI_ADDR_UNSPEC, NULL),
		     "fi_recv");
}

static void end_read(struct end *end)
{
	struct fi_cq_msg_entry entries[POLL];
	ssize_t count = fi_cq_read(end->cq, entries, POLL);

	must(count >= 0 || count == -FI_EAGAIN, "fi_cq_read");
	for (ssize_t i = 0; i < count; i++)
		if (entries[i].flags & FI_RECV)
			end->found.recvs++;
		else
			end->found.sends++;
}

static inline ssize_t end_try(struct end *end, size_t size, bool signaled)
{
	struct iovec part = { end->from, size };
	struct fi_msg message = { .msg_iov = &part, .iov_count = 1, .addr = end->peer };

	if (!signaled && size <= end->injected)
		return fi_inject(end->ep, end->from, size, end->peer);
	return fi_sendmsg(end->ep, &message, signaled ? FI_COMPLETION : 0);
}

static inline void end_send(struct end *end, size_t size, bool signaled)
{
	ssize_t result;

	while ((result = end_try(end, size, signaled)) == -FI_EAGAIN)
		end_read(end);
	must(!result, "fi_send");
}

static inline void end_poll(struct end *end, struct found *found)
{
	end_read(end);
	found->sends += end->found.sends;
	found->recvs += end->found.recvs;
	end->found = (struct found){ 0 };
}

static inline void end_wait(struct end *end, bool by_fd, struct found *found)
{
	(void)end, (void)by_fd, (void)found;
	fail("no such test");
}

static inline void end_rdma(struct end *end, bool read)
{
	end_wait(end, read, NULL);
}

static inline void end_add(struct end *end)
{
	end_wait(end, false, NULL);
}

static inline uint8_t *end_first(struct end *end)
{
	return end->from;
}

static inline uint8_t *end_second(struct end *end)
{
	return end->to;
}

#include "bench/traffic.h"

/* Side 1 listens at the address; side 0 uses that of its own from which the way leads there. */
static struct fi_info *provider_find(void)
{
	const char *node = options.address ? options.address : "127.0.0.1";
	struct fi_info *hints = fi_allocinfo(), *info = NULL;

	must(hints != NULL, "fi_allocinfo");
	hints->caps = FI_MSG;
	hints->ep_attr->type = FI_EP_RDM;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->fabric_attr->prov_name = strdup(options.way ? options.way : "tcp");
	must(!fi_getinfo(FI_VERSION(1, 17), node, side ? NULL : "1", side ? FI_SOURCE : 0, hints,
			 &info),
	     "-w: no such provider");
	fi_freeinfo(hints);
	return info;
}

/* Each side publishes its name in `shared`. */
static void peer_find(struct end *end, struct fid_av *peers)
{
	uint8_t(*names)[NAME_BYTES] = shared;
	size_t size = NAME_BYTES;

	must(!fi_getname(&end->ep->fid, names[side], &size), "fi_getname");
	meet();
	must(fi_av_insert(peers, names[!side], 1, &end->peer, 0, NULL) == 1, "fi_av_insert");
}

static void end_open(struct end *end, struct fi_info *info)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_MSG, .size = 2 * RECVS };
	struct fi_av_attr av = { .type = info->domain_attr->av_type };
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *peers;

	must(!fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	must(!fi_domain(fabric, info, &domain, NULL), "fi_domain");
	must(!fi_av_open(domain, &av, &peers, NULL), "fi_av_open");
	must(!fi_cq_open(domain, &cq, &end->cq, NULL), "fi_cq_open");
	must(!fi_endpoint(domain, info, &end->ep, NULL), "fi_endpoint");
	must(!fi_ep_bind(end->ep, &peers->fid, 0) && !fi_ep_bind(end->ep, &end->cq->fid, FI_RECV) &&
		     !fi_ep_bind(end->ep, &end->cq->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION) &&
		     !fi_enable(end->ep),
	     "fi_ep_bind");
	end->injected = info->tx_attr->inject_size;
	end->from = buffer();
	end->to = buffer();
	peer_find(end, peers);
}

int main(int argc, char **argv)
{
	struct end end = { .found = { 0 } };

	measure_begin(argc, argv, 2 * NAME_BYTES);
	must(options.size, "no such size");
	end_open(&end, provider_find());
	traffic_run(&end);
	measure_end();
}
