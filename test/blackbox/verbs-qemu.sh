#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# QEMU on the software device: a guest that never runs migrates over RDMA, with memory pinned as needed and all at once, and
# its memory arrives.
. test/blackbox/lib-verbs.sh
qemu=qemu-system-x86_64
command -v $qemu >"$tmp/where" || skip "no $qemu here (Debian: qemu-system-x86)"
ldd "$(cat "$tmp/where")" | grep -q librdmacm || skip "this $qemu was built without RDMA"
[ -z "${SAN:-}" ] || skip 'the sanitizers do not see what this program loads'
resolves "$(cat "$tmp/where")" || fail "$qemu does not load the drop-in"

cd "$tmp" || fail 'no folder'
# A part of zeros, which are not sent, between two of no pattern.
place=1048576 part=2097152
{ head -c $part /dev/urandom && head -c $part /dev/zero && head -c $part /dev/urandom; } >memory
mkfifo source.in target.in
exec 3<>source.in 4<>target.in

# guest NAME OPTION...: its monitor takes commands from NAME.in and answers in $tmp/NAME.
guest() {
	guest=$1
	shift
	start "$guest" sh -c "exec \"\$@\" <$guest.in" sh "$sv" $qemu -M pc -accel tcg -m 16 -S -display none -nodefaults \
		-no-user-config -qmp stdio "$@"
	tell "$guest" qmp_capabilities
}
# tell NAME COMMAND [ARGUMENTS]: the monitor has carried it out.
tell() {
	before=$(grep -c '"return"' "$1")
	echo "{\"execute\": \"$2\", \"arguments\": {${3:-}}}" >"$1.in"
	within 30 answers "$1" "$before" && ! says "$1" '"error"' || fail "$1: $2"
}
answers() {
	says "$1" '"error"' || [ "$(grep -c '"return"' "$1")" -gt "$2" ]
}

migrated() {
	tell source query-migrate
	! says source '"status": "failed"' || fail 'the migration failed'
	says source '"status": "completed"'
}

for pin_all in false true; do
	capability="\"capabilities\": [{\"capability\": \"rdma-pin-all\", \"state\": $pin_all}]"
	guest target -incoming defer
	target_pid=$started
	tell target migrate-set-capabilities "$capability"
	tell target migrate-incoming '"uri": "rdma:127.0.0.1:4444"'
	within 30 cm_listens 4444 || fail 'the target does not listen'
	guest source -device "loader,file=memory,addr=$place,force-raw=on"
	source_pid=$started
	tell source migrate-set-capabilities "$capability"
	tell source migrate '"uri": "rdma:127.0.0.1:4444"'
	within 30 migrated || fail 'no end of the migration'
	tell target pmemsave "\"val\": $place, \"size\": $((3 * part)), \"filename\": \"$tmp/arrived\""
	cmp memory arrived || fail "pinned at once: $pin_all: the memory differs"
	rm arrived
	for name in source target; do
		tell $name quit
	done
	wait "$source_pid" || fail 'the source'
	wait "$target_pid" || fail 'the target'
done
within 3 nothing_left || fail 'names of the software device are left'
echo "qemu: $($qemu --version | head -n 1)"
