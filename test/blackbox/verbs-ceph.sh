#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Ceph's messenger over RDMA (ms_type async+rdma) on the software device: a monitor, two OSDs that keep objects in memory, and
# clients. Each object has two copies, so one OSD writes to the other. A killed OSD is started again.
. test/blackbox/lib-verbs.sh
for program in ceph-mon ceph-osd ceph rados monmaptool; do
	command -v $program >"$tmp/where" || skip "no $program here (Debian: ceph-mon, ceph-osd, ceph-common)"
done
[ -z "${SAN:-}" ] || skip 'the sanitizers do not see what these programs load'
id=6f3cc2d5-3d4b-4ef5-9f0d-5a3bb8fd1c11

# The receive queue of each connection takes 64 KiB for each of its entries from a pool of the process.
cat >"$tmp/ceph.conf" <<-END
	[global]
	fsid = $id
	mon_host = [v2:127.0.0.1:3300/0]
	auth_cluster_required = none
	auth_service_required = none
	auth_client_required = none
	ms_type = async+rdma
	ms_async_rdma_device_name = soft0
	ms_async_rdma_buffer_size = 65536
	ms_async_rdma_send_buffers = 512
	ms_async_rdma_receive_buffers = 2048
	ms_async_rdma_receive_queue_len = 512
	run_dir = $tmp
	admin_socket = $tmp/\$name.\$pid.asok
	log_file = $tmp/\$name.\$pid.log
	mon_data = $tmp/data.mon
	mon_allow_pool_size_one = true
	mon_data_avail_crit = 1
	osd_data = $tmp/data.osd.\$id
	osd_objectstore = memstore
	osd_crush_chooseleaf_type = 0
	osd_pool_default_size = 2
	osd_pool_default_min_size = 1
	osd_heartbeat_interval = 1
	osd_heartbeat_grace = 5
	mon_osd_min_down_reporters = 1
END
# run PROGRAM [ARGUMENT...]: on the drop-in, with that configuration
run() {
	program=$1
	shift
	timeout -k 2 "$longest" "$sv" "$program" -c "$tmp/ceph.conf" "$@" >"$tmp/run" 2>&1
}

monmaptool --create --fsid $id --addv a '[v2:127.0.0.1:3300]' "$tmp/map" >"$tmp/run" 2>&1 || fail monmaptool
run ceph-mon --mkfs -i a --monmap "$tmp/map" || fail 'the monitor is not made'
start mon "$sv" ceph-mon -f -c "$tmp/ceph.conf" -i a
within 30 run ceph -s || fail 'the monitor does not answer'

# osd NUMBER: starts one; its process is $started
osd() {
	start "osd-$1" "$sv" ceph-osd -f -c "$tmp/ceph.conf" -i "$1"
}
# osds_up COUNT
osds_up() {
	run ceph osd stat && says run " $1 up"
}
for number in 0 1; do
	uuid=6f3cc2d5-3d4b-4ef5-9f0d-00000000000$number
	mkdir "$tmp/data.osd.$number"
	run ceph osd new $uuid || fail "ceph osd new $number"
	run ceph-osd -i $number --mkfs --osd-uuid $uuid || fail "OSD $number is not made"
	osd $number
done
second=$started
within 30 osds_up 2 || fail 'an OSD does not start'
run ceph osd pool create pool 8 || fail 'no pool'

# same NAME: the object is what was put
same() {
	run rados -p pool get "$1" "$tmp/got" && cmp "$tmp/sent" "$tmp/got" >"$tmp/run" 2>&1
}
head -c 9000001 /dev/urandom >"$tmp/sent"
run rados -p pool put first "$tmp/sent" || fail 'put'
same first || fail 'another object than was put'
run rados -p pool bench 3 write -b 4096 -t 16 || fail 'small objects'
run rados -p pool bench 3 write -b 4194304 -t 4 --no-cleanup || fail 'large objects'
run rados -p pool bench 3 rand -t 4 || fail 'reads'

kill_program "$second"
run rados -p pool put second "$tmp/sent" || fail 'put, with one OSD'
same first && same second || fail 'an object is lost with one of two OSDs'
osd 1
within 30 osds_up 2 || fail 'a killed OSD does not start again'
run rados -p pool put third "$tmp/sent" && same third || fail 'put, after an OSD has come back'
kill $pids
within 30 nothing_left || fail 'names of the software device are left'
echo "ceph: $(ceph --version)"
