#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Trees in unusual places: a path with blanks, a tree that was moved, a source that cannot be written, two demos at
# once. It takes half a minute, because it links everything for each place.
set -u
: "${BUILD:?the build folder}"
case ${SAN:-} in ?*) echo 'skipped: once is enough'; exit 77 ;; esac
tmp=$(mktemp -d)
trap 'umount "$tmp/read only" 2>/dev/null; rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM
tree="$tmp/a tree & more"
# The trees of this test have folders of their own to build in.
again=$(printf '%s' "${MAKE_AGAIN:-}" | sed 's/\(^\| \)B=[^ ]*//g')

fail() {
	echo "FAILED: $*"
	tail -n 30 "$tmp/said" "$tmp/said 2" 2>/dev/null
	exit 1
}
demo() {
	(cd "$1" && eval "MAKEFLAGS= make -s ${2:-demo} $again" 2>&1)
}

# The products are those of this check's build: products that depend on the path are rebuilt, the others are not.
mkdir "$tree"
git ls-files -z 2>/dev/null | grep -qz Makefile && list='git ls-files -z' || list='find . -path ./build -prune -o -type f -print0'
$list | tar --null -T - -cf - | tar -C "$tree" -xf -
mkdir "$tree/build"
cp -a "$BUILD/obj" "$BUILD/lib" "$BUILD/bin" "$BUILD/gen" "$BUILD/flags" "$BUILD/dat.conf" "$BUILD/folder" "$tree/build" 2>/dev/null
demo "$tree" >"$tmp/said" || fail 'the demo in a path with blanks'
grep -qF "\"$tree/build/lib/libdaplsoft.so.2\"" "$tree/build/dat.conf" || fail 'dat.conf does not lead into the tree'

# After a move the next make rebuilds what contains the old path.
mv "$tree" "$tmp/moved"
demo "$tmp/moved" >"$tmp/said" || fail 'the demo of a moved tree'
grep -q "$tmp/moved/build/lib" "$tmp/moved/build/dat.conf" || fail 'dat.conf leads to the old place'

# Two demos at once choose different ports.
demo "$tmp/moved" run-demo >"$tmp/said" &
other=$!
demo "$tmp/moved" run-demo >"$tmp/said 2" || fail 'one of two demos'
wait $other || fail 'the other of two demos'
grep -q PASSED "$tmp/said" && grep -q PASSED "$tmp/said 2" || fail 'a demo did not pass'

# If the source cannot be written, ./demo builds in the user's cache folder. Everything is built already but for the
# link.
note=
if mkdir "$tmp/read only" && mount --bind "$tmp/moved" "$tmp/read only" 2>/dev/null &&
	mount -o remount,ro,bind "$tmp/read only" 2>/dev/null; then
	mkdir -p "$tmp/cache/udapl"
	cp -a "$tmp/moved/build" "$tmp/cache/udapl/build"
	(cd "$tmp/read only" && eval "MAKEFLAGS= XDG_CACHE_HOME=\"$tmp/cache\" ./demo $again") >"$tmp/said" 2>&1 ||
		fail 'the demo of a source that cannot be written'
	grep -q "building in $tmp/cache/udapl/build" "$tmp/said" || fail 'it does not say where it builds'
	note=', a source that cannot be written'
fi
echo "a path with blanks, a moved tree, two demos at once$note"
