# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Sourced by the tests of dapltest: a server, clients one after the other, and quit.
. test/blackbox/lib.sh
clients=0

# quiet NAME: nothing of an error in its output. The packaged program exits with 0 also where it failed, and its
# functional tests print PASS after an assertion that failed, so its words count: but not what it says when receives are
# all that fit, and of the server that functional tests have none of.
quiet() {
	! grep -Ei 'error|warning|fail:|failed|fails:|mismatch' "$tmp/$1" |
		grep -v -e 'dat_ep_post_recv fails: DAT_INSUFFICIENT_RESOURCES' -e 'getaddrinfo () failed (unknown node name)'
}

# session RUNS SERVER CLIENT: starts the server, calls RUNS, tells the server to quit and sees that it does. Once more where
# the packaged client raced with itself.
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

# lost_count: the threads of the packaged client share one count of the messages that they wait for, and each sets it anew
# for the last exchange. Two that do so at once take it below zero; those that look for zero then give up after ten
# seconds, their server finds the receives flushed, and the client ends well. Messages that are missing leave it above.
lost_count() {
	[ "$client" != "$BUILD/bin/dapltest" ] && says client 'FAIL: -[1-9][0-9]* Server test connections did not report ready'
}

# run_client -T TEST [OPTION...]: it succeeds, to the last line. Once the client $raced, only the server's end matters.
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
