#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# dtestx between two processes: the packaged one against itself, immediate data and atomics in both directions.
. test/blackbox/lib.sh
packaged dtestx

# Its server listens only after it told the client where: now and then the client is faster, and is refused.
meet() {
	start server "$tmp/dtestx" -P ofa-v2-soft "$@"
	server_pid=$started
	within 20 says server 'waiting to snd addr' || fail 'the server does not get ready'
	timeout -k 2 60 "$tmp/dtestx" -P ofa-v2-soft -h 127.0.0.1 "$@" >"$tmp/client" 2>&1 && return
	kill "$server_pid"
	wait "$server_pid"
	return 1
}

# pair [OPTION...]: server and client must both succeed and pass each part.
pair() {
	meet "$@" || meet "$@" || meet "$@" || fail 'the client fails, three times'
	wait "$server_pid" || fail "the server ended with status $?"
	for side in server client; do
		for part in RDMA_WRITE_WITH_IMMEDIATE_DATA CMP_SWAP FETCH_ADD; do
			says $side "$part test - PASSED" || fail "$side: no word of $part"
		done
		says $side 'immed/atomic test PASSED' || fail "the $side did not pass"
	done
	within 3 nothing_left || fail 'names of the software device are left'
}

pair
pair -p -b 4096
echo 'two runs: immediate data, compare and swap, fetch and add'
