# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Sourced by ./demo and ./check: builds a target, one build at a time, also of a tree that cannot be written.

# build_folder [B=FOLDER...]: sets B to the folder of the products, by default build, or the user's cache if that
# cannot be written.
build_folder() {
	B=build
	for word; do
		case $word in B=*) B=${word#B=} ;; esac
	done
	if [ "$B" = build ] && { ! mkdir -p build 2>/dev/null || ! [ -w build ]; }; then
		B=${XDG_CACHE_HOME:-$HOME/.cache}/udapl/build
		echo "this folder cannot be written: building in $B"
	fi
	mkdir -p "$B"
}

# build TARGET [B=FOLDER|VARIABLE=VALUE...]: a second build of the same folder waits for the first.
build() {
	target=$1
	shift
	flock "$B/.lock" tools/progress -j "$(nproc)" "$target" "$@" B="$B"
}
