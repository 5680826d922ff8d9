# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# The tests and how to run them: suites, rules of the tree, coverage.

include test/rows.mk

unit_util := $(call objs,$(filter-out test/unit/test_%.c test/unit/fake_provider%.c,$(wildcard test/unit/*.c)))
conf_util := $(call objs,$(filter-out test/conform/conform_%.c,$(wildcard test/conform/*.c))) $(call objs,test/unit/unit.c)

.PHONY: check check-unit check-hostile check-threads check-style check-lto check-layers check-locks check-exports check-headers check-man check-rules check-blackbox check-verbs \
        check-fresh check-table fuzz run-fuzz tests

tests: all $(bench) $(exact) $(examples) $(suites) $(addprefix $(B)/test/rdma/,$(conform)) $(B)/test/fake_provider.so \
       $(B)/test/verbs-fault.so $(B)/test/verbs-vendor.so $(B)/test/readme-ping $(B)/test/event-ops \
       $(B)/test/early-send $(B)/test/mix $(B)/test/uc-lost $(B)/test/all-to-all $(B)/test/wire $(B)/test/old_provider.so $(one_programs) \
       $(addprefix $(B)/test/one/,host1 host2 plugin1.so plugin2.so)

one_objs  = $(patsubst %.c,$(B)/one/%.o,$(1))
suites_c := $(wildcard $(addprefix test/,unit/*.c conform/*.c fuzz/*.c one/*.c))
$(call objs,$(suites_c)) $(call one_objs,$(suites_c)): private late := $(in_suites)

# The stack as archives, from which a suite links what it needs.
$(B)/lib/libsoftverbs.a: $(soft_o)
	@mkdir -p $(@D)
	$(call say,AR,$@)
	$(Q)rm -f $@; $(AR) rcs $@ $^

$(B)/lib/libdapl.a: $(dapl_o) $(rdmacm_o) $(util_o)
	@mkdir -p $(@D)
	$(Q)rm -f $@; $(AR) rcs $@ $^

# The device without its connection manager, for tests of other ones.
$(B)/lib/libsoftverbs-verbs.a: $(soft_verbs_o)
	@mkdir -p $(@D)
	$(Q)rm -f $@; $(AR) rcs $@ $^

$(addprefix $(B)/test/,$(unit_dat)): $(B)/test/%: $(B)/obj/test/unit/%.o $(B)/obj/test/unit/unit.o $(dat_o)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(call rpath,../lib) $(wraps) -rdynamic -o $@ $^ -lcunit -ldl

# A suite that defines __wrap_f replaces f.
wraps = $$(nm --defined-only $< | sed -n 's/.* T __wrap_/-Wl,--wrap=/p')

$(addprefix $(B)/test/,$(unit_dapl)): $(B)/test/%: $(B)/obj/test/unit/%.o $(unit_util) $(B)/lib/libdapl.a \
		$(B)/lib/libsoftverbs.a $(libs)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(call rpath,../lib) $(wraps) -o $@ $(filter %.o,$^) -Wl,--start-group $(B)/lib/libdapl.a $(B)/lib/libsoftverbs.a -Wl,--end-group -L$(B)/lib -ldat2 $(config) -lcunit

$(addprefix $(B)/test/,$(unit_soft)): $(B)/test/%: $(B)/obj/test/unit/%.o $(B)/obj/test/unit/unit.o \
		$(B)/lib/libsoftverbs.a $(soft_util_o) | $(plugin)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ldflags) $(LDFLAGS) $(wraps) -o $@ $^ -lcunit -ldl

# What the drop-in alone has.
$(B)/test/test_softverbs_sysfs: $(filter %/attribute.o %/sysfs.o,$(drop_o))

# The checks of locks, in every variant, though only some have them in the libraries.
$(call objs,util/lock_check.c test/unit/test_lock_check.c): private cppflags += -DLOCK_CHECK
$(addprefix $(B)/test/,$(unit_lock)): $(B)/test/%: $(B)/obj/test/unit/%.o $(B)/obj/test/unit/unit.o \
		$(B)/obj/util/lock_check.o $(B)/obj/util/lock_bias.o
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ldflags) $(LDFLAGS) $(wraps) -o $@ $^ -lcunit -ldl

# The connection managers alone, over the software device's verbs.
scm_suite_o = $(B)/obj/test/unit/unit.o $(scm_cm_o) $(util_o) $(B)/lib/libsoftverbs-verbs.a
$(addprefix $(B)/test/,$(unit_scm)): $(B)/test/%: $(B)/obj/test/unit/%.o $(scm_suite_o)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ldflags) $(LDFLAGS) $(wraps) -o $@ $^ $(config) -lcunit -ldl
ucm_suite_o = $(B)/obj/test/unit/unit.o $(ucm_cm_o) $(util_o) $(B)/lib/libsoftverbs-verbs.a
$(addprefix $(B)/test/,$(unit_ucm)): $(B)/test/%: $(B)/obj/test/unit/%.o $(ucm_suite_o)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ldflags) $(LDFLAGS) $(wraps) -o $@ $^ $(config) -lcunit -ldl
$(addprefix $(B)/test/,$(fuzz_scm)): $(B)/test/%: $(B)/obj/test/fuzz/%.o $(scm_suite_o)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ldflags) $(LDFLAGS) -o $@ $^ $(config) -lcunit -ldl
$(addprefix $(B)/test/,$(fuzz_ucm)): $(B)/test/%: $(B)/obj/test/fuzz/%.o $(ucm_suite_o)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ldflags) $(LDFLAGS) -o $@ $^ $(config) -lcunit -ldl

$(addprefix $(B)/test/,$(fuzz_soft)): $(B)/test/%: $(B)/obj/test/fuzz/%.o $(B)/obj/test/unit/unit.o \
		$(B)/lib/libsoftverbs.a $(soft_util_o) | $(plugin)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ldflags) $(LDFLAGS) -o $@ $^ -lcunit -ldl

$(addprefix $(B)/test/,$(conform)): $(B)/test/%: $(B)/obj/test/conform/%.o $(conf_util) $(B)/lib/libsoftverbs.a $(soft_util_o)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ldflags) $(LDFLAGS) -o $@ $^ -lcunit -ldl

$(addprefix $(B)/test/rdma/,$(conform)): $(B)/test/rdma/%: $(B)/obj/test/conform/%.o $(conf_util)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ldflags) $(LDFLAGS) -o $@ $^ $(verbs) -lcunit -ldl

# --- DAT 1.2 ---------------------------------------------------------------------------------------

# A program for DAT 1.2 is linked with its own library alone; the other one is given for the path to it.
one_libs = -L$(B)/lib -ldat -Wl,--no-as-needed -ldat2 -Wl,--as-needed

$(B)/one/%.o: %.c $(B)/flags $(B)/gen/verbs_have.h
	@mkdir -p $(@D)
	$(call say,CC,DAT 1.2: $<)
	$(Q)$(CC) -Itest/one $(cppflags) $(CPPFLAGS) $(cflags) $(CFLAGS) $(late) -MMD -MP -c -o $@ $<

$(addprefix $(B)/test/one/,$(one_own)): $(B)/test/one/%: $(B)/one/test/one/%.o
$(addprefix $(B)/test/one/,$(one_again)): $(B)/test/one/%: $(B)/one/test/unit/%.o
$(one_suites): $(call one_objs,$(addprefix test/unit/,unit.c ep_util.c dat_fixture.c)) \
		$(util_o) $(libs) $(libdat)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(call rpath,../../lib) -rdynamic -o $@ $(filter %.o,$^) $(one_libs) $(config) -lcunit

# Programs as they were linked with DAT 1.2: they do not name libdat2.
$(B)/test/one/dtest: $(patsubst $(B)/obj/%,$(B)/one/%,$(dtest_o))
$(B)/test/one/dapltest: $(patsubst $(B)/obj/%,$(B)/one/%,$(dapltest_o))
$(B)/test/one/srq_dat12: $(call objs,docs/examples/srq_dat12.c)
$(one_programs): $(libdat)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ldflags) $(LDFLAGS) -o $@ $(filter %.o,$^) -L$(B)/lib -ldat -Wl,-rpath-link,$(B)/lib

# A program and a plugin for each version, of the same sources.
one_both := $(addprefix $(B)/test/one/,host1 host2 plugin1.so plugin2.so)
$(B)/test/one/host1: $(call one_objs,test/one/host.c test/one/exercise.c)
$(B)/test/one/host2: $(call objs,test/one/host.c test/one/exercise.c)
$(B)/test/one/plugin1.so: $(call one_objs,test/one/exercise.c)
$(B)/test/one/plugin2.so: $(call objs,test/one/exercise.c)
$(B)/test/one/plugin1.so $(B)/test/one/plugin2.so: private shared = -shared
$(B)/test/one/host1 $(B)/test/one/plugin1.so: private own = -ldat -Wl,-rpath-link,$(B)/lib
$(B)/test/one/host2 $(B)/test/one/plugin2.so: private own = -ldat2
$(one_both): $(libdat) $(libs)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(shared) $(ldflags) $(LDFLAGS) -o $@ $(filter %.o,$^) -L$(B)/lib $(own) -ldl

# A provider of DAT 1.2: it finds the registry by name only.
$(B)/test/old_provider.so: $(B)/one/test/one/old_provider.o
	@mkdir -p $(@D)
	$(Q)$(CC) -shared $(if $(SAN),-fsanitize=$(SAN) $(shared_asan)) -o $@ $^

$(B)/test/fake_provider.so: $(B)/obj/test/unit/fake_provider.o
	@mkdir -p $(@D)
	$(Q)$(CC) -shared $(if $(SAN),-fsanitize=$(SAN) $(shared_asan)) -o $@ $^

# Preloaded before programs on the drop-in by blackbox/verbs-fault.sh and verbs-perftest-vendor.sh.
$(B)/test/verbs-fault.so $(B)/test/verbs-vendor.so: $(B)/test/verbs-%.so: $(B)/obj/test/fault/verbs_%.o
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -shared $(if $(SAN),-fsanitize=$(SAN) $(shared_asan)) -o $@ $^ -ldl

# For blackbox/event-mixing.sh, which runs it on all mixtures of registry and provider.
$(B)/test/event-ops: $(B)/obj/test/blackbox/event_ops.o $(B)/lib/libdat2.so.2
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(call rpath,../lib) -o $@ $< -L$(B)/lib -ldat2

# Programs on the drop-in, for blackbox/examples.sh, fabric-mix.sh and fabric-data.sh.
$(B)/test/early-send: $(B)/obj/test/blackbox/early_send.o
$(B)/test/mix: $(B)/obj/test/blackbox/mix.o
$(B)/test/uc-lost: $(B)/obj/test/blackbox/uc_lost.o
$(B)/test/all-to-all: $(B)/obj/test/blackbox/all_to_all.o
$(B)/test/early-send $(B)/test/mix $(B)/test/uc-lost $(B)/test/all-to-all: $(drop)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(call rpath,../lib/softverbs) -o $@ $(filter %.o,$^) $(drop)

# The ping program of the README, compiled as printed there.
$(B)/test/readme-ping: README.md $(B)/lib/libdat2.so.2
	@mkdir -p $(@D)
	$(call say,README,ping.c)
	$(Q)awk '/^```c$$/ {on = 1; next} /^```$$/ {on = 0} on' README.md > $(B)/test/readme-ping.c
	$(Q)$(CC) $(cppflags) $(cflags) $(CFLAGS) $(call rpath,../lib) -o $@ $(B)/test/readme-ping.c -L$(B)/lib -ldat2

# The number of test programs that run at a time: most of them wait for most of their time.
JOBS ?= $(shell n=$$(nproc); [ $$n -lt 4 ] && echo $$n || echo 4)
test_env = JOBS='$(JOBS)' DAT_OVERRIDE="$(build)/dat.conf" BUILD="$(build)" FAKE_PROVIDER="$(build)/test/fake_provider.so" OLD_PROVIDER="$(build)/test/old_provider.so" \
           DAPL_SOFT_LIB="$(build)/lib/libdaplsoft.so.2" SAN='$(SAN)' CC='$(CC)' MAKE_AGAIN='$(subst ','\'',$(MAKEOVERRIDES))' \
           FUZZ_SECONDS=$${FUZZ_SECONDS:-$(if $(findstring address,$(SAN)),$(if $(LONG),20,8),3)}

check-unit: tests
	$(Q)$(test_env) test/run $(suites)
# For the sanitizers, what they can find something in: test/rows.mk.
check-hostile: all $(B)/test/fake_provider.so $(B)/test/old_provider.so $(B)/test/verbs-fault.so $(suites)
	$(Q)$(test_env) test/run $(hostile)
check-threads: all $(B)/test/fake_provider.so $(B)/test/old_provider.so $(threads) $(addprefix $(B)/test/rdma/,$(conform))
	$(Q)$(test_env) test/run $(threads)
check-blackbox: tests
	$(Q)$(test_env) test/run $(blackbox)
# The walls between rooms are counted in the objects of one compiler: others leave out different dead code.
check-layers: $(if $(SAN)$(COV)$(findstring clang,$(CC)),,all)
	$(Q)test/check-layers
	$(Q)$(if $(SAN)$(COV)$(findstring clang,$(CC)),:,test/walls $(B) test/rooms)
check-locks:
	$(Q)test/check-locks
check-exports: all
	$(Q)test/check-exports $(B)/lib
check-headers:
	$(Q)CC='$(CC)' test/headers/check-headers dat/include
	$(Q)for f in test/headers/*.c; do $(CC) $(cppflags) $(cflags) -Werror -fsyntax-only $$f || exit; done
check-man:
	$(Q)test/check-man
check-rules:
	$(Q)test/check-rules
check-style: all
	$(Q)test/check-style $(B)
check-table:
	$(Q)test/table $(B)
# Each fuzz program under the address sanitizer for FUZZ_SECONDS, ten minutes by default; from FUZZ_SEED on.
fuzz:
	$(Q)$(MAKE) SAN=address,undefined run-fuzz
run-fuzz: $(addprefix $(B)/test/,$(fuzz))
	$(Q)FUZZ_SECONDS=$${FUZZ_SECONDS:-600} && export FUZZ_SECONDS && \
		LIMIT=$$((FUZZ_SECONDS + 600)) $(test_env) test/run $^
# With link-time optimization, which distributions use, in a build folder of its own: the suites that link in the most
# ways.
lto_suites := test_data test_evd test_evd_wait test_srq_traffic test_hammer_ep test_softverbs_copy test_scm_active conform_send conform_rdma \
	conform_cm conform_thread
check-lto:
	$(Q)$(MAKE) B='$(B)/lto' CFLAGS='-O2 -g -flto=auto' AR=gcc-ar check-lto-suites
check-lto-suites: all $(addprefix $(B)/test/,$(lto_suites))
	$(Q)$(test_env) test/run $(addprefix $(B)/test/,$(lto_suites)) test/blackbox/verbs-symbols.sh
check-fresh:
	$(Q)SHORT='$(SHORT)' RELEASE='$(RELEASE)' test/fresh/run
# All rows in all ways for all users; with FULL=1 each in as many rounds as a measurement needs.
check-verbs: tests
	$(Q)$(test_env) JOBS=1 LIMIT=1200 test/run test/blackbox/verbs-symbols.sh test/blackbox/verbs-perftest-speed.sh \
		$(foreach role,user unshare,$(foreach way,pvm memfd bounce,$(addsuffix @$(way)-$(role),$(verbs_rows))))
# The goals of the counts are for gcc's code. They come first because they take long and do not depend on the load.
# SHORT=1 runs the suites that do not race for seconds, and one row of each kind.
check: tests check-layers check-locks check-headers check-man check-rules check-style $(if $(SAN),,check-exports)
	$(Q)$(test_env) test/run $(if $(SHORT)$(findstring clang,$(CC)),,$(firstword $(exact))) $(if $(SHORT),$(suites_short),$(suites)) $(if $(SHORT),$(rows_short),$(blackbox))
	$(Q)$(if $(SHORT),:,test/table -s $(B))

# The lines and branches of the registry and the provider that the tests reach; fails below 85 % of the branches. The
# device's own tests reach neither.
.PHONY: coverage reach
coverage:
	$(Q)$(MAKE) COV=1 CFLAGS='-O0 -g' reach
	$(Q)test/coverage build/coverage dat dapl
reach: tests
	$(Q)find $(B)/obj -name '*.gcda' -delete
	$(Q)$(test_env) test/run $(addprefix $(B)/test/,$(filter-out $(unit_soft),$(unit_all))) \
		$(filter-out test/blackbox/verbs-% test/blackbox/bench.sh,$(blackbox))

# For another machine, emulated: the cross compiler, qemu-user, and that machine's libraries.
.PHONY: check-arm64 check-arm64-guest
check-arm64:
	$(Q)B='$(B)' test/arm64/run
check-arm64-guest:
	$(Q)B='$(B)' SUITES='$(SUITES)' test/arm64/guest
