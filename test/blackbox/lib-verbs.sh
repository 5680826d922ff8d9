# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Sourced by the tests of the drop-in: programs of other makers, as packaged, on the software device.
. test/blackbox/lib.sh
not_under_tsan

drop=$BUILD/lib/softverbs
sv=$tmp/bin/sv
mkdir "$tmp/bin"
cat >"$sv" <<-END
	#!/bin/sh
	${san_preload:+export LD_PRELOAD='$san_preload' ASAN_OPTIONS=detect_leaks=0}
	exec '$BUILD/bin/softverbs-run' "\$@"
END
chmod +x "$sv"

# resolves PROGRAM: it finds all its symbols, and those of verbs and rdma_cm in this build.
resolves() {
	LD_LIBRARY_PATH=$drop ldd -r "$1" >"$tmp/ldd" 2>&1 || return 1
	# a provider of DAT is loaded by libdat2 and finds that there
	! grep -v 'undefined symbol: dats\{0,1\}_' "$tmp/ldd" | grep -Eq 'not found|undefined symbol' &&
		! grep -E 'lib(ibverbs|rdmacm)\.so\.1 =>' "$tmp/ldd" | grep -qvF "=> $drop/"
}

# needs PROGRAM...: skips the test if one is absent; fails if one would run on other libraries.
needs() {
	for program; do
		command -v "$program" >"$tmp/where" || skip "no $program here (Debian: ibverbs-utils, rdmacm-utils, perftest)"
		resolves "$(cat "$tmp/where")" || fail "$program does not load the drop-in"
	done
}

# The port of a verbs program that exchanges addresses over TCP; and of one that listens with rdma_cm.
tcp_listens() {
	awk -v port="$(printf ':%04X' "$1")" '$2 ~ port "$" && $4 == "0A" { found = 1 } END { exit !found }' \
		/proc/net/tcp /proc/net/tcp6
}
cm_listens() {
	grep -q "@softverbs/.*/$1/" /proc/net/unix
}

# pair READY SERVER -- CLIENT: both succeed. READY is a command that succeeds once the server listens.
pair() {
	ready=$1 server=$2 client=$3
	start server "$sv" $server
	server_pid=$started
	within 10 $ready || fail "$server does not listen"
	timeout -k 2 30 "$sv" $client >"$tmp/client" 2>&1 || fail "$client ended with status $?"
	wait "$server_pid" || fail "$server ended with status $?"
}
