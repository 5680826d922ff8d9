# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# What is tested and how: suites, rules of the tree, coverage.

# Suites. A program each: those of the registry carry its objects and a provider of their own, the others the
# objects of the stack, linked as needed.
unit_all  := $(patsubst test/unit/%.c,%,$(wildcard test/unit/test_*.c))
unit_dat  := $(filter test_conf% test_registry% test_ia_handle% test_strerror% test_dispatch% test_loader%,$(unit_all))
unit_soft := $(filter test_softverbs%,$(unit_all))
unit_dapl := $(filter-out $(unit_dat) $(unit_soft),$(unit_all))
conform   := $(patsubst test/conform/%.c,%,$(wildcard test/conform/conform_*.c))
blackbox  := $(filter-out test/blackbox/lib%,$(sort $(wildcard test/blackbox/*.sh test/install/*.sh)))
# The tests of the drop-in again, in each way to copy, as an ordinary user or inside `unshare -Urn`; under a sanitizer and
# with the second compiler, in the way that is all this device's own code.
verbs_rows := $(patsubst %,test/blackbox/verbs-%.sh,utils pyverbs rdmacm rdmacm-many killed killed-busy strace perftest \
	perftest-sizes perftest-vendor ofed others)
verbs_ways := $(if $(SAN)$(findstring clang,$(CC)),,pvm-user memfd-unshare) bounce-user
blackbox  := $(filter-out %-sizes.sh,$(blackbox)) $(foreach way,$(verbs_ways),$(addsuffix @$(way),$(verbs_rows)))
fuzz      := $(patsubst test/fuzz/%.c,%,$(wildcard test/fuzz/fuzz_*.c))
suites    := $(addprefix $(B)/test/,$(unit_all) $(conform) $(fuzz))
unit_util := $(call objs,$(filter-out test/unit/test_%.c test/unit/fake_provider%.c,$(wildcard test/unit/*.c)))
conf_util := $(call objs,$(filter-out test/conform/conform_%.c,$(wildcard test/conform/*.c))) $(call objs,test/unit/unit.c)

.PHONY: check check-unit check-layers check-exports check-headers check-man check-rules check-blackbox check-verbs \
        check-fresh check-table fuzz run-fuzz tests

tests: all $(bench) $(exact) $(examples) $(suites) $(addprefix $(B)/test/rdma/,$(conform)) $(B)/test/fake_provider.so \
       $(B)/test/verbs-fault.so $(B)/test/readme-ping $(B)/test/event-ops $(B)/test/early-send $(B)/test/wire

$(addprefix $(B)/test/,$(unit_dat)): $(B)/test/%: $(B)/obj/test/unit/%.o $(B)/obj/test/unit/unit.o $(dat_o)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(call rpath,../lib) $(wraps) -rdynamic -o $@ $^ -lcunit -ldl

# A suite that defines __wrap_f has it called in the place of f.
wraps = $$(nm --defined-only $< | sed -n 's/.* T __wrap_/-Wl,--wrap=/p')

$(addprefix $(B)/test/,$(unit_dapl)): $(B)/test/%: $(B)/obj/test/unit/%.o $(unit_util) $(B)/lib/libdapl.a \
		$(B)/lib/softverbs.o $(libs)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(call rpath,../lib) $(wraps) -o $@ $(filter %.o,$^) $(B)/lib/libdapl.a -L$(B)/lib -ldat2 $(config) -lcunit

$(addprefix $(B)/test/,$(unit_soft)): $(B)/test/%: $(B)/obj/test/unit/%.o $(B)/obj/test/unit/unit.o \
		$(B)/lib/libsoftverbs.a $(soft_util_o)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ldflags) $(LDFLAGS) $(wraps) -o $@ $^ -lcunit

$(addprefix $(B)/test/,$(fuzz)): $(B)/test/%: $(B)/obj/test/fuzz/%.o $(B)/obj/test/unit/unit.o \
		$(B)/lib/libsoftverbs.a $(soft_util_o)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ldflags) $(LDFLAGS) -o $@ $^ -lcunit

$(addprefix $(B)/test/,$(conform)): $(B)/test/%: $(B)/obj/test/conform/%.o $(conf_util) $(B)/lib/libsoftverbs.a $(soft_util_o)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ldflags) $(LDFLAGS) -o $@ $^ -lcunit

$(addprefix $(B)/test/rdma/,$(conform)): $(B)/test/rdma/%: $(B)/obj/test/conform/%.o $(conf_util)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ldflags) $(LDFLAGS) -o $@ $^ $(verbs) -lcunit

$(B)/test/fake_provider.so: $(B)/obj/test/unit/fake_provider.o
	@mkdir -p $(@D)
	$(Q)$(CC) -shared $(if $(SAN),-fsanitize=$(SAN) $(shared_asan)) -o $@ $^

# Preloaded before programs on the drop-in by blackbox/verbs-fault.sh.
$(B)/test/verbs-fault.so: $(B)/obj/test/fault/verbs_fault.o
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -shared $(if $(SAN),-fsanitize=$(SAN) $(shared_asan)) -o $@ $^ -ldl

# What blackbox/event-mixing.sh runs on all mixtures of registry and provider.
$(B)/test/event-ops: $(B)/obj/test/blackbox/event_ops.o $(B)/lib/libdat2.so.2
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(call rpath,../lib) -o $@ $< -L$(B)/lib -ldat2

# A client on the drop-in, for blackbox/examples.sh.
$(B)/test/early-send: $(B)/obj/test/blackbox/early_send.o $(drop)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(call rpath,../lib/softverbs) -o $@ $^

# The ping program of the README, compiled as printed there.
$(B)/test/readme-ping: README.md $(B)/lib/libdat2.so.2
	@mkdir -p $(@D)
	$(call say,README,ping.c)
	$(Q)awk '/^```c$$/ {on = 1; next} /^```$$/ {on = 0} on' README.md > $(B)/test/readme-ping.c
	$(Q)$(CC) $(cppflags) $(cflags) $(CFLAGS) $(call rpath,../lib) -o $@ $(B)/test/readme-ping.c -L$(B)/lib -ldat2

# How many test programs run at a time: most of them wait most of the time.
JOBS ?= $(shell n=$$(nproc); [ $$n -lt 4 ] && echo $$n || echo 4)
test_env = JOBS='$(JOBS)' DAT_OVERRIDE="$(build)/dat.conf" BUILD="$(build)" FAKE_PROVIDER="$(build)/test/fake_provider.so" \
           DAPL_SOFT_LIB="$(build)/lib/libdaplsoft.so.2" SAN='$(SAN)' CC='$(CC)' MAKE_AGAIN='$(subst ','\'',$(MAKEOVERRIDES))' \
           FUZZ_SECONDS=$${FUZZ_SECONDS:-$(if $(findstring address,$(SAN)),20,3)}

check-unit: tests
	$(Q)$(test_env) test/run $(suites)
check-blackbox: tests
	$(Q)$(test_env) test/run $(blackbox)
check-layers:
	$(Q)test/check-layers
check-exports: all
	$(Q)test/check-exports $(B)/lib
check-headers:
	$(Q)CC='$(CC)' test/headers/check-headers dat/include
	$(Q)for f in test/headers/*.c; do $(CC) $(cppflags) $(cflags) -Werror -fsyntax-only $$f || exit; done
check-man:
	$(Q)test/check-man
check-rules:
	$(Q)test/check-rules
check-table:
	$(Q)test/table $(B)
# For FUZZ_SECONDS, ten minutes by default, each fuzz program under the address sanitizer; from FUZZ_SEED on.
fuzz:
	$(Q)$(MAKE) SAN=address,undefined run-fuzz
run-fuzz: $(addprefix $(B)/test/,$(fuzz))
	$(Q)FUZZ_SECONDS=$${FUZZ_SECONDS:-600} && export FUZZ_SECONDS && \
		LIMIT=$$((FUZZ_SECONDS + 600)) $(test_env) test/run $^
check-fresh:
	$(Q)test/fresh/run
# All rows in all ways for all users, and with FULL=1 each of them in as many rounds as it takes to measure something.
check-verbs: tests
	$(Q)$(test_env) JOBS=1 LIMIT=1200 test/run test/blackbox/verbs-symbols.sh test/blackbox/verbs-perftest-speed.sh \
		$(foreach who,user unshare,$(foreach way,pvm memfd bounce,$(addsuffix @$(way)-$(who),$(verbs_rows))))
# The goals of the counts are for gcc's code. They come first because they take long, and beside others the same.
check: tests check-layers check-headers check-man check-rules $(if $(SAN),,check-exports)
	$(Q)$(test_env) test/run $(if $(findstring clang,$(CC)),,$(firstword $(exact))) $(suites) $(blackbox)
	$(Q)test/table -s $(B)

# Which lines and branches of the registry and the provider the tests reach; fails below 85 % of the branches. The
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
.PHONY: check-arm64
check-arm64:
	$(Q)B='$(B)' test/arm64/run
