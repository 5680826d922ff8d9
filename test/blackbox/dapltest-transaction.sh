#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# dapltest -T T: 1 to 8 threads and endpoints, each option, each operation.
. test/blackbox/lib-dapltest.sh
iterations=20
[ -z "${SAN:-}" ] || iterations=5

# transaction THREADS ENDPOINTS [WORD...]: the statistics are about that many, and all work was counted. The packaged
# program prints none for a test that is shorter than its clock's resolution, and says that.
transaction() {
	threads=$1 eps=$2
	shift 2
	run_client -T T -i $iterations -t "$threads" -w "$eps" "$@"
	[ -z "$raced" ] || return 0
	! says client 'Test completed successfully, but cannot calculate stats' || return 0
	says client "Stats ---- : *$threads threads, *$eps EPs" ||
		fail "$client -t $threads -w $eps $*: no statistics"
	says client 'Total WQE *: *[0-9.]*[1-9]' || fail "$client -t $threads -w $eps $*: no work is counted"
}

runs() {
	for n in 1 2 3 4 5 6 7 8; do
		transaction $n $n client SR 256 3 server RW 4096 2 client RR 1000 server SR 300
		transaction $n $((9 - n)) client SR 1024 server SR 256
	done
	for options in -V -P -r '-V -P -r'; do
		# shellcheck disable=SC2086
		transaction 2 2 $options client SR 256 client RW 4096 server RR 5000 server SR 300
	done
	transaction 1 1 client SR 256 -f server SR 256 -f	# completions are reaped when the answer is there
	transaction 1 1 client SR 4096 4 server RW 65536 4 client RR 65536 4 server SR 4096 4
}

# The server may end after its client, but not after `quit`.
whole_session() {
	session runs "$1" "$2"
	served=$(grep -c 'Transaction Test Finished for this client' "$tmp/server")
	[ "$served" -eq 22 ] || fail "$server served $served transactions, not 22"
}

each_pair dapltest whole_session
echo "$clients clients, $pairs"
