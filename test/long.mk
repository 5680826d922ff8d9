# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# What takes too long for each change. `make check-storms` runs tests that are random or race for LONG_SECONDS (60)
# each, on seeds that it prints; SEED=n repeats a run, and `make check` runs the same suites for some seconds. `make
# check-long` runs every test in every configuration, and ends with a table; FROM='name of a step' begins there, see
# tools/steps.sh.

LONG_SECONDS ?= 60
storms := test_edge_storm test_srq_kills test_softverbs_put test_cancel_storm test_hammer_post test_ev_race test_ev_streams \
	test_softverbs_private test_softverbs_direct_limits
storms_blackbox := test/blackbox/scm-mixing.sh test/blackbox/ucm-mixing.sh test/blackbox/fabric-fault.sh

.PHONY: check-storms check-long
check-storms: tests
	$(Q)LONG_SECONDS=$(LONG_SECONDS) LIMIT=3600 $(test_env) JOBS=1 test/run $(addprefix $(B)/test/,$(storms)) $(storms_blackbox)
check-long:
	$(Q)B='$(B)' FROM='$(FROM)' test/long

# What RDMA does is the same whichever memory peers map (SOFTVERBS_DIRECT), and however early (DIRECT_USES). Suites that set
# the former themselves, for one side, are left out.
direct_suites := $(addprefix $(B)/test/,$(conform) $(filter-out test_softverbs_direct% test_softverbs_private% \
	test_softverbs_settings,$(filter test_softverbs_% test_hammer_%,$(unit_all))))
direct_rows := $(addsuffix .sh,$(addprefix test/blackbox/verbs-,conform killed killed-busy perftest pyverbs ofed)) \
	test/blackbox/dapltest-transaction.sh
.PHONY: check-direct
check-direct: tests
	$(Q)for wish in off private; do \
		echo "SOFTVERBS_DIRECT=$$wish"; \
		SOFTVERBS_DIRECT=$$wish $(test_env) test/run $(direct_suites) $(direct_rows) || exit; done

# Two hosts, whole: each provider of libfabric that runs here, programs of other makers, 500 kills.
fabric_suites := $(addprefix $(B)/test/,$(filter test_softverbs_fabric%,$(unit_all)) fuzz_fabric)
.PHONY: check-fabric
check-fabric: tests
	$(Q)LONG_SECONDS=$(LONG_SECONDS) LIMIT=3600 $(test_env) JOBS=1 test/run $(fabric_suites) $(sort $(wildcard test/blackbox/fabric-*.sh))
