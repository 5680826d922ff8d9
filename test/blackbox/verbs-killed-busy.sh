#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# SIGKILL in the middle of a transfer, and to programs whose shell or child stays alive: the other side ends, and
# nothing is left (acceptance rows K3 to K5).
. test/blackbox/lib-verbs.sh
needs ib_send_bw rping

# program PID: prints the process that `timeout` with that process id runs. busy PID: the process has used a fifth of
# a second of processor time.
program() {
	cat "/proc/$1/task/$1/children" 2>/dev/null
}
busy() {
	[ "$(awk '{ print $14 + $15 }' "/proc/$(program "$1" | tr -d ' ')/stat" 2>/dev/null || echo 0)" -ge 20 ]
}
gone() {
	! kill -0 "$1" 2>/dev/null || grep -q ' Z ' "/proc/$1/stat"
}

# The transfer is bidirectional, so that the survivor has unanswered sends. First the server is killed, then the
# client.
for victim in server client; do
	options="-F -d soft0 -x 0 -p 18515 -b -D 60"
	start server "$sv" ib_send_bw $options
	server_pid=$started
	within 30 tcp_listens 18515 || fail 'ib_send_bw does not listen'
	start client "$sv" ib_send_bw $options 127.0.0.1
	client_pid=$started
	within 60 busy "$client_pid" && within 60 busy "$server_pid" || fail 'ib_send_bw does not begin'
	if [ $victim = server ]; then
		kill_program "$server_pid"
		other=$client_pid name=client
	else
		kill_program "$client_pid"
		other=$server_pid name=server
	fi
	within 20 gone "$other" || fail "ib_send_bw outlives its dead $victim"
	wait "$other" && fail "the $name does not fail"
	grep -Eq 'status (5|12)|error status 12|Transport retry|[Ff]lush|[Cc]ouldn.t read' "$tmp/$name" ||
		fail "the $name does not say why"
	wait "$server_pid" "$client_pid"
	within 3 nothing_left || fail "$victim killed: names of the software device are left"
done

# The client's shell and a child of the client stay alive with the descriptors that they inherited.
start server "$sv" rping -s -P -d -a 127.0.0.1
server_pid=$started
within 30 cm_listens 7174 || fail 'rping does not listen'
start shell sh -c "'$sv' rping -c -a 127.0.0.1 -v -C 0 >'$tmp/client' 2>&1 & echo \$!; sleep 60"
shell_pid=$started
within 30 says client 'ping data' || fail 'the client does not begin'
kill -9 "$(head -n 1 "$tmp/shell")"
within 10 says server 'DISCONNECT' || fail 'a client killed under its shell is not noticed'
kill_program "$shell_pid"
timeout -k 2 60 "$sv" rping -c -a 127.0.0.1 -C 5 -V >"$tmp/next" 2>&1 || fail "the next client: status $?"

cat >"$tmp/forks.c" <<'END'
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
/* When the test opens the other end of the pipe, for the connection is there, a child that only sleeps. */
static void *later(void *arg)
{
	if (open(getenv("FORKS_WHEN"), O_RDONLY) >= 0 && !fork()) {
		sleep(60);
		_exit(0);
	}
	return arg;
}
__attribute__((constructor)) static void begin(void)
{
	pthread_t thread;

	unsetenv("LD_PRELOAD");
	pthread_create(&thread, NULL, later, NULL);
}
END
if ${CC:-cc} -shared -fPIC -pthread -o "$tmp/forks.so" "$tmp/forks.c" 2>"$tmp/cc" && [ -z "$san_preload" ]; then
	: >"$tmp/server"
	mkfifo "$tmp/bin/when"
	export FORKS_WHEN="$tmp/bin/when"
	start client env LD_PRELOAD= "$sv" env LD_PRELOAD="$tmp/forks.so" rping -c -a 127.0.0.1 -v -C 0
	client_pid=$started
	# has_child PID
	has_child() {
		child=$(cat /proc/"$(program "$1" | tr -d ' ')"/task/*/children 2>/dev/null | tr -d ' ')
		[ -n "$child" ]
	}
	within 30 says client 'ping data' || fail 'the client does not begin'
	timeout 30 sh -c ': >"$FORKS_WHEN"'
	within 30 has_child "$client_pid" || fail 'the client does not fork'
	pids="$pids $child"
	: >"$tmp/server"
	kill_program "$client_pid"
	within 10 says server 'DISCONNECT' || fail 'a client killed with a living child is not noticed'
	kill -0 "$child" || fail 'its child is gone, too'
	timeout -k 2 60 "$sv" rping -c -a 127.0.0.1 -C 5 -V >"$tmp/next" 2>&1 || fail "the next client: status $?"
	kill "$child"
fi
kill_program "$server_pid"
wait "$server_pid"

# Nothing is left: no name and no shared memory.
within 3 nothing_left || fail 'names of the software device are left'
[ -z "$(find /dev/shm -newer "$tmp/bin" -name '*softverbs*' 2>/dev/null)" ] || fail 'shared memory is left in /dev/shm'
echo 'ib_send_bw and rping killed while busy; under a shell; with a child that lives on'
