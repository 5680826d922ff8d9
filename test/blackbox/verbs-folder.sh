#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Processes in different network name spaces, then also in different pid and user name spaces, meet in a folder
# (SOFTVERBS_DIR). One is killed: the other is notified, and the next one is not hindered by the remains.
. test/blackbox/lib-verbs.sh
needs rping ucmatose udaddy

folder=$tmp/folder
mkdir -m 700 "$folder"
export SOFTVERBS_DIR="$folder"

# Runs a COMMAND in name spaces made with the options in $spaces; its addresses are loopback and 10.9.0.N.
cat >"$tmp/bin/apart" <<-'END'
	#!/bin/sh
	number=$1
	shift
	exec unshare $spaces sh -c 'ip link set lo up && ip address add '"10.9.0.$number/24"' dev lo && exec "$@"' sh "$@"
END
chmod +x "$tmp/bin/apart"
apart=$tmp/bin/apart

holds() {
	ls "$folder" | grep -q "$1"
}
empty() {
	[ -z "$(ls "$folder")" ]
}

# client COMMAND...: repeats until the server listens, because its port has the name a moment before.
client() {
	tries=1
	until timeout -k 2 "$longest" "$apart" 2 "$sv" "$@" >"$tmp/client" 2>&1 && ! says client 'error: 8'; do
		grep -q 'REJECTED\|error: 8' "$tmp/client" && [ $tries -lt 100 ] || fail "$1 did not succeed, with unshare $spaces"
		tries=$((tries + 1))
	done
}

# both PORT SERVER -- CLIENT: runs each in name spaces of its own; nothing is left.
both() {
	port=$1 server=
	shift
	while [ "$1" != -- ]; do
		server="$server $1"
		shift
	done
	shift
	start server "$apart" 1 "$sv" $server
	server_pid=$started
	within 60 holds ",$port," || fail "$server does not listen, with unshare $spaces"
	client "$@"
	wait "$server_pid" || fail "$server did not succeed, with unshare $spaces"
	within 3 empty || fail "left: $(ls "$folder")"
}

# kill_apart PID: kills what `timeout` with that process id runs. `unshare` with a name space of processes has a child, which
# the kernel kills after it.
kill_apart() {
	inner=$1
	while child=$(cat "/proc/$inner/task/$inner/children") && [ -n "$child" ]; do inner=${child%% *}; done
	kill_program "$1"
	wait "$1"
	within 10 not_running "$inner" || fail 'a killed program goes on'
}

served=
for spaces in '-n' '-n -p -f --kill-child' '-Urn' '-Urn -p -f --kill-child'; do
	export spaces
	"$apart" 1 true 2>"$tmp/why" || continue
	served="$served, $spaces" works=$spaces
	both 7174 rping -s -a 127.0.0.1 -C 5 -S 60000 -- rping -c -a 127.0.0.1 -C 5 -S 60000 -V
	both 7174 rping -s -C 5 -- rping -c -a 10.9.0.1 -C 5 -V	# a wildcard, resolved to an address of the other name space
	both 7471 ucmatose -b 10.9.0.1 -c 4 -C 10 -S 4096 -- ucmatose -s 10.9.0.1 -c 4 -C 10 -S 4096
	both 7174 udaddy -b 10.9.0.1 -- udaddy -s 10.9.0.1

	start server "$apart" 1 "$sv" rping -s -P -d -a 10.9.0.1
	server_pid=$started
	within 60 holds ,7174, || fail 'the server does not listen'
	client rping -c -a 10.9.0.1 -C 2 -V
	start victim "$apart" 2 "$sv" rping -c -a 10.9.0.1 -v -C 0
	victim_pid=$started
	within 30 says victim 'ping data' || fail 'the client does not begin'
	: >"$tmp/server"
	kill_apart "$victim_pid"
	within 10 says server 'DISCONNECT' || fail 'the server hears nothing of the death of its client'
	client rping -c -a 10.9.0.1 -C 2 -V
	kill_apart "$server_pid"
	holds ,7174, || fail 'a killed process left no name: this proves nothing'
	both 7174 rping -s -a 10.9.0.1 -C 5 -- rping -c -a 10.9.0.1 -C 5 -V
done
[ -n "$served" ] || skip "no network name spaces here: $(cat "$tmp/why")"

# Without the folder the processes do not find each other, and the log says why.
spaces=$works
hears() {
	! SOFTVERBS_DIR= SOFTVERBS_LOG=4 timeout -k 2 30 "$apart" 2 "$sv" ucmatose -s "$1" -c 3 >"$tmp/far" 2>&1 ||
		fail "$1 of another network namespace was reached without a folder"
	[ "$(grep -c "$2" "$tmp/far")" = "$3" ] || fail "what is missing is not told, or not $3 times"
}
hears 10.9.7.1 'soft0: 10.9.7.1 is no address of this network namespace.*SOFTVERBS_DIR' 1	# this name space has no route
hears 127.0.0.1 'no process of this user listens there in this network namespace' 3

chmod g+w "$folder"
! "$sv" ibv_rc_pingpong -d soft0 -g 0 >"$tmp/open" 2>&1 || fail 'a folder in which others may write was taken'
says open 'others may write there' || fail 'it is not told why the folder was not taken'
echo "processes of different name spaces meet in a folder: ${served#, }"
