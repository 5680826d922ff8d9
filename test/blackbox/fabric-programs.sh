#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# The packaged uDAPL programs, perftest by rdma_cm and qperf, the server on one host and the client on the other; over the
# device's own link, then over libfabric.
export FABRIC="${FABRIC:-tcp}"
. test/blackbox/lib-fabric.sh
needs ib_send_lat ib_write_bw ib_read_bw ib_atomic_lat qperf
one=10.79.0.1
far_conf
for program in dtest dtestx dtestcm dtestsrq dapltest; do packaged $program; done

# dat_both DONE PROGRAM OPTIONS: both print DONE and no error; a packaged program exits with 0 in
# any case. A packaged server is not always ready when it listens, and then rejects its client, which is started again.
dat_is_ready() {
	listens 15828 || says server 'server ready'
}
dat_once() {
	done=$1 program=$2 options=$3
	# shellcheck disable=SC2086
	start server env LD_LIBRARY_PATH="$BUILD/lib" DAT_OVERRIDE="$tmp/v0.conf" "$tmp/$program" $options -P far
	server_pid=$started
	within 30 dat_is_ready || fail "$program does not listen"
	# shellcheck disable=SC2086
	LD_LIBRARY_PATH=$BUILD/lib DAT_OVERRIDE=$tmp/v1.conf timeout -k 2 "$longest" $there "$tmp/$program" $options -P far -h $one \
		>"$tmp/client" 2>&1 && says client "$done" && ! says client 'REJECT\|ERR\|FAILED' && return
	kill "$server_pid" 2>/dev/null
	wait "$server_pid"
	return 1
}
dat_both() {
	tries_begin
	until dat_once "$@"; do
		{ says client 'REJECT\|0x4003' || dtestx_raced; } && tries_left || fail "$2 $3 did not succeed"
	done
	wait "$server_pid" || fail "$2 $3: the server ended with status $?"
	says server "$1" || fail "$2 $3: the server does not say: $1"
	! says server 'ERR\|FAILED' || fail "$2 $3: the server speaks of errors"
	rows=$((rows + 1))
}

dat_programs() {
	for options in '-b 65536' '-b 4096 -p' '-W -b 1024 -B 200' '-w -b 65536' '-c -b 65536'; do
		dat_both 'DAPL Test Complete. PASSED' dtest "$options"
	done
	dat_both 'immed/atomic test PASSED' dtestx ''
	dat_both 'Connection Test Complete' dtestcm '-w -c 100'
	dat_both 'SRQ Test Complete' dtestsrq '-c 10 -B 10'
	dapltest_sessions
}

# One server for all tests of dapltest; its last client ends it.
dapltest_client() {
	test=$1
	shift
	LD_LIBRARY_PATH=$BUILD/lib DAT_OVERRIDE=$tmp/v1.conf timeout -k 2 "$longest" $there "$tmp/dapltest" -T "$test" -s $one -D far "$@" \
		>"$tmp/client" 2>&1 || fail "dapltest -T $test $*: status $?"
	says client 'End of Work -- Client Exiting' || fail "dapltest -T $test $*: no end"
}
dapltest_sessions() {
	start server env LD_LIBRARY_PATH="$BUILD/lib" DAT_OVERRIDE="$tmp/v0.conf" "$tmp/dapltest" -T S -D far
	server_pid=$started
	within 30 says server 'Service Point Ready - far' || fail "dapltest's server does not get ready"
	dapltest_client T -i 20 -t 2 -w 2 client SR 256 3 server RW 4096 2 client RR 1000 server SR 300
	dapltest_client T -i 20 -t 1 -w 1 -V client SR 4096 4 server RW 65536 4 client RR 65536 4 server SR 4096 4
	dapltest_client P -m p -i 200 -p 16 RW 4096 1
	dapltest_client P -m b -i 200 -p 4 RW 1000000 1
	dapltest_client Q
	within 20 not_running "$server_pid" || fail "dapltest's server does not quit"
	wait "$server_pid" || fail "dapltest's server ended with status $?"
	rows=$((rows + 4))
}

# perftest's server listens twice, for the parameters and for the test, and its client may come in between: it is rejected
# and crashes. A library that libfabric loads writes a trace of that into the working folder.
perf_once() {
	start server env -C "$tmp" "$sv" "$@"
	server_pid=$started port=18515
	within 30 cm_listens || fail "$1 does not listen"
	timeout -k 2 "$longest" env -C "$tmp" $there "$sv" "$@" $one >"$tmp/client" 2>&1 && wait "$server_pid" && return
	kill_program "$server_pid"
	wait "$server_pid"
	return 1
}
perf_both() {
	tries_begin
	until perf_once "$@"; do
		says client 'REJECTED; error: 8\|UNREACHABLE; error: 1' && tries_left || fail "$* did not succeed"
	done
	rows=$((rows + 1))
}

verbs_programs() {
	for test in ib_send_lat ib_write_bw ib_read_bw ib_atomic_lat; do perf_both $test -R -F -n 500; done
	perf_both ib_send_bw -R -F -c UD -n 500
	start server "$sv" qperf
	server_pid=$started
	within 30 tcp_listens 19765 || fail 'qperf does not listen'
	for test in rc_lat rc_bw rc_rdma_write_lat rc_rdma_read_bw rc_fetch_add_mr; do
		tries_begin
		until timeout -k 2 60 $there "$sv" qperf -cm 1 -t 1 $one $test >"$tmp/client" 2>&1; do
			says client 'Event rejected' && tries_left || fail "qperf $test"
		done
		grep -A 2 "^$test:" "$tmp/client" | grep -Eq '= +[0-9]' || fail "qperf has no number for $test"
		rows=$((rows + 1))
	done
	kill_program "$server_pid"
	wait "$server_pid"
}

for SOFTVERBS_FABRIC in link "$FABRIC"; do
	dat_programs
	verbs_programs
done
echo "$rows pairs of programs of other makers on two hosts, by the link and by $FABRIC"
