#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Tensorpipe, with which PyTorch calls functions of other processes, on the software device: messages come back, and a process that
# is killed meanwhile ends its pipe at the other one, which serves the next.
. test/blackbox/lib-verbs.sh
[ -z "${SAN:-}" ] || skip 'the sanitizers do not see what this program loads'
echo '#include <tensorpipe/tensorpipe.h>' | c++ -std=c++17 -E -x c++ -o "$tmp/header" - 2>"$tmp/why" ||
	skip 'no Tensorpipe here (Debian: libtensorpipe-dev)'
c++ -std=c++17 -O1 -o "$tmp/echo" test/blackbox/tensorpipe_echo.cc -ltensorpipe -lpthread >"$tmp/cc" 2>&1 || fail 'c++'

start server "$sv" "$tmp/echo" "$tmp/url"
serving=$started
within "$longest" test -s "$tmp/url" || fail 'no address'
grep -q "@softverbs/[0-9]*/$user/" /proc/net/unix || fail 'the program does not load the drop-in'
start killed "$sv" "$tmp/echo" "$tmp/url" 1000000
within "$longest" says killed '^it came back$' || fail 'no message comes back'
kill_program "$started"
within "$longest" says server '^end: ' || fail 'the server does not learn of the end'
start client "$sv" "$tmp/echo" "$tmp/url" 8
within "$longest" says client '^right$' || fail 'messages are wrong'
kill "$serving"
within 3 nothing_left || fail 'names of the software device are left'
echo "Tensorpipe: $(dpkg-query -W -f '${Version}' libtensorpipe0 2>"$tmp/why")"
