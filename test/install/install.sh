#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# `make install`, `install-strip` and `uninstall` into folders of their own, over files of an administrator, with any umask.
set -u
: "${BUILD:?the build folder}"
case ${SAN:-} in ?*) echo 'skipped: the programs that it compiles have no sanitizer'; exit 77 ;; esac
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM
root="$tmp/a root" lib=/usr/lib/test-arch

fail() {
	echo "FAILED: $*"
	[ ! -s "$tmp/said" ] || cat "$tmp/said"
	exit 1
}

# run TARGET [VARIABLE=VALUE...]: make with the build that is there.
run() {
	target=$1
	shift
	eval "MAKEFLAGS= make -s $target ${MAKE_AGAIN:-} \"\$@\"" DESTDIR='"$root"' PREFIX=/usr LIBDIR=$lib >"$tmp/said" 2>&1 ||
		fail "make $target"
}

listing() {
	(cd "$root" && find . -mindepth 1 \( -type d -printf '%M %p\n' -o -type l -printf '%p %l\n' -o -printf '%M %p %s\n' \) | sort)
}

# --- an empty system: modes, links, and nothing said
(umask 077 && run install) || exit
[ ! -s "$tmp/said" ] || fail 'something is said'
[ -z "$(find "$root/usr" "$root/etc" -type f ! -perm 644 ! -perm 755)" ] || fail 'modes of files follow the umask'
[ -z "$(find "$root/usr" "$root/etc" -type d ! -perm 755)" ] || fail 'modes of folders follow the umask'
for name in dat2 daplofa daplsoft; do
	[ "$(readlink "$root$lib/lib$name.so.2")" = lib$name.so.2.0.0 ] || fail "lib$name.so.2"
	[ "$(readlink "$root$lib/lib$name.so")" = lib$name.so.2 ] || fail "lib$name.so"
	[ -f "$root$lib/lib$name.so.2.0.0" ] && [ ! -L "$root$lib/lib$name.so.2.0.0" ] || fail "lib$name.so.2.0.0"
done
grep -q "^libdir=$lib\$" "$root$lib/pkgconfig/dat2.pc" || fail 'dat2.pc does not know LIBDIR'
grep -q "$lib/softverbs" "$root/usr/bin/softverbs-run" || fail 'softverbs-run does not know LIBDIR'
grep -q "$lib/libdaplsoft.so.2" "$root/etc/dat.conf" || fail 'dat.conf does not know LIBDIR'
listing >"$tmp/first"

# --- again: nothing changes; then over what an administrator wrote
run install
listing | cmp -s - "$tmp/first" || fail 'a second installation differs'
echo '# of the site' >"$root/etc/dat.conf"
ln -sf /nowhere "$root/etc/dapl.conf"
run install
[ "$(cat "$root/etc/dat.conf")" = '# of the site' ] || fail 'dat.conf is overwritten'
[ "$(readlink "$root/etc/dapl.conf")" = /nowhere ] || fail 'a link in the place of dapl.conf is overwritten'
grep -q 'dat.conf is kept.*dat.conf.new' "$tmp/said" || fail 'dat.conf: nothing is said'
grep -q "$lib/libdaplsoft" "$root/etc/dat.conf.new" || fail 'dat.conf.new is missing'

# --- what others have in the same folders stays, and so do changed files of configuration
for other in $lib/libother.so usr/include/dat2/other.h etc/other usr/share/doc/udapl/notes; do
	echo other >"$root/$other"
done
run uninstall
grep -q 'dat.conf was changed' "$tmp/said" || fail 'uninstall: nothing is said of dat.conf'
(cd "$root" && find . ! -type d | sort) >"$tmp/left"
printf '%s\n' ./etc/dapl.conf ./etc/dat.conf ./etc/other ./usr/include/dat2/other.h ./usr/lib/test-arch/libother.so \
	./usr/share/doc/udapl/notes | cmp -s - "$tmp/left" || { cat "$tmp/left"; fail 'uninstall leaves or takes too much'; }
rm -rf "$root"

# --- stripped, and removed without a trace
run install-strip
if command -v readelf >/dev/null; then
	for file in "$root$lib/libdat2.so.2.0.0" "$root/usr/bin/dtest"; do
		! readelf -SW "$file" | grep -q '\.debug_info\|\.symtab' || fail "$file is not stripped"
	done
	readelf -dW "$root/usr/bin/dtest" | grep -q "RUNPATH.*$lib" || fail 'a program does not find LIBDIR'
fi

# --- examples by the lines of their README, with pkg-config, on the installed libraries
"$root/usr/bin/softverbs-run" true || fail 'softverbs-run does not find the drop-in'
if command -v pkg-config >/dev/null; then
	cp -r "$root/usr/share/doc/udapl/examples" "$tmp/examples"
	export PKG_CONFIG_PATH="$root$lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$tmp/root" LD_LIBRARY_PATH="$tmp/root$lib"
	ln -s "$root" "$tmp/root"
	(cd "$tmp/examples" && sed -n 's/^    \(cc .*dat2)\)$/\1/p' README.md | sh -e) >"$tmp/said" 2>&1 || fail 'the compile lines'
	sed "s|$lib|$tmp/root$lib|" "$root/etc/dat.conf" >"$tmp/dat.conf"
	export DAT_OVERRIDE="$tmp/dat.conf"
	port=$((20000 + $$ % 10000))
	timeout 100 "$tmp/examples/echo_epoll" -p $port -m 4 -n 4 >"$tmp/said" 2>&1 &
	server=$!
	until grep -q serving "$tmp/said"; do
		kill -0 $server 2>/dev/null || fail 'the example does not start'
		sleep 0.05
	done
	timeout 100 "$tmp/examples/echo_client" -p $port -m 4 -r 2 >"$tmp/client" 2>&1 || { cat "$tmp/client"; fail 'the client'; }
	wait $server || fail 'the example ends with an error'
fi
run uninstall
[ -z "$(find "$root" ! -type d)" ] || fail 'something is left'
[ ! -e "$root/usr/include/dat2" ] && [ ! -e "$root$lib/softverbs" ] && [ ! -e "$root/usr/share/doc/udapl" ] ||
	fail 'folders are left'

echo 'installed, kept, stripped, removed'
