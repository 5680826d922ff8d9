# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Sourced by ./demo and ./check: builds a target, one build at a time, also of a tree that cannot be written.

# arguments PROGRAM WHAT [ARGUMENT...]: ends the script unless all are variables of make.
arguments() {
	program=$1 what=$2
	shift 2
	for word; do
		case $word in
		-h | --help)
			printf '%s\n' "usage: $program [VARIABLE=VALUE...]" "$what" \
				'B=FOLDER builds there, CC=clang with another compiler; CONTRIBUTING.md has more, and the targets of make.'
			exit 0
			;;
		*=*) ;;
		*)
			echo "$program: $word is no VARIABLE=VALUE; targets are for make" >&2
			exit 2
			;;
		esac
	done
}

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
