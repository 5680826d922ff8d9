#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# {our, the packaged} libdat2 x {our, the packaged} libdaplofa x {our, the packaged} dtest, all over verbs and rdma_cm
# on the drop-in of the software device; then the two providers against each other.
. test/blackbox/lib-verbs.sh
needs dtest

packaged_library() {
	LD_LIBRARY_PATH= ldconfig -p | sed -n "s/.*$1 .* => //p" | head -n 1
}
libdat2=$(packaged_library 'libdat2\.so\.2') libdaplofa=$(packaged_library 'libdaplofa\.so\.2')
[ -n "$libdat2" ] && [ -n "$libdaplofa" ] || skip 'no packaged libdat2 and libdaplofa here (Debian: libdapl2)'

# A folder for each registry, a dat.conf for each provider, a name for each program.
mkdir "$tmp/ours" "$tmp/packaged"
ln -s "$BUILD/lib/libdat2.so.2" "$tmp/ours/libdat2.so.2"
ln -s "$(readlink -f "$libdat2")" "$tmp/packaged/libdat2.so.2"
ln -s "$BUILD/lib/libdaplofa.so.2" "$tmp/ours/libdaplofa.so.2"
ln -s "$(readlink -f "$libdaplofa")" "$tmp/packaged/libdaplofa.so.2"
for of in ours packaged; do
	echo "mixed u2.0 nonthreadsafe default $tmp/$of/libdaplofa.so.2 dapl.2.0 \"lo 0\" \"\"" >"$tmp/$of/dat.conf"
done
ln -s "$BUILD/bin/dtest" "$tmp/ours/dtest"
ln -s "$(command -v dtest)" "$tmp/packaged/dtest"

# wrapper NAME REGISTRY PROVIDER PROGRAM: $tmp/NAME runs that mixture with its output line-buffered.
wrapper() {
	cat >"$tmp/$1" <<-END
		#!/bin/sh
		export LD_LIBRARY_PATH='$tmp/$2' DAT_OVERRIDE='$tmp/$3/dat.conf' _STDBUF_O=L
		exec '$sv' env LD_PRELOAD='$san_preload:/usr/libexec/coreutils/libstdbuf.so' '$tmp/$4/dtest' "\$@"
	END
	chmod +x "$tmp/$1"
}

# mapped PID FILE: of the files with that name, the child of `timeout` has mapped just this one.
mapped() {
	child=$(cat "/proc/$1/task/$1/children")
	maps=$(awk '{ print $6 }' "/proc/${child% }/maps" | sort -u | grep "/$(basename "$2")\(\$\|\.\)")
	[ "$maps" = "$(readlink -f "$2")" ]
}

# libraries_of SERVER REGISTRY PROVIDER: the server runs on these and on the drop-in.
libraries_of() {
	start server "$tmp/$1" -P mixed -b 100
	within 20 listens 15828 || fail "$1 does not listen"
	for library in "$tmp/$2/libdat2.so.2" "$tmp/$3/libdaplofa.so.2" "$drop/libibverbs.so.1" "$drop/librdmacm.so.1"; do
		mapped "$started" "$library" || fail "$1 does not run on $(readlink -f "$library")"
	done
	kill "$started"
	wait "$started" 2>/dev/null
}

# cell SERVER CLIENT REGISTRY PROVIDER: runs all kinds of transfer, and waits on a CNO; $result is for the table.
broken=0 provider=mixed
cell() {
	result=passed
	(
		trap 'end $pids' EXIT
		libraries_of "$1" "$3" "$4"
		for options in '-b 65536' '-w -b 65536' '-D -a -b 4096 -B 20' '-c -W -b 64 -B 50'; do
			# shellcheck disable=SC2086
			dtest_pair "$tmp/$1" "$tmp/$2" $options
		done
	) || result=FAILED broken=$((broken + 1))
}

printf '%-10s %-10s %-10s %s\n' libdat2 libdaplofa dtest result
for of_registry in ours packaged; do
	for of_provider in ours packaged; do
		for of_program in ours packaged; do
			wrapper dtest $of_registry $of_provider $of_program
			cell dtest dtest $of_registry $of_provider
			printf '%-10s %-10s %-10s %s\n' $of_registry $of_provider $of_program "$result"
		done
	done
done
wrapper dtest-ours ours ours ours
wrapper dtest-packaged packaged packaged packaged
cell dtest-ours dtest-packaged ours ours
printf '%-32s %s\n' 'all ours serves all packaged' "$result"
cell dtest-packaged dtest-ours packaged packaged
printf '%-32s %s\n' 'all packaged serves all ours' "$result"

[ $broken -eq 0 ] || fail "$broken of 10 mixtures, see above"
echo 'eight cells, and the two stacks against each other in both directions'
