# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Sourced by the tests of dapltest: a server, clients one after the other, and quit.
. test/blackbox/lib.sh
clients=0

# quiet NAME: the output has no error. The packaged program exits with 0 also where it failed, and its functional
# tests print PASS after a failed assertion, so its output is checked; the lines about the number of receives and
# about the missing server of functional tests are ignored.
quiet() {
	! grep -Ei 'error|warning|fail:|failed|fails:|mismatch' "$tmp/$1" |
		grep -v -e 'dat_ep_post_recv fails: DAT_INSUFFICIENT_RESOURCES' -e 'getaddrinfo () failed (unknown node name)'
}

# session RUNS SERVER CLIENT: starts the server, calls RUNS, tells the server to quit and checks that it does. A
# session in which the packaged client raced with itself is repeated.
session() {
	tries=1
	until session_once "$@"; do
		[ $tries -lt 10 ] || fail "$client lost its count in each of $tries sessions"
		tries=$((tries + 1))
	done
}

session_once() {
	server=$2 client=$3 raced=
	start server "$server" -T S -D "$provider"
	server_pid=$started
	within 20 says server "Service Point Ready - $provider" || fail "$server does not get ready"
	$1
	run_client -T Q
	within 20 not_running "$server_pid" || fail "$server does not quit"
	wait "$server_pid" || fail "$server ended with status $?"
	says server 'Exiting' || fail "$server does not take its leave"
	within 3 nothing_left || fail 'names of the software device are left'
	[ -z "$raced" ] || return 1
	quiet server || fail "$server speaks of errors"
}

# lost_count: the threads of the packaged client share one count of the messages that they wait for, and each sets it
# again for the last exchange. Two threads that do so at once make it negative; threads that wait for zero then stop
# after ten seconds, their server finds the receives flushed, and the client exits with 0. A missing message leaves
# the count positive.
lost_count() {
	[ "$client" != "$BUILD/bin/dapltest" ] && says client 'FAIL: -[1-9][0-9]* Server test connections did not report ready'
}

# run_client -T TEST [OPTION...]: the client succeeds and prints its last line. If the client $raced, only the
# server's end counts.
run_client() {
	test=$2
	shift 2
	[ -z "$raced" ] || [ "$test" = Q ] || return 0
	timeout -k 2 "$longest" "$client" -T "$test" -s "$address" -D "$provider" "$@" >"$tmp/client" 2>&1 ||
		fail "$client -T $test $*: status $?"
	! lost_count || raced=$test
	[ -n "$raced" ] || quiet client || fail "$client -T $test $* speaks of errors"
	says client 'End of Work -- Client Exiting' || fail "$client -T $test $*: no end"
	[ -n "$raced" ] || clients=$((clients + 1))
}
