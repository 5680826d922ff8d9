# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Sourced by the bash scripts that run many steps: each prints its name and its seconds, a failure does not end the run,
# and the end shows a table, and what failed once more, so that the reason is on the last screen. FROM names the step to
# begin with; those before it are not run. Beside its seconds each step has those of the processors that it used: a step
# whose two numbers are equal leaves the second processor of a pair idle.

steps_folder=$(mktemp -d)
trap 'rm -rf "$steps_folder"' EXIT
steps_table=$steps_folder/table
steps_failed=0
: >"$steps_table"

# Sets used to the processor seconds of all processes that this shell has waited for, and of theirs. A subshell would
# have waited for none.
steps_used() {
	times >"$steps_folder/times"
	used=$(awk 'NR == 2 { for (i = 1; i <= 2; i++) { split($i, t, /[ms]/); n += t[1] * 60 + t[2] } printf "%d", n }' "$steps_folder/times")
}

# step NAME LIMIT COMMAND...: runs the command, for LIMIT seconds at most.
step() {
	local name=$1 limit=$2 begin=$SECONDS used before log pid state status
	shift 2
	if [ -n "${FROM:-}" ] && [ "$FROM" != "$name" ]; then
		printf '%-24s %-8s %6s %6s\n' "$name" 'not run' - - >>"$steps_table"
		return
	fi
	FROM=
	log=$steps_folder/log.$(wc -l <"$steps_table")
	printf '\n=== %s (%d s)\n' "$name" "$SECONDS"
	# The log is a file, not a pipe, which a process that is left over would keep open. It is there before it is
	# followed.
	: >"$log"
	steps_used
	before=$used
	timeout -k 30 "$limit" "$@" >"$log" 2>&1 </dev/null &
	pid=$!
	tail -n +1 -s 0.5 -f --pid=$pid "$log" &
	wait $pid
	status=$?
	wait
	state=passed
	case $status in
	0) ;;
	124 | 137) state=stopped ;;
	*) state=failed ;;
	esac
	[ $status = 0 ] || steps_failed=$((steps_failed + 1))
	steps_used
	printf '%-24s %-8s %6d %6d\n' "$name" "$state" $((SECONDS - begin)) $((used - before)) | tee -a "$steps_table"
	[ $status = 0 ] || {
		printf '\n--- %s: status %d after %d s of %d\n' "$name" $status $((SECONDS - begin)) "$limit"
		steps_reasons "$log"
	} >>"$steps_folder/reasons"
}

# What test/run printed of each program that failed; the last lines if no program did.
steps_reasons() {
	if grep -qa '^FAIL ' "$1"; then
		awk '/^FAIL / { on = 1; n = 0 } !/^FAIL |^ / { on = 0 } on && ++n <= 40' "$1"
	else
		tail -n 30 "$1"
	fi
}

# Returns 0 if all steps that ran passed, and at least one did run.
steps_end() {
	[ ! -s "$steps_folder/reasons" ] || cat "$steps_folder/reasons"
	printf '\n%-24s %-8s %6s %6s\n' step state seconds CPU
	cat "$steps_table"
	printf '%d steps failed, %d s in all\n' "$steps_failed" "$SECONDS"
	[ "$steps_failed" = 0 ] && grep -q ' passed ' "$steps_table"
}
