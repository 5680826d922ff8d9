#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# iSCSI over RDMA (iSER) on the software device: tgtd with a disk, and libiscsi's programs.
. test/blackbox/lib-verbs.sh
for program in tgtd iscsi-inq; do
	command -v $program >"$tmp/where" || skip "no $program here (Debian: tgt, libiscsi-bin)"
done
[ "$(id -u)" -eq 0 ] || skip 'tgtd wants to be root'
[ -n "$other" ] || skip 'no address here but the loopback one'
[ -z "${SAN:-}" ] || skip 'the sanitizers do not see what these programs load'

export TGT_IPC_SOCKET="$tmp/ipc"
disk=iqn.2001-04.com.example:disk initiator=iqn.2007-10.com.github:sahlberg:libiscsi:iscsi
truncate -s 8M "$tmp/disk.img"
start tgtd "$sv" tgtd -f --iser pool_sz_mb=64
tgtd_pid=$started
admin() {
	tgtadm --lld iser "$@" >"$tmp/tgtadm" 2>&1
}
within 30 cm_listens 3260 || fail 'tgtd does not listen'
within 30 admin --mode target --op show || fail 'tgtd does not answer'
admin --mode target --op new --tid 1 -T $disk || fail 'no target'
admin --mode logicalunit --op new --tid 1 --lun 1 -b "$tmp/disk.img" || fail 'no disk'
admin --mode target --op bind --tid 1 -I ALL || fail 'no address may log in'

# With the address alone tgtd admits initiators over TCP. Over RDMA it also needs their names, and otherwise prints
# "Target not found".
! timeout -k 2 60 "$sv" iscsi-inq "iser://$other:3260/$disk/1" >"$tmp/refused" 2>&1 || fail 'no name is needed any more'
says refused 'Target not found' || fail 'the refusal has another reason'
for program in inq readcapacity16; do
	admin --mode target --op bind --tid 1 -Q "$initiator-$program" || fail "iscsi-$program may not log in"
	timeout -k 2 60 "$sv" iscsi-$program "iser://$other:3260/$disk/1" >"$tmp/$program" 2>&1 || fail "iscsi-$program"
done
says inq 'Vendor:IET' || fail 'an answer that is not of tgtd'
grep -Eq 'Total size: *8388608' "$tmp/readcapacity16" || fail 'the disk has another size'
kill_program "$tgtd_pid"
wait "$tgtd_pid"
within 3 nothing_left || fail 'names of the software device are left'
echo "iser: $(tgtd --version)"
