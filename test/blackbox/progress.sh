#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# tools/progress counts the steps, shows the current one and names failures; without a terminal it prints a few lines.
. test/blackbox/lib.sh

progress=$PWD/tools/progress
unset MAKEFLAGS MFLAGS MAKELEVEL
! command -v python3 >/dev/null 2>&1 && skip 'no python3 here to make a terminal with'

# In this tree: an empty build folder needs all of the library, and nothing else counts.
sources=$(ls dat/common/*.c | wc -l)
steps=$("$progress" --count "$tmp/b/lib/libdat2.so.2" B="$tmp/b" SAN=)
[ "$steps" -ge $((sources + 2)) ] && [ "$steps" -le $((sources + 5)) ] ||
	fail "$steps steps for the $sources sources of libdat2"

# A small tree with the same rules: twenty steps, and flags that may change.
mkdir "$tmp/tree"
cat >"$tmp/tree/Makefile" <<'END'
say = @printf '  %-7s %s\n' '$(1)' '$(2)'
all: $(patsubst %,o/%,$(shell seq 20)) o/said
values: o/flags
o/flags: FORCE
	@mkdir -p o; echo '$(FLAGS)' | cmp -s - $@ || echo '$(FLAGS)' > $@
o/said: o/1
	@echo 'a line of output'; touch $@
o/%: o/flags
	$(call say,CC,$@)
	@[ $* != '$(BAD)' ] || { echo "$*: error" >&2; exit 1; }
	@$(if $(PAUSE),sleep $(PAUSE);) touch $@
FORCE:
.PHONY: FORCE all values
END
cd "$tmp/tree" || exit 1

# run STATUS ARGUMENT...: its output goes to files, as in CI
run() {
	want=$1
	shift
	"$progress" "$@" >"$tmp/out" 2>"$tmp/err"
	got=$?
	[ $got -eq "$want" ] || fail "progress $* ended with status $got, not $want"
}

[ "$("$progress" --count all)" -eq 20 ] || fail 'not 20 steps at first'
run 0 all
grep -qx 'building: 20 steps' "$tmp/out" && grep -q '^built: 20 steps in [0-9]* s$' "$tmp/out" || fail 'not what was built'
[ "$(wc -l <"$tmp/out")" -eq 2 ] || fail 'a fast build has more than two lines'
grep -qx 'a line of output' "$tmp/err" || fail 'output of the build is lost'
run 0 all
[ ! -s "$tmp/out" ] && [ ! -s "$tmp/err" ] || fail 'something is said of nothing to do'
rm o/3 o/4
[ "$("$progress" --count all)" -eq 2 ] || fail 'not 2 steps after 2 were lost'
# A change of flags counts, even if an earlier build was interrupted.
[ "$("$progress" --count all FLAGS=new)" -eq 20 ] || fail 'not 20 steps with other flags'
[ "$("$progress" --count all FLAGS=new)" -eq 20 ] || fail 'not 20 steps with flags that changed before'
PROGRESS_SECONDS=0 run 0 all FLAGS=new
grep -qx 'building: 7 of 20' "$tmp/out" || fail 'not each step is counted'
PROGRESS_SECONDS=1 run 0 all FLAGS=slow PAUSE=0.2
lines=$(grep -c '^building: [0-9]* of 20$' "$tmp/out")
[ "$lines" -ge 1 ] && [ "$lines" -le 6 ] || fail "$lines lines of progress, which become rarer"

run 2 all FLAGS=bad BAD=5
grep -qx '5: error' "$tmp/err" || fail 'the error is lost'
grep -q '^building: failed after [0-9]* of 20 steps$' "$tmp/err" || fail 'not told that it failed'
grep -q '^built' "$tmp/out" && fail 'built although it failed'

# On a terminal one line is rewritten.
python3 -c 'import os; os.openpty()' 2>"$tmp/err" || { echo 'steps, flags, a failure; to a file; no terminals here'; exit 0; }
rm -r o
python3 - "$progress" all >"$tmp/out" <<'END' || fail 'no terminal'
import pty, sys
sys.exit(pty.spawn(sys.argv[1:]))
END
tr '\r' '\n' <"$tmp/out" | sed 's/^.\[K//' >"$tmp/lines"
grep -q '^building: 7 of 20  CC o/' "$tmp/lines" || fail 'no step on the terminal'
[ "$(tr -cd '\n' <"$tmp/out" | wc -c)" -le 3 ] || fail 'more than a line on the terminal'

echo 'steps, flags, a failure; to a file and to a terminal'
