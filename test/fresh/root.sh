# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Sourced by tests that need a bare Debian, in the folder $root, which is removed with the test. Needs root and
# debootstrap. RELEASE names the release (default: bookworm, Debian 12), FRESH the folder (default: a new one in TMPDIR).
need debootstrap util-linux
[ "$(id -u)" -eq 0 ] || { echo "$0: needs root, for chroot" >&2; exit 1; }

root=${FRESH:-$(mktemp -d)}
chmod 755 "$root"
inside() {	# in name spaces of its own, so that its mounts and processes end with it
	unshare --mount --pid --fork --kill-child sh -eu -c '
		mount -t proc proc "$0/proc"
		mount -t tmpfs tmpfs "$0/dev/shm" 2>/dev/null || :
		exec chroot "$0" "$@"' "$root" "$@"
}
trap 'rm -rf --one-file-system "$root"' EXIT

mirror=$(mirror)
echo "debootstrap into a folder, from $mirror"
debootstrap --variant=minbase "${RELEASE:-bookworm}" "$root" "$mirror" >"$root.log" 2>&1 ||
	{ tail -n 20 "$root.log" >&2; exit 1; }
rm -f "$root.log"

# Each file of a package is not written through to the disk: the folder is removed with the test.
echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/unsafe-io"

# The machine's settings for its package mirror, and no others.
cp -L /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || :
for conf in $(grep -liE 'proxy|check-valid|check-date' /etc/apt/apt.conf.d/* 2>/dev/null); do
	cp "$conf" "$root/etc/apt/apt.conf.d/"
done
