/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A peer: RDMA through libfabric's provider for shared memory, which fi_pingpong does not do. 16 outstanding, as the
 * product has. MB/s.
 *   write SIZE   fi_write        read SIZE   fi_read
 */
#include <string.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include "bench/measure.h"

#define DEPTH	       16u
#define NAME_MAX_BYTES 256u

/* What each side tells the other. */
struct told {
	unsigned char name[NAME_MAX_BYTES];
	uint64_t address, key;
	_Alignas(LINE) atomic_bool over; /* of side 0: nothing comes any more */
};

struct peer {
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_ep *ep;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_mr *mr;
	fi_addr_t there;
	uint8_t *memory;
	struct told *theirs;
};

/* With virtual addresses and no order asked for, the provider copies without the other side's help. */
static struct fi_info *look_up(void)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;

	must(hints != NULL, "no memory");
	hints->caps = FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR;
	hints->fabric_attr->prov_name = strdup("shm");
	must(!fi_getinfo(FI_VERSION(1, 9), NULL, NULL, 0, hints, &info),
	     "no provider for shared memory");
	fi_freeinfo(hints);
	return info;
}

static void peer_open(struct peer *peer, struct fi_info *info)
{
	struct fi_av_attr av = { .type = FI_AV_UNSPEC };
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_CONTEXT, .size = 2 * DEPTH };
	must(!fi_fabric(info->fabric_attr, &peer->fabric, NULL), "fi_fabric");
	must(!fi_domain(peer->fabric, info, &peer->domain, NULL), "fi_domain");
	must(!fi_av_open(peer->domain, &av, &peer->av, NULL), "fi_av_open");
	must(!fi_cq_open(peer->domain, &cq, &peer->cq, NULL), "fi_cq_open");
	must(!fi_endpoint(peer->domain, info, &peer->ep, NULL), "fi_endpoint");
	must(!fi_ep_bind(peer->ep, &peer->av->fid, 0), "fi_ep_bind");
	must(!fi_ep_bind(peer->ep, &peer->cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(!fi_enable(peer->ep), "fi_enable");
	peer->memory = buffer(options.size);
	must(!fi_mr_reg(peer->domain, peer->memory, options.size,
			FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
			(uint64_t)side + 1, 0, &peer->mr, NULL),
	     "fi_mr_reg");
}

static void peer_meet(struct peer *peer, const struct fi_info *info)
{
	struct told *mine = (struct told *)shared + side;
	size_t length = sizeof(mine->name);

	peer->theirs = (struct told *)shared + !side;
	must(!fi_getname(&peer->ep->fid, mine->name, &length), "fi_getname");
	mine->address = info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)peer->memory : 0;
	mine->key = fi_mr_key(peer->mr);
	meet();
	must(fi_av_insert(peer->av, peer->theirs->name, 1, &peer->there, 0, NULL) == 1,
	     "fi_av_insert");
	meet();
}

static unsigned reap(struct peer *peer)
{
	struct fi_cq_entry entries[DEPTH];
	ssize_t n = fi_cq_read(peer->cq, entries, DEPTH);

	must(n > 0 || n == -FI_EAGAIN, "fi_cq_read");
	return n > 0 ? (unsigned)n : 0;
}

static void start(struct peer *peer, bool read, unsigned *done)
{
	const struct told *to = peer->theirs;
	ssize_t error;

	for (;;) {
		error = read ? fi_read(peer->ep, peer->memory, options.size, fi_mr_desc(peer->mr),
				       peer->there, to->address, to->key, NULL)
			     : fi_write(peer->ep, peer->memory, options.size, fi_mr_desc(peer->mr),
					peer->there, to->address, to->key, NULL);
		if (error != -FI_EAGAIN)
			break;
		*done += reap(peer);
	}
	must(!error, read ? "fi_read" : "fi_write");
}

static void measure(struct peer *peer, bool read)
{
	unsigned n = batch_messages();

	for (unsigned batch = 0; batch < options.batches; batch++) {
		uint64_t begin = now_ns();
		unsigned done = 0;

		for (unsigned i = 0; i < n; i++) {
			while (i - done >= DEPTH)
				done += reap(peer);
			start(peer, read, &done);
		}
		while (done < n)
			done += reap(peer);
		figure((double)options.size * n * 1e3 / (double)(now_ns() - begin));
	}
}

/* What was written is side 0's, what was read side 1's: either way both have the same now. */
static void check(const struct peer *peer, bool read)
{
	uint8_t expected = read ? 2 : 1;

	must(peer->memory[0] == expected && peer->memory[options.size - 1] == expected,
	     "the bytes were not moved");
}

/* Its files in /dev/shm go with the endpoint. */
static void peer_close(struct peer *peer, struct fi_info *info)
{
	must(!fi_close(&peer->ep->fid) && !fi_close(&peer->mr->fid) && !fi_close(&peer->cq->fid) &&
		     !fi_close(&peer->av->fid) && !fi_close(&peer->domain->fid) &&
		     !fi_close(&peer->fabric->fid),
	     "fi_close");
	fi_freeinfo(info);
}

int main(int argc, char **argv)
{
	struct fi_info *info;
	struct peer peer;
	bool read;

	measure_begin(argc, argv, 2 * sizeof(struct told));
	read = !strcmp(options.test, "read");
	if (!read && strcmp(options.test, "write"))
		fail("no such test");
	must(options.size != 0, "no such size");
	info = look_up();
	peer_open(&peer, info);
	memset(peer.memory, side + 1, options.size);
	peer_meet(&peer, info);
	if (!side) {
		measure(&peer, read);
		atomic_store(&((struct told *)shared)->over, true);
	}
	while (side && !atomic_load(&peer.theirs->over))
		reap(&peer);
	meet();
	check(&peer, read);
	peer_close(&peer, info);
	measure_end();
}
