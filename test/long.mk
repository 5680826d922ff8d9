# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# What needs minutes: randomised kills, storms of wake-ups and cancellations, mutated peers. `make check-long` runs each
# suite of the list for LONG_SECONDS (60), on seeds that it prints; SEED=n repeats a run. `make check` runs the same suites
# for a second or two.

LONG_SECONDS ?= 60
long := test_edge_storm

.PHONY: check-long
check-long: tests
	$(Q)LONG_SECONDS=$(LONG_SECONDS) LIMIT=3600 $(test_env) JOBS=1 test/run $(addprefix $(B)/test/,$(long))
