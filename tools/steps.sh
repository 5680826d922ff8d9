# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Sourced by the bash scripts that run many steps: each prints its name and its seconds, a failure does not end the run,
# and the end shows a table, and what failed once more, so that the reason is on the last screen. A step that fails is named
# at once, in each lane. Beside its seconds each step has those of the processors that it used: where the two numbers are
# equal, the second processor of a pair had nothing to do, and another step can run `beside` it.
#
# FROM names the step to begin with; those before it are not run, nor those of the other lane, unless FROM names one of
# them, too, as in FROM='thread|storms'.

. tools/unset.sh
. tools/times.sh
steps_folder=$(mktemp -d)
trap 'rm -rf "$steps_folder"' EXIT
steps_table=$steps_folder/table
: >"$steps_table"
# Where both lanes name a step that fails. The steps' commands do not have it: a process that is left over would keep it open.
exec 3>&1

# step NAME LIMIT COMMAND...: runs the command, for LIMIT seconds at most.
step() {
	local name=$1 limit=$2 begin=$SECONDS log pid status state used
	shift 2
	steps_is_before "$name" && return
	log=$steps_folder/$name.log
	printf '\n=== %s (%d s)\n' "$name" "$SECONDS"
	# The log is a file, not a pipe, which a process that is left over would keep open. It is there before it is
	# followed.
	: >"$log"
	steps_run "$log" timeout -k 30 "$limit" "$@" &
	pid=$!
	tail -n +1 -s 0.5 -f --pid=$pid "$log" &
	wait $pid $!
	read -r status used <"$log.end"
	state=passed
	case $status in
	0) ;;
	124 | 137) state=stopped ;;
	*) state=failed ;;
	esac
	printf '%-24s %-8s %6d %6d\n' "$name" "$state" $((SECONDS - begin)) "$used" | tee -a "$steps_table"
	[ "$status" = 0 ] || {
		printf 'FAIL  step %s: %s\n' "$name" "$state" >&3
		printf '\n--- %s: status %d after %d s of %d\n' "$name" "$status" $((SECONDS - begin)) "$limit"
		steps_reasons "$log"
	} >>"$steps_folder/reasons"
}

# beside FUNCTION: runs the steps of a function, the second lane, while this script goes on; what they print comes at the
# end, but for the name of a step that fails.
beside() {
	"$1" >"$steps_folder/beside.$1" 2>&1 &
}

# Returns 0 for a step before that of FROM in its lane. Each lane has a shell, and so a variable, of its own.
steps_is_before() {
	case ${steps_begun:-no}${FROM:+"|$FROM|"} in
	no | yes* | *"|$1|"*)
		steps_begun=yes
		return 1 ;;
	esac
	printf '%-24s %-8s %6s %6s\n' "$1" 'not run' - - >>"$steps_table"
}

# steps_run LOG COMMAND...: writes the command's status and the processor seconds of all its processes to LOG.end. It is
# run in a subshell, whose `times` are those of this command only. The command has a session of its own, since the kernel
# shares processors out to sessions first (sched(7), autogroup): each lane has as much as another program beside them, and
# not the half of it. What ends this shell ends that session, too.
steps_run() {
	local log=$1 status session
	shift
	setsid "$@" >"$log" 2>&1 3>&- </dev/null &
	session=$!
	trap "pkill -TERM -s $session; exit 143" TERM HUP
	wait $session
	status=$?
	times >"$log.times"
	echo "$status $(processor_seconds "$log.times")" >"$log.end"
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
	local said failed
	wait
	for said in "$steps_folder"/beside.*; do
		[ ! -e "$said" ] || cat "$said"
	done
	[ ! -s "$steps_folder/reasons" ] || cat "$steps_folder/reasons"
	failed=$(grep -cE ' (failed|stopped) ' "$steps_table")
	printf '\n%-24s %-8s %6s %6s\n' step state seconds CPU
	cat "$steps_table"
	printf '%d steps failed, %d s in all\n' "$failed" "$SECONDS"
	[ "$failed" = 0 ] && grep -q ' passed ' "$steps_table"
}
