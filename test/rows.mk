# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Which test programs run where: all suites and rows, and the parts of them for configurations that can find less. The
# table in CONTRIBUTING.md says what runs where.

# A suite is a program: those of the registry contain its objects and a provider of their own, the others the objects
# of the stack, linked as needed.
unit_all  := $(patsubst test/unit/%.c,%,$(wildcard test/unit/test_*.c))
unit_dat  := $(filter test_conf% test_registry% test_ia_handle% test_strerror% test_dispatch% test_loader%,$(unit_all))
unit_soft := $(filter test_softverbs%,$(unit_all))
unit_scm  := $(filter test_scm%,$(unit_all))
unit_ucm  := $(filter test_ucm%,$(unit_all))
unit_lock := test_lock_check test_lock_bias
unit_dapl := $(filter-out $(unit_dat) $(unit_soft) $(unit_scm) $(unit_ucm) $(unit_lock),$(unit_all))
conform   := $(patsubst test/conform/%.c,%,$(wildcard test/conform/conform_*.c))
# Suites of DAT 2.0, compiled once more with the headers of DAT 1.2 and for libdat.so.1: test/one is used in the place
# of dat2.
one_again := $(addprefix test_,cno_traffic connect consumer_cm consumer_data consumer_life consumer_registry cr data disconnect \
	dup_connect psp psp_provider reset rmr_bind rsp srq_rules srq_rules_attr srq_traffic)
one_own   := $(patsubst test/one/%.c,%,$(wildcard test/one/test_*.c))
one_programs := $(addprefix $(B)/test/one/,dtest dapltest srq_dat12)
one_suites := $(addprefix $(B)/test/one/,$(one_again) $(one_own))
fuzz      := $(patsubst test/fuzz/%.c,%,$(wildcard test/fuzz/fuzz_*.c))
fuzz_scm  := $(filter fuzz_scm%,$(fuzz))
fuzz_ucm  := $(filter fuzz_ucm%,$(fuzz))
fuzz_soft := $(filter-out $(fuzz_scm) $(fuzz_ucm),$(fuzz))
suites    := $(addprefix $(B)/test/,$(unit_all) $(conform) $(fuzz)) $(one_suites)

# --- rows: tests of whole programs ------------------------------------------------------------------

# The tests of the drop-in again, in each way to copy, as an ordinary user or inside `unshare -Urn`; under a sanitizer
# and with the second compiler, only in the way that is entirely this device's own code. The rows of perftest take long,
# so check has each of them in some of the ways; with LONG=1, and in check-verbs, they are in all.
verbs_rows := $(patsubst %,test/blackbox/verbs-%.sh,utils pyverbs rdmacm rdmacm-many killed killed-busy strace perftest \
	perftest-sizes perftest-vendor ofed others)
verbs_ways := $(if $(SAN)$(findstring clang,$(CC)),,pvm-user memfd-unshare) bounce-user
verbs_some := test/blackbox/verbs-perftest-sizes.sh@bounce-user
verbs_each := $(if $(LONG),$(verbs_rows),$(filter-out %-perftest.sh %-sizes.sh %-vendor.sh,$(verbs_rows)))
# Rows that take long, with LONG=1 only: a build with musl; RC over libfabric, whose providers carry UD in any case, but for the
# suites over one of them; packaged programs on two hosts; a cluster of a monitor and two stores.
rows_long := $(addprefix test/,install/musl.sh blackbox/fabric-conform-net.sh blackbox/fabric-data-tcp.sh blackbox/fabric-data-net.sh blackbox/fabric-programs.sh \
	blackbox/fabric-scale.sh blackbox/verbs-ceph.sh)
blackbox  := $(filter-out test/blackbox/lib% %-sizes.sh $(if $(LONG),,$(rows_long)),$(sort $(wildcard test/blackbox/*.sh test/install/*.sh))) \
	$(foreach way,$(verbs_ways),$(addsuffix @$(way),$(verbs_each))) $(if $(LONG),,$(filter $(addprefix %@,$(verbs_ways)),$(verbs_some)))

# --- parts ----------------------------------------------------------------------------------------

# SHORT=1, for a machine that is only shown to be set up: no suite that races for seconds, and one row of each kind.
races := $(addprefix $(B)/test/,test_hammer_% test_%_storm test_%_streams test_ev_race test_srq_kills test_softverbs_put \
	test_softverbs_death conform_long conform_atomic fuzz_%)
suites_short := $(filter-out $(races),$(suites))
rows_short := $(addsuffix .sh,$(addprefix test/blackbox/,bad-input datinfo dtest-ours dtestcm dtestsrq dtestx-ud \
	dapltest-local event-mixing examples fabric-data one-programs packaged-registry tools verbs-symbols)) \
	test/install/install.sh

# The address sanitizer: every suite, and rows in which input is bad or a process is killed.
hostile := $(suites) $(addsuffix .sh,$(addprefix test/blackbox/,bad-input dtest-killed fabric-fault verbs-fault)) \
	$(addsuffix @bounce-user,$(addprefix test/blackbox/verbs-,killed.sh killed-busy.sh))

# The thread sanitizer: the suites in which threads or processes meet. The others parse, convert or check arguments, in
# one thread, or are the same calls once more for DAT 1.2. And the row in which they meet over a link between hosts.
single := test_%_args test_conf% test_consumer_registry test_dispatch test_ep_cells test_ep_state test_ext_absent test_ext_kernel \
	test_ia_handle test_ia_measured test_kernel test_loader test_memlock test_names test_nth_% test_open_query test_registry_ext \
	test_registry_memory test_registry_missing test_scm_message test_settings% test_softverbs_settings test_softverbs_sysfs \
	test_strerror test_text_file
threads := $(addprefix $(B)/test/,$(filter-out $(single),$(unit_all)) $(conform)) $(B)/test/one/test_data \
	test/blackbox/fabric-conform.sh
