// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// Tensorpipe over verbs: `tensorpipe_echo FILE` writes its address to the file and returns each message; `tensorpipe_echo FILE
// REPEATS` sends messages over pipes, one after the other, and says that they have come back unchanged.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <future>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>
#include <tensorpipe/tensorpipe.h>

using namespace tensorpipe;

static const size_t sizes[] = { 0, 1, 4096, 100000, 5000000 };
static const int pipes = 3;

// A payload goes through the pipe's own connection, a tensor through that of the channel.
struct message {
	std::string metadata;
	std::vector<char> payload, tensor;
};

static std::shared_ptr<Context> context_make()
{
	auto context = std::make_shared<Context>();

	context->registerTransport(0, "ibv", transport::ibv::create());
	context->registerChannel(0, "basic", channel::basic::create());
	return context;
}

static void wait(std::promise<Error> &end)
{
	Error error = end.get_future().get();

	if (error)
		throw std::runtime_error(error.what());
}

static void send(Pipe &pipe, message &what)
{
	std::promise<Error> end;
	Message out;

	out.metadata = what.metadata;
	out.payloads.resize(1);
	out.payloads[0].data = what.payload.data();
	out.payloads[0].length = what.payload.size();
	out.tensors.resize(1);
	out.tensors[0].buffer = CpuBuffer{ what.tensor.data() };
	out.tensors[0].length = what.tensor.size();
	pipe.write(std::move(out), [&](const Error &error) { end.set_value(error); });
	wait(end);
}

static message receive(Pipe &pipe)
{
	std::promise<Error> told, end;
	Descriptor what;
	Allocation at;
	message in;

	pipe.readDescriptor([&](const Error &error, Descriptor descriptor) {
		what = std::move(descriptor);
		told.set_value(error);
	});
	wait(told);
	in.metadata = what.metadata;
	in.payload.resize(what.payloads.at(0).length);
	in.tensor.resize(what.tensors.at(0).length);
	at.payloads.resize(1);
	at.payloads[0].data = in.payload.data();
	at.tensors.resize(1);
	at.tensors[0].buffer = CpuBuffer{ in.tensor.data() };
	pipe.read(at, [&](const Error &error) { end.set_value(error); });
	wait(end);
	return in;
}

static void serve(const std::string &file)
{
	auto context = context_make();
	auto listener = context->listen({ "ibv://127.0.0.1" });

	std::ofstream(file + ".new") << listener->url("ibv");
	std::rename((file + ".new").c_str(), file.c_str());
	for (;;) {
		std::shared_ptr<Pipe> pipe;
		std::promise<Error> came;

		listener->accept([&](const Error &error, std::shared_ptr<Pipe> accepted) {
			pipe = std::move(accepted);
			came.set_value(error);
		});
		wait(came);
		try {
			for (;;) {
				message m = receive(*pipe);

				send(*pipe, m);
			}
		} catch (const std::runtime_error &error) {
			std::cout << "end: " << error.what() << std::endl;
		}
		pipe->close();
	}
}

static bool comes_back(Pipe &pipe, size_t size, int number)
{
	message m{ std::to_string(number), std::vector<char>(size), std::vector<char>(size) }, back;

	for (size_t i = 0; i < size; i++) {
		m.payload[i] = static_cast<char>(i * 7 + number);
		m.tensor[i] = static_cast<char>(i * 5 + number);
	}
	send(pipe, m);
	back = receive(pipe);
	return back.metadata == m.metadata && back.payload == m.payload && back.tensor == m.tensor;
}

static bool ask(const std::string &url, int repeats)
{
	auto context = context_make();
	bool right = true;

	for (int i = 0; i < pipes; i++) {
		auto pipe = context->connect(url);

		for (int number = 0; number < repeats; number++) {
			for (size_t size : sizes)
				right = right && comes_back(*pipe, size, number);
			if (!number && right)
				std::cout << "it came back" << std::endl;
		}
		pipe->close();
	}
	context->join();
	return right;
}

int main(int, char **argv)
{
	std::string url;
	bool right;

	if (!argv[2]) {
		serve(argv[1]);
		return 0;
	}
	std::ifstream(argv[1]) >> url;
	right = ask(url, std::atoi(argv[2]));
	std::cout << (right ? "right" : "wrong") << std::endl;
	return !right;
}
