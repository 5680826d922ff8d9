#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# `make install`, `install-strip` and `uninstall` into folders of their own, over an administrator's files, with any
# umask.
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

# run TARGET [VARIABLE=VALUE...]: runs make on the existing build.
run() {
	target=$1
	shift
	eval "MAKEFLAGS= make -s $target ${MAKE_AGAIN:-} \"\$@\"" DESTDIR='"$root"' PREFIX=/usr LIBDIR=$lib >"$tmp/said" 2>&1 ||
		fail "make $target"
}

listing() {
	(cd "$root" && find . -mindepth 1 \( -type d -printf '%M %p\n' -o -type l -printf '%p %l\n' -o -printf '%M %p %s\n' \) | sort)
}

# --- an empty system: modes and links are right, and nothing is printed
(umask 077 && run install) || exit
[ ! -s "$tmp/said" ] || fail 'something is said'
[ -z "$(find "$root/usr" "$root/etc" -type f ! -perm 644 ! -perm 755)" ] || fail 'modes of files follow the umask'
[ -z "$(find "$root/usr" "$root/etc" -type d ! -perm 755)" ] || fail 'modes of folders follow the umask'
for name in dat2 daplofa daploscm daploucm daplsoft; do
	[ "$(readlink "$root$lib/lib$name.so.2")" = lib$name.so.2.0.0 ] || fail "lib$name.so.2"
	[ "$(readlink "$root$lib/lib$name.so")" = lib$name.so.2 ] || fail "lib$name.so"
	[ -f "$root$lib/lib$name.so.2.0.0" ] && [ ! -L "$root$lib/lib$name.so.2.0.0" ] || fail "lib$name.so.2.0.0"
done
grep -q "^libdir=$lib\$" "$root$lib/pkgconfig/dat2.pc" || fail 'dat2.pc does not know LIBDIR'
grep -q "$lib/softverbs" "$root/usr/bin/softverbs-run" || fail 'softverbs-run does not know LIBDIR'
grep -q "$lib/libdaplsoft.so.2" "$root/etc/dat.conf" || fail 'dat.conf does not know LIBDIR'
listing >"$tmp/first"

# --- again: nothing changes; then over an administrator's changes
run install
listing | cmp -s - "$tmp/first" || fail 'a second installation differs'
echo '# of the site' >"$root/etc/dat.conf"
ln -sf /nowhere "$root/etc/dapl.conf"
run install
[ "$(cat "$root/etc/dat.conf")" = '# of the site' ] || fail 'dat.conf is overwritten'
[ "$(readlink "$root/etc/dapl.conf")" = /nowhere ] || fail 'a link in the place of dapl.conf is overwritten'
grep -q 'dat.conf is kept.*dat.conf.new' "$tmp/said" || fail 'dat.conf: nothing is said'
grep -q "$lib/libdaplsoft" "$root/etc/dat.conf.new" || fail 'dat.conf.new is missing'

# --- other packages' files in the same folders stay, and so do changed configuration files
for other in $lib/libother.so usr/include/dat2/other.h etc/other usr/share/doc/udapl/notes; do
	echo other >"$root/$other"
done
run uninstall
grep -q 'dat.conf was changed' "$tmp/said" || fail 'uninstall: nothing is said of dat.conf'
(cd "$root" && find . ! -type d | sort) >"$tmp/left"
printf '%s\n' ./etc/dapl.conf ./etc/dat.conf ./etc/other ./usr/include/dat2/other.h ./usr/lib/test-arch/libother.so \
	./usr/share/doc/udapl/notes | cmp -s - "$tmp/left" || { cat "$tmp/left"; fail 'uninstall leaves or takes too much'; }
rm -rf "$root"

# --- what another program put in the place of a file stays, and what is gone is not missed
run install
echo other >"$root$lib/libdaplsoft.so.2.0.0"
ln -sfn libother.so "$root$lib/libdaplofa.so.2"
rm "$root/usr/bin/dtest"
run uninstall
for changed in libdaplsoft.so.2.0.0 libdaplofa.so.2; do
	grep -q "$lib/$changed was changed, and is kept" "$tmp/said" || fail "uninstall: nothing is said of $changed"
done
(cd "$root" && find . ! -type d | sort) >"$tmp/left"
printf '%s\n' .$lib/libdaplofa.so.2 .$lib/libdaplsoft.so.2.0.0 | cmp -s - "$tmp/left" ||
	{ cat "$tmp/left"; fail 'uninstall takes what another program has put'; }
run uninstall
grep -q 'nothing is known to be installed' "$tmp/said" || fail 'uninstall: nothing is said without a list'
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
	# pkg-config of Debian 11 leaves out what the compiler knows before it adds the folder.
	export PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
	ln -s "$root" "$tmp/root"
	(cd "$tmp/examples" && sed -n 's/^    \(cc .*dat2)\)$/\1/p' README.md | sh -e) >"$tmp/said" 2>&1 || fail 'the compile lines'
	# The line that the pages of section 3 have, as installed.
	printf '%s\n' '#include <dat2/udat.h>' 'int main(void) { return dat_ia_close(DAT_HANDLE_NULL, DAT_CLOSE_DEFAULT) == DAT_SUCCESS; }' >"$tmp/examples/program.c"
	(cd "$tmp/examples" && sed -n 's/\\-/-/g; s/^\.B \(cc program\.c .*\)$/\1/p' "$root"/usr/share/man/man3/*.3 | sort -u | sh -e) >"$tmp/said" 2>&1 ||
		fail 'the line that compiles, of a manual page'
	"$tmp/examples/a.out" 2>/dev/null || fail 'no manual page has a line that compiles'
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

# --- DAT 1.2 only where it is asked for: the example by its own line, and an unchanged dat.conf of OFED 1.x
run install
[ ! -e "$root/usr/include/dat" ] && [ ! -e "$root$lib/libdat.so.1" ] || fail 'DAT 1.2 without COMPAT'
run install COMPAT=1
[ "$(readlink "$root$lib/libdat.so.1")" = libdat.so.1.2.0 ] && [ "$(readlink "$root$lib/libdat.so")" = libdat.so.1 ] ||
	fail 'links of libdat.so.1'
[ "$(readlink "$root$lib/libdaplcma.so.1")" = libdaplofa.so.2 ] || fail 'libdaplcma.so.1'
if command -v pkg-config >/dev/null; then
	(cd "$tmp/examples" && sed -n 's/^ \*     \(cc .*dat)\)$/\1/p' srq_dat12.c | sh -e) >"$tmp/said" 2>&1 || fail 'the line of DAT 1.2'
	# The link leads to a provider of RDMA devices, of which there are none; another provider in its place is
	# opened.
	ln -sfn libdaplsoft.so.2 "$root$lib/libdaplcma.so.1"
	echo 'OpenIB-cma u1.2 nonthreadsafe default libdaplcma.so.1 dapl.1.2 "soft0 1" ""' >"$tmp/dat.conf"
	[ -x "$tmp/examples/srq_dat12" ] || fail 'the example of DAT 1.2 has no line that compiles it'
	"$tmp/examples/srq_dat12" OpenIB-cma >"$tmp/said" 2>&1 || fail 'the example of DAT 1.2'
	ln -sfn libdaplofa.so.2 "$root$lib/libdaplcma.so.1"
fi
run install
run uninstall
[ -z "$(find "$root" ! -type d)" ] && [ ! -e "$root/usr/include/dat" ] || fail 'something is left of an earlier installation with DAT 1.2'

echo 'installed, kept, stripped, removed; DAT 1.2 on demand'
