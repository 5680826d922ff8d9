// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// gloo over verbs: one process of some that add, broadcast and wait for each other. Each has one completion channel, which it
// reads without blocking, with a CQ for each other process. It says that its numbers are right, and waits to be killed.
#include <cstdlib>
#include <iostream>
#include <memory>
#include <vector>
#include <unistd.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier_all_to_all.h>
#include <gloo/broadcast_one_to_all.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>

static const size_t counts[] = { 1, 100, 100000 };
static const int rounds = 10, root = 1;

// Lives until all have ended: an algorithm that is destroyed does not wait for what it has sent.
struct work {
	std::vector<float> sum, told;
	std::unique_ptr<gloo::Algorithm> adds, tells;
};

static std::unique_ptr<gloo::Algorithm> adder(const std::shared_ptr<gloo::Context> &context,
					      std::vector<float> &data, bool ring)
{
	std::vector<float *> at{ data.data() };
	int count = static_cast<int>(data.size());

	if (ring)
		return std::make_unique<gloo::AllreduceRingChunked<float>>(context, at, count);
	return std::make_unique<gloo::AllreduceHalvingDoubling<float>>(context, at, count);
}

static bool run(const std::shared_ptr<gloo::Context> &context, work &work, size_t count, bool ring)
{
	int rank = context->rank, size = context->size;

	work.sum.resize(count);
	work.told.assign(count, rank == root ? 42 : 0);
	for (size_t i = 0; i < count; i++)
		work.sum[i] = rank + static_cast<float>(i % 17);
	work.adds = adder(context, work.sum, ring);
	work.adds->run();
	work.tells = std::make_unique<gloo::BroadcastOneToAll<float>>(
		context, std::vector<float *>{ work.told.data() }, static_cast<int>(count), root);
	work.tells->run();
	for (size_t i = 0; i < count; i++)
		if (work.sum[i] != size * (size - 1) / 2 + size * static_cast<float>(i % 17) ||
		    work.told[i] != 42)
			return false;
	return true;
}

int main(int, char **argv)
{
	gloo::transport::ibverbs::attr attr;
	gloo::rendezvous::FileStore store(argv[3]);
	auto context = std::make_shared<gloo::rendezvous::Context>(atoi(argv[1]), atoi(argv[2]));
	std::vector<std::unique_ptr<work>> all;

	attr.name = "soft0";
	attr.port = 1;
	attr.index = 0;
	auto device = gloo::transport::ibverbs::CreateDevice(attr);
	context->connectFullMesh(store, device);
	gloo::BarrierAllToAll barrier(context);
	for (size_t count : counts) {
		for (int round = 0; round < rounds; round++) {
			all.push_back(std::make_unique<work>());
			if (!run(context, *all.back(), count, round % 2)) {
				std::cout << count << " numbers: wrong" << std::endl;
				return 1;
			}
			barrier.run();
		}
	}
	for (int round = 0; round < 3; round++)
		barrier.run();
	std::cout << "right" << std::endl;
	pause(); // a process that ends breaks the connections of those that still wait
}
