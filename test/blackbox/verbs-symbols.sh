#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# The drop-in has every name that the packaged programs and provider libraries import, in the versions of rdma-core.
. test/blackbox/lib-verbs.sh

# versions LIBRARY: prints its default symbols with their versions.
versions() {
	nm -D --defined-only "$1" | awk '$NF ~ /@@/ { print $NF }' | sort
}

checked=0
for program in ibv_rc_pingpong ibv_uc_pingpong ibv_srq_pingpong ibv_ud_pingpong ibv_xsrq_pingpong ibv_asyncwatch \
	ibv_devices ibv_devinfo rping ucmatose udaddy cmtime mckey rdma_server rdma_client rdma_xserver rdma_xclient \
	rstream riostream rcopy udpong ib_send_lat ib_send_bw ib_write_lat ib_write_bw ib_read_lat ib_read_bw \
	ib_atomic_lat ib_atomic_bw dtest dtestx dapltest qperf fi_info; do
	path=$(command -v $program) || continue
	resolves "$path" || fail "$path does not resolve"
	checked=$((checked + 1))
done

here=0
for dir in /usr/lib/*-linux-gnu /usr/lib64 /usr/lib; do
	for library in libdaplofa.so.2 libdaploscm.so.2 libdaploucm.so.2 libmlx5.so.1 libefa.so.1; do
		[ -e "$dir/$library" ] || continue
		resolves "$dir/$library" || fail "$dir/$library does not resolve"
		checked=$((checked + 1))
	done
	for library in libibverbs librdmacm; do
		[ -e "$dir/$library.so.1" ] || continue
		readelf -d "$drop/$library.so.1" | grep -q "soname: \[$library.so.1\]" || fail "$library: its SONAME"
		versions "$dir/$library.so.1" >"$tmp/all"
		# an rdma-core after 65 may have later nodes, and more private names; its provider libraries are looked at above
		later='@@IBVERBS_1\.(19|[2-9].)|@@RDMACM_1\.([6-9]|1.)'
		grep -Eq '@@IBVERBS_PRIVATE_(34|59|65)' "$tmp/all" || later="$later|@@IBVERBS_PRIVATE_"
		grep -Ev "$later" "$tmp/all" >"$tmp/theirs"
		versions "$drop/$library.so.1" >"$tmp/ours"
		comm -23 "$tmp/theirs" "$tmp/ours" >"$tmp/missing"
		[ -s "$tmp/theirs" ] && [ ! -s "$tmp/missing" ] || fail "$library lacks symbols"
		here=$((here + $(wc -l <"$tmp/theirs")))
	done
done
[ $checked -gt 0 ] || skip 'neither programs nor libraries of rdma-core here'
echo "$checked programs and libraries resolve, $here versioned symbols of rdma-core are there"
