# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Tests that take minutes: randomised kills, many wake-ups and cancellations, mutated peers. `make check-long` runs
# each suite of the list for LONG_SECONDS (60), on seeds that it prints; SEED=n repeats a run. `make check` runs the
# same suites for a second or two.

LONG_SECONDS ?= 60
long := test_edge_storm test_srq_kills test_softverbs_put test_cancel_storm
long_blackbox := test/blackbox/scm-mixing.sh test/blackbox/ucm-mixing.sh test/blackbox/fabric-fault.sh

.PHONY: check-long
check-long: tests
	$(Q)LONG_SECONDS=$(LONG_SECONDS) LIMIT=3600 $(test_env) JOBS=1 test/run $(addprefix $(B)/test/,$(long)) $(long_blackbox)
