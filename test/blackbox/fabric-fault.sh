#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# The network between two hosts fails while programs use it. A gap is waited out; a link that is reset is reported; a host
# that vanishes is given up after SOFTVERBS_FABRIC_TIMEOUT; a stopped process goes on where it was; strangers on the port
# disturb no traffic; a killed process is reported at once, at whatever instant: 10 kills, or 500 with LONG_SECONDS (make
# check-storms).
. test/blackbox/lib-fabric.sh
needs rping
kills=10
[ -z "${LONG_SECONDS:-}" ] || kills=500
one=10.79.0.1

serve() {
	start server "$sv" rping -s -a $one
	server_pid=$started
	within 30 grep -q 'c/[0-9a-f]*/7174/' /proc/net/unix || fail 'the server does not listen'
}
is_reached() {
	$there "$sv" --check $one >"$tmp/check" 2>&1
}
flow() {
	within 30 is_reached || fail 'the other host is not reached'	# the neighbour is unknown after a gap
	start client $there "$sv" rping -c -a $one -v -C 0
	client_pid=$started
	within 30 says client 'ping data' || fail 'the client does not begin'
}
lines() {
	wc -l <"$tmp/client"
}
goes_on() {
	[ "$(lines)" -gt $((before + 100)) ]
}
has_moved() {
	[ "$(lines)" -ge $((before + 10 * (i % 7))) ]
}
# The number of times that TCP of either host had no answer in time.
timeouts() {
	{ cat /proc/net/netstat; $there cat /proc/net/netstat; } | awk '
		/^TcpExt: [A-Z]/ { for (i = 1; i <= NF; i++) if ($i == "TCPTimeouts") column = i }
		/^TcpExt: [0-9]/ { sum += $column } END { print sum }'
}
has_timed_out() {
	[ "$(timeouts)" -gt "$count" ]
}
has_ended() {
	not_running "$client_pid"
}

# A gap: TCP sends again what was lost.
serve
flow
count=$(timeouts)
ip link set v0 down
within 15 has_timed_out || fail 'TCP does not notice that the wire is down'
ip link set v0 up
before=$(lines)
within 60 goes_on || fail 'no data after the gap'

# Strangers: one that sends garbage, others that say nothing.
before=$(lines)
$there python3 - $one <<'END' || fail 'the strangers'
import os, socket, sys
idle = []
for i in range(200):
	idle.append(socket.create_connection((sys.argv[1], 20515)))
for i in range(50):
	with socket.create_connection((sys.argv[1], 20515)) as garbage:
		try:
			garbage.sendall(os.urandom(100000))
		except OSError:
			pass	# the other side has seen enough
END
within 30 goes_on || fail 'strangers stop the traffic'

# A stopped peer: nothing is lost. The kernel goes on to acknowledge, so the host has not vanished.
program=$(cat /proc/$server_pid/task/$server_pid/children)
kill -STOP $program
has_stopped() {	# each of its threads
	! grep -hv '^State:.*T' "/proc/$program/task"/*/status | grep -q '^State:'
}
within 30 has_stopped || fail 'the server does not stop'
before=$(lines)
kill -CONT $program
within 30 goes_on || fail 'no data after the server goes on'

# The link's TCP connection is reset: each side reports the end, and the next connection finds a new link.
python3 - "$program" <<'END' || fail 'the link is not reset'
import ctypes, os, sys
pid = int(sys.argv[1])
lines = [line.split() for family in ('tcp', 'tcp6') for line in open(f'/proc/{pid}/net/{family}')]
links = {line[9] for line in lines if line[3] == '01' and line[1].endswith(':%04X' % 20515)}
libc = ctypes.CDLL(None, use_errno=True)
def of(fd):	# the program may be closing it
	try:
		return os.readlink(f'/proc/{pid}/fd/{fd}')
	except FileNotFoundError:
		return ''
pidfd = os.pidfd_open(pid)
fds = [fd for fd in os.listdir(f'/proc/{pid}/fd') if of(fd)[8:-1] in links]	# socket:[NUMBER]
copies = [libc.syscall(438, pidfd, int(fd), 0) for fd in fds]	# pidfd_getfd
sys.exit(not any([libc.connect(copy, bytes(16), 16) == 0 for copy in copies]))	# AF_UNSPEC resets it
END
within 10 says server 'DISCONNECT' || fail 'the server hears nothing of the reset of its link'
within 10 has_ended || fail 'the client hears nothing of the reset of its link'
wait "$server_pid" "$client_pid"
serve
flow

# A host that vanishes: each side gives the other up.
kill_program "$client_pid"
within 10 has_ended
wait "$server_pid"
export SOFTVERBS_FABRIC_TIMEOUT=2
serve
flow
begin=$(date +%s)
ip link set v0 down
within 30 says server 'DISCONNECT' || fail 'the server waits for a host that has vanished'
within 30 has_ended || fail 'the client waits for a host that has vanished'
took=$(($(date +%s) - begin))
[ $took -le 20 ] || fail "a host that vanishes is given up after $took s instead of 2"
wait "$server_pid" "$client_pid"
ip link set v0 up
unset SOFTVERBS_FABRIC_TIMEOUT

# Kills, each at another instant of the traffic.
i=0
while [ $i -lt "$kills" ]; do
	serve
	flow
	before=$(lines)
	within 30 has_moved || fail "kill $i: no data"
	if [ $((i % 2)) = 0 ]; then
		kill_program "$server_pid"
		within 2 has_ended || fail "kill $i: the client outlives its server"
		says client DISCONNECT || fail "kill $i: the client does not say why"
	else
		kill_program "$client_pid"
		within 2 says server DISCONNECT || fail "kill $i: the server hears nothing of the death of its client"
	fi
	end "$server_pid" "$client_pid"
	wait "$server_pid" "$client_pid"
	i=$((i + 1))
done
within 3 nothing_left || fail 'names of the software device are left'
echo "a gap, strangers, a stopped server, a reset, a host that vanishes, $kills kills"
