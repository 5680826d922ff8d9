#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Mistakes of a user: each has its return code and one log line that names the cause, and leaks nothing.
. test/blackbox/lib.sh

checker='valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite'
command -v valgrind >/dev/null 2>&1 || checker=
[ -z "${SAN:-}" ] || checker=		# the sanitizer has its own leak checker
case ${CC:-} in *clang*) checker= ;; esac	# clang writes debug information that valgrind 3.19 cannot read

# expect NAME TEXT LOG-LINE COMMAND...: the exit status is 1, the program prints TEXT, and the log has LOG-LINE
# exactly once.
expect() {
	name=$1 text=$2 line=$3
	shift 3
	timeout -k 2 "$longest" $checker "$@" >"$tmp/$name" 2>"$tmp/$name.err"
	status=$?
	[ $status -eq 1 ] || fail "$name: exit status $status"
	cat "$tmp/$name.err" >>"$tmp/$name"
	grep -q "$text" "$tmp/$name" || fail "$name: does not say '$text'"
	[ -z "$line" ] || [ "$(grep -c "$line" "$tmp/$name.err")" -eq 1 ] || fail "$name: not one line '$line'"
	nothing_left || fail "$name: names of the software device are left"
}

dtest="$BUILD/bin/dtest -N -h 127.0.0.1"

expect unknown DAT_NAME_NOT_REGISTERED '' $dtest -P no-such-ia

cat >"$tmp/conf" <<-END
	short u2.0 nonthreadsafe default $BUILD/lib/libdaplsoft.so.2
	open  u2.0 nonthreadsafe default "no end of this dapl.2.0 "soft0 1" ""
	gone  u2.0 nonthreadsafe default /nowhere/libdapl.so.2 dapl.2.0 "soft0 1" ""
	empty u2.0 nonthreadsafe default $BUILD/lib/libdat2.so.2 dapl.2.0 "soft0 1" ""
	net   u2.0 nonthreadsafe default $BUILD/lib/libdaplsoft.so.2 dapl.2.0 "no-such-netdev 0" ""
	words u2.0 nonthreadsafe default $BUILD/lib/libdaplsoft.so.2 dapl.2.0 "soft0" ""
	hca   u2.0 nonthreadsafe default $BUILD/lib/libdaplofa.so.2 dapl.2.0 "127.0.0.1 0" ""
	good  u2.0 nonthreadsafe default $BUILD/lib/libdaplsoft.so.2 dapl.2.0 "soft0 1" ""
END
DAT_OVERRIDE=$tmp/conf
expect line-short DAT_NAME_NOT_REGISTERED "$tmp/conf:1: " $dtest -P short
expect line-open  DAT_NAME_NOT_REGISTERED "$tmp/conf:2: " $dtest -P open
expect no-library DAT_PROVIDER_NOT_FOUND 'gone: dlopen: /nowhere/libdapl.so.2' $dtest -P gone
expect no-provider DAT_PROVIDER_NOT_FOUND 'did not register it' $dtest -P empty
expect no-netdev DAT_INVALID_ADDRESS 'no-such-netdev: no network interface' $dtest -P net
expect no-port DAT_INVALID_ADDRESS "'soft0': parameters are" $dtest -P words
expect no-device DAT_INVALID_ADDRESS 'rdma_create_event_channel' $dtest -P hca
expect refused PEER_REJECTED '' $dtest -P good
DAT_OVERRIDE=$tmp/none
expect no-conf DAT_NAME_NOT_REGISTERED "$tmp/none" $dtest -P good
echo '10 mistakes, each told and nothing leaked'
