#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Open MPI with two ranks on the software device, over UCX, over libfabric, and by its own use of verbs (btl openib).
. test/blackbox/lib-verbs.sh
for program in mpirun mpicc; do
	command -v $program >"$tmp/where" || skip "no $program here (Debian: openmpi-bin, libopenmpi-dev)"
done
. test/blackbox/lib-uverbs.sh
[ -n "$other" ] || skip 'UCX takes no loopback address, and there is no other here'

mpicc -O1 -o "$tmp/ring" test/blackbox/ring.c >"$tmp/cc" 2>&1 || fail 'mpicc'
cd "$tmp" || fail 'no folder'
own_class=
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm_rsh_agent=false OMPI_MCA_btl=self
# Its component openib looks for a folder that only a kernel with RDMA has: here a /sys/class of the test's own has it.
# Debian's openib makes connections on InfiniBand alone.
mkdir classes
cat >class <<-'END'
	mount --rbind /sys/class "$1" && mount -t tmpfs class /sys/class && ln -s "$1"/* /sys/class/ || exit
	{ [ ! -L /sys/class/infiniband ] || rm /sys/class/infiniband; } && mkdir /sys/class/infiniband || exit
	shift
	exec "$@"
END
export UCX_NET_DEVICES=soft0:1 UCX_TLS=ib,self
# ring PLUGIN OPTION...
ring() {
	timeout -k 2 "$longest" $own_class "$sv" mpirun --oversubscribe -np 2 --mca pml "$@" ./ring >client 2>&1 &&
		says client '^2 ranks, 21 rounds, 0 bad bytes' || fail "two ranks with $*"
}
ring ucx
ring cm --mca mtl ofi --mca mtl_ofi_provider_include 'verbs;ofi_rxm'
over='UCX and libfabric'
if ompi_info 2>/dev/null | grep -q 'MCA btl: openib'; then	# version 5 has it no more
	own_class="unshare -m sh $tmp/class $tmp/classes"
	SOFTVERBS_LINK=infiniband
	export SOFTVERBS_LINK
	ring ob1 --mca btl openib,self --mca btl_openib_allow_ib 1 --mca btl_openib_warn_no_device_params_found 0
	over='UCX, libfabric and verbs'
fi
within 3 nothing_left || fail 'names of the software device are left'
echo "mpi: $(mpirun --version | head -n 1), over $over"
