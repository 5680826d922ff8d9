#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Each program has --help, and its manual page has the same options; a test program whose adapter does not open prints
# what to try.
. test/blackbox/lib.sh

for path in "$BUILD"/bin/*; do
	program=${path##*/}
	page=man1/$program.1
	[ -e "$page" ] || fail "$program has no manual page"
	"$path" --help >"$tmp/help" 2>"$tmp/err" || fail "$program --help ended with status $?"
	[ ! -s "$tmp/err" ] || fail "$program --help writes to standard error"
	head -n 1 "$tmp/help" | grep -q "^usage: $program" || fail "$program --help does not begin with its usage"
	"$path" --no-such-option >"$tmp/out" 2>"$tmp/err" && fail "$program takes --no-such-option"
	grep -q . "$tmp/err" || fail "$program does not tell what is wrong with --no-such-option"

	# The words of the options: a line of the help or a paragraph of the page begins with them.
	sed -n 's/^  \(-[^ ].*\)/\1/p' "$tmp/help" | sed 's/   *.*//' | grep -o -- '-[-a-zA-Z]*' | grep -v '^-*$' |
		sort -u >"$tmp/shown"
	sed 's/\\-/-/g; s/\\f[A-Z]//g' "$page" | grep -A 1 '^\.TP' | grep '^\.[BI]' | grep -o -- '--*[a-zA-Z][-a-zA-Z]*' |
		sort -u >"$tmp/described"
	for option in $(cat "$tmp/shown"); do
		grep -qxF -e "$option" "$tmp/described" || fail "$page does not describe $option of $program"
	done
	for option in $(cat "$tmp/described"); do
		grep -qF -e "$option" "$tmp/help" || fail "$program --help does not show $option of $page"
	done
done

# A machine that has no RDMA device for certain.
cat >"$tmp/dat.conf" <<END
ofa-v2-ib0  u2.0 nonthreadsafe default $BUILD/lib/libdaplsoft.so.2 dapl.2.0 "no.such.name.invalid 0" ""
ofa-v2-soft u2.0 nonthreadsafe default $BUILD/lib/libdaplsoft.so.2 dapl.2.0 "soft0 1" ""
END
export DAT_OVERRIDE="$tmp/dat.conf"
for program in dtest dtestcm dtestsrq dtestx dapltest; do
	case $program in dapltest) option=-D ;; *) option=-P ;; esac
	timeout 60 "$BUILD/bin/$program" >"$tmp/out" 2>&1 && fail "$program opens an adapter that is not there"
	grep -q 'datinfo shows why ofa-v2-ib0 does not open' "$tmp/out" || fail "$program does not name datinfo"
	grep -q -e "$option ofa-v2-soft, the software device" "$tmp/out" || fail "$program does not name the software device"
done
# A client without a server says at once that it is trying, and until when.
timeout 60 "$BUILD/bin/dtest" -P ofa-v2-soft -h 127.0.0.1 --channel 1 >"$tmp/out" 2>&1 && fail 'dtest succeeds without a server'
grep -q 'No server answers at 127.0.0.1 port 1 yet: trying until [0-9][0-9]:' "$tmp/out" || fail 'dtest does not say that it is trying'

# softverbs-run, ./demo and ./check know what they were not asked for.
LC_ALL=C "$BUILD/bin/softverbs-run" nosuch >"$tmp/out" 2>&1
[ $? -eq 127 ] && [ "$(cat "$tmp/out")" = 'softverbs-run: there is no program nosuch' ] || fail 'softverbs-run nosuch'
for script in ./demo ./check; do
	[ "$($script --help | wc -l)" -eq 3 ] || fail "$script --help has not three lines"
	$script nosuch >"$tmp/out" 2>&1 && fail "$script takes a target"
	[ "$(wc -l <"$tmp/out")" -eq 1 ] || fail "$script nosuch says more than a line"
done

# A missing program is not suggested.
sed -i 2d "$tmp/dat.conf"
timeout 60 "$BUILD/bin/dtest" >"$tmp/out" 2>&1 && fail 'dtest opens an adapter that is not there'
grep -q 'ofa-v2-soft' "$tmp/out" && fail 'dtest names a software device that dat.conf does not have'

echo "$(ls "$BUILD/bin" | wc -l) programs with their options; hints"
