# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Sourced after lib-verbs.sh by the tests with perftest.
needs ib_send_lat ib_write_lat ib_read_lat ib_atomic_lat ib_send_bw ib_write_bw ib_read_bw ib_atomic_bw

port=18515
# perf SIZES PROGRAM [OPTION...]: both sides exit with 0, and the client prints this many lines of results.
perf() {
	sizes=$1 options="-F -d soft0 -x 0 -p $port"
	shift
	case " $* " in
	*' -R '*)	# the server listens twice, for the parameters and for the test
		pair_again 'REJECTED; error: 8\|UNREACHABLE; error: 1' "cm_listens $port" "$* $options" "$* $options 127.0.0.1" ;;
	*)	pair "tcp_listens $port" "$* $options" "$* $options 127.0.0.1" ;;
	esac
	# On a busy machine perftest may not find out how fast its clock is; then the result is there, and infinite.
	got=$(grep -cE '^ *[0-9]+ +[0-9]+ +([0-9]|inf)' "$tmp/client")
	[ "$got" -eq "$sizes" ] || fail "$*: $got results, not $sizes"
}

# Latency, P1 and P2, and bandwidth, P3, of each operation.
latencies() {
	perf 1 ib_send_lat -n "$(rounds 10000)"
	perf 1 ib_send_lat -n "$(rounds 1000)" -e
	perf 1 ib_send_lat -n "$(rounds 10000)" -s 1024
	for what in write read atomic; do perf 1 ib_${what}_lat -n "$(rounds 10000)"; done
}
bandwidths() {
	for what in send write read atomic; do perf 1 ib_${what}_bw -n "$(rounds 1000)"; done
}
