# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Sourced by ./demo and ./check: makes sure that Debian packages are installed, or prints the missing ones.

build_packages='gcc libc6-dev make libibverbs-dev librdmacm-dev libconfig-dev'
# What test/blackbox runs on the drop-in besides; the tests of what is not there are skipped.
program_packages='ucx-utils libfabric-bin fio tgt libiscsi-bin openmpi-bin libopenmpi-dev mpich
	libmpich-dev librpma-dev libgloo-dev libtensorpipe-dev'
bench_packages='python3 ucx-utils libfabric-bin'
vm_packages='qemu-system-x86 kmod ibverbs-providers iproute2'
# What .ci/run needs besides.
ci_packages="clang libclang-rt-14-dev man-db valgrind debootstrap debhelper lintian fakeroot
	ibverbs-utils rdmacm-utils perftest python3-pyverbs rdma-core qperf strace mandoc chromium musl-tools relacy-dev
	$bench_packages $program_packages $vm_packages"
# What `make check-long` needs besides.
long_packages='ceph-mon ceph-osd ceph-common'
check_packages='g++ git libfabric-dev nettle-dev clang-format-14 libcunit1-dev libevent-dev dapl2-utils iproute2 python3'

installed() {
	case $(dpkg-query -W -f '${Status}' "$1" 2>/dev/null) in
	*' installed') ;;
	*) return 1 ;;
	esac
}

# Debian 13 has neither of these; the tests that need them are skipped there.
may_be_gone='dapl2-utils clang-format-14'

is_offered() {
	LC_ALL=C apt-cache policy "$1" 2>/dev/null | grep -q '^  Candidate: [^(]'
}

# without_gone PACKAGE...: prints those that this release is known to have. Before the lists of packages were fetched,
# that is none of may_be_gone.
without_gone() {
	for package; do
		case " $may_be_gone " in
		*" $package "*) is_offered "$package" || continue ;;
		esac
		printf ' %s' "$package"
	done
}

# Prints the address of the machine's package mirror.
mirror() {
	{
		sed -n 's/^URIs: *//p; s/^deb \(\[[^]]*\] \)*\([^ ]*\) .*/\2/p' /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null
		echo http://deb.debian.org/debian
	} | head -n 1
}

# need PACKAGE...: installs the missing ones as root; otherwise prints the line that would, and fails. It removes none: what
# would replace an installed package is left out, and the tests that need it are skipped.
need() {
	missing=
	if ! command -v dpkg-query >/dev/null 2>&1; then
		echo "this is not Debian: make sure that you have what these packages contain: $*" >&2
		return 0
	fi
	for package; do
		if [ "$package" = dapl2-utils ] && installed dapl-utils; then
			echo "without dapl2-utils, which would replace the installed dapl-utils"
		elif ! installed "$package"; then
			missing="$missing $package"
		fi
	done
	# shellcheck disable=SC2086
	offered=$(without_gone $missing)
	if [ "$(id -u)" -ne 0 ]; then
		[ -n "$offered" ] || return 0
		echo "Missing packages. As root, run:" >&2
		echo "apt-get update && apt-get install -y --no-install-recommends$offered" >&2
		return 1
	fi
	[ -n "$offered" ] || { [ -n "$missing" ] && ! is_offered make; } || return 0
	log=$(mktemp) || return
	echo 'fetching the lists of packages'
	# The lists may be there already; if an update fails, the installation shows whether that matters.
	apt-get update >"$log" 2>&1 || :
	# shellcheck disable=SC2086
	missing=$(without_gone $missing)
	[ -n "$missing" ] || { rm -f "$log"; return 0; }
	echo "installing:$missing (this takes a minute or two)"
	# Another program may be installing, and a mirror may fail once.
	# shellcheck disable=SC2086
	if ! DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 \
			install -y --no-remove --no-install-recommends $missing >>"$log" 2>&1; then
		tail -n 20 "$log" >&2
		rm -f "$log"
		return 1
	fi
	rm -f "$log"
}
