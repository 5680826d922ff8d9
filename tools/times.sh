# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Sourced by the scripts that say how much of the processors something used.

# processor_seconds FILE: the processor seconds of the processes that a shell waited for; FILE has what `times` printed, which
# a shell says only of itself, so not behind a pipe.
processor_seconds() {
	awk 'NR == 2 { split($1 "m" $2, t, /[ms]+/); printf "%d\n", (t[1] + t[3]) * 60 + t[2] + t[4] }' "$1"
}
