#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# The examples of dat_events(7): 1,000 endpoints against each of the two loops.
. test/blackbox/lib.sh

# serves LOOP: every message is answered, and the server ends by itself after its last client.
serves() {
	start server "$BUILD/examples/$1" -m 1000 -n 1000
	server_pid=$started
	within 20 says server 'serving 1000 endpoints' || fail "$1 does not get ready"
	timeout -k 2 "$longest" "$BUILD/examples/echo_client" -m 1000 -r "$2" >"$tmp/client" 2>&1 || fail "the client of $1"
	says client '1000 endpoints, [0-9]* rounds: every answer right' || fail "$1: wrong answers"
	wait "$server_pid" || fail "$1 ended with status $?"
	within 3 nothing_left || fail 'names of the software device are left'
}
serves echo_epoll 20
loops='epoll(7)'
if [ -x "$BUILD/examples/echo_libevent" ]; then
	serves echo_libevent 20
	loops="$loops and libevent"
fi

# Messages that arrive before their connection is established are answered after it, or flushed.
start server "$BUILD/examples/echo_epoll" -m 3 -n 3
server_pid=$started
within 20 says server 'serving 3 endpoints' || fail 'the server of early messages does not get ready'
timeout -k 2 "$longest" "$BUILD/test/early-send" 45300 >"$tmp/client" 2>&1 || fail 'the client that sends early'
wait "$server_pid" || fail "the server of early messages ended with status $?"

# A client beyond the server's capacity is refused, and the others are served.
start server "$BUILD/examples/echo_epoll" -m 10 -n 10
server_pid=$started
within 20 says server 'serving 10 endpoints' || fail 'the small server does not get ready'
! timeout -k 2 "$longest" "$BUILD/examples/echo_client" -m 20 -r 1 >"$tmp/client" 2>&1 || fail 'room for 20 among 10'
wait "$server_pid" || fail "the small server ended with status $?"
echo "1000 endpoints on one descriptor: $loops"
