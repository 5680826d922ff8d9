# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# One Makefile, not recursive. Variants are switches: SAN=address,undefined or SAN=thread, CC=clang, V=1.
# Products of the default variant are under build/, those of a sanitizer under build/<sanitizers>/.

PREFIX     ?= /usr
SYSCONFDIR ?= /etc
ARCH       := $(shell $(CC) -dumpmachine 2>/dev/null)
LIBDIR     ?= $(PREFIX)/lib$(if $(wildcard /usr/lib/$(ARCH)),/$(ARCH))
VERSION    := 2.0.0

comma := ,
SAN   ?=
OBJCOPY ?= objcopy
B     := build$(if $(SAN),/$(subst $(comma),-,$(SAN)))$(if $(COV),/coverage)
Q     := $(if $(V),,@)
quiet := $(findstring s,$(firstword -$(MAKEFLAGS)))
say    = $(if $(V)$(quiet),@:,@printf '  %-7s %s\n' '$(1)' '$(2)')

CFLAGS ?= -O2 -g
warn   := -Wall -Wextra -Wmissing-prototypes -Wstrict-prototypes -Wshadow -Wpointer-arith -Wwrite-strings
# Without vectors of straight code: two stores are less than the half of a vector made of two registers.
cflags := -std=gnu11 -fPIC -fvisibility=hidden -fno-tree-slp-vectorize -pthread $(warn) $(if $(WERROR),-Werror) \
          $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer) \
          $(if $(findstring undefined,$(SAN)),-fno-sanitize-recover=undefined)
# What gcc defines by itself under a sanitizer, clang does not.
under_san := $(if $(findstring clang,$(CC)),$(if $(findstring thread,$(SAN)),-D__SANITIZE_THREAD__) \
             $(if $(findstring address,$(SAN)),-D__SANITIZE_ADDRESS__))
cppflags := -D_GNU_SOURCE -DSYSCONFDIR='"$(SYSCONFDIR)"' -I. -Idat/include $(under_san)
# As with gcc, programs and libraries share one runtime of the address sanitizer, which others' programs can load first.
shared_asan := $(if $(findstring address,$(SAN)),$(if $(findstring clang,$(CC)),-shared-libasan \
	-Wl$(comma)-rpath$(comma)$(dir $(shell $(CC) -print-file-name=libclang_rt.asan-$(firstword $(subst -, ,$(ARCH))).so))))
ldflags := -pthread $(if $(COV),--coverage) $(if $(SAN),-fsanitize=$(SAN) $(shared_asan),-Wl$(comma)-z$(comma)defs) \
           -Wl,-z,now -Wl,--as-needed
verbs  := -libverbs -lrdmacm
config := -lconfig

objs    = $(patsubst %.c,$(B)/obj/%.o,$(1))
dat_o  := $(call objs,$(wildcard dat/common/*.c))
util_o := $(call objs,$(wildcard util/*.c))
dapl_o := $(call objs,$(wildcard dapl/udapl/*.c dapl/openib/*.c))
drop_o := $(call objs,$(wildcard softverbs/dropin_*.c))
drop_cm_o := $(filter %/dropin_rdmacm.o %/dropin_rsocket.o,$(drop_o))
soft_o := $(filter-out $(drop_o),$(call objs,$(wildcard softverbs/*.c)))
soft_util_o := $(filter-out $(B)/obj/util/settings%.o,$(util_o))
datinfo_o := $(call objs,$(wildcard tools/*.c) dat/common/conf.c dat/common/conf_file.c) \
             $(filter %/log.o $(B)/obj/util/settings%.o,$(util_o))
# Programs that share a folder: each has the parts named after it, and the common ones.
tool_common   := $(call objs,$(wildcard test/common/*.c))
dtest_common  := $(addprefix test/dtest/,output.c clock.c await.c channel.c)
dtest_series  := $(addprefix test/dtest/,adapter.c option.c meet.c pattern.c)
dtest_of       = $(call objs,$(dtest_common) $(dtest_series) $(wildcard test/dtest/$(1).c test/dtest/$(1)_*.c)) $(tool_common)
dtest_others  := $(wildcard test/dtest/dtestcm*.c test/dtest/dtestsrq*.c test/dtest/dtestx*.c)
dtest_o       := $(call objs,$(filter-out $(dtest_series) $(dtest_others),$(wildcard test/dtest/*.c))) $(tool_common)
dapltest_o    := $(call objs,$(wildcard test/dapltest/*.c)) $(tool_common)

libs  := $(B)/lib/libdat2.so.2 $(B)/lib/libdaplofa.so.2 $(B)/lib/libdaplsoft.so.2
drop  := $(B)/lib/softverbs/libibverbs.so.1 $(B)/lib/softverbs/librdmacm.so.1
progs := $(addprefix $(B)/bin/,dtest dtestcm dtestsrq dtestx dapltest datinfo softverbs-run)
confs := $(B)/dat.conf
# The one on libevent where that is.
examples := $(addprefix $(B)/examples/,echo_client echo_epoll $(if $(wildcard /usr/include/event2/event.h),echo_libevent))

# Suites. A program each: those of the registry carry its objects and a provider of their own, the others the
# objects of the stack, linked as needed.
unit_all  := $(patsubst test/unit/%.c,%,$(wildcard test/unit/test_*.c))
unit_dat  := $(filter test_conf% test_registry% test_ia_handle% test_strerror% test_dispatch% test_loader%,$(unit_all))
unit_soft := $(filter test_softverbs%,$(unit_all))
unit_dapl := $(filter-out $(unit_dat) $(unit_soft),$(unit_all))
conform   := $(patsubst test/conform/%.c,%,$(wildcard test/conform/conform_*.c))
blackbox  := $(filter-out test/blackbox/lib%,$(sort $(wildcard test/blackbox/*.sh)))
# The tests of the drop-in again, in each way to copy, as an ordinary user or inside `unshare -Urn`; under a sanitizer and
# with the second compiler, in the way that is all this device's own code.
verbs_rows := $(patsubst %,test/blackbox/verbs-%.sh,utils pyverbs rdmacm rdmacm-many killed killed-busy strace perftest \
	perftest-sizes perftest-vendor ofed others)
verbs_ways := $(if $(SAN)$(findstring clang,$(CC)),,pvm-user memfd-unshare) bounce-user
blackbox  := $(filter-out %-sizes.sh,$(blackbox)) $(foreach way,$(verbs_ways),$(addsuffix @$(way),$(verbs_rows)))
bench     := $(addprefix $(B)/bench/,gate $(patsubst bench/limit_%.c,limit-%,$(wildcard bench/limit_*.c)) verbs dat event \
	$(if $(wildcard /usr/include/rdma/fi_rma.h),fi-rma))
fuzz      := $(patsubst test/fuzz/%.c,%,$(wildcard test/fuzz/fuzz_*.c))
suites    := $(addprefix $(B)/test/,$(unit_all) $(conform) $(fuzz))
unit_util := $(call objs,$(filter-out test/unit/test_%.c test/unit/fake_provider%.c,$(wildcard test/unit/*.c)))
conf_util := $(call objs,$(filter-out test/conform/conform_%.c,$(wildcard test/conform/*.c))) $(call objs,test/unit/unit.c)

# Counts by single steps; means something only of code without a sanitizer.
exact     := $(if $(SAN)$(COV),,$(if $(filter x86_64%,$(ARCH)),$(addprefix $(B)/bench/,exact exact-client)))
# The same, timed over a device that does nothing.
layer     := $(if $(SAN)$(COV),,$(addprefix $(B)/bench/,layer layer-client layer-stub.so conn-stub.so))

.PHONY: all check check-fast check-unit check-layers check-exports check-headers check-abi check-man check-rules \
        check-blackbox check-verbs check-fresh check-rxe bench-rxe fuzz run-fuzz check-table demo install clean tests FORCE
.DELETE_ON_ERROR:
.SECONDARY:

all: $(libs) $(drop) $(progs) $(confs)
tests: all $(bench) $(exact) $(layer) $(examples) $(suites) $(addprefix $(B)/test/rdma/,$(conform)) $(B)/test/fake_provider.so \
       $(B)/test/readme-ping $(B)/test/event-ops $(B)/test/early-send $(B)/test/wire

# --- objects: rebuilt when the compiler or the flags change ------------------------------------------

flags := $(CC) $(cppflags) $(CPPFLAGS) $(cflags) $(CFLAGS)
$(B)/flags: FORCE
	@mkdir -p $(@D); echo '$(subst ','\'',$(flags))' | cmp -s - $@ || echo '$(subst ','\'',$(flags))' > $@

$(if $(COV),$(dat_o) $(dapl_o)): private cflags += --coverage -fprofile-update=atomic
$(B)/obj/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(cppflags) $(CPPFLAGS) $(cflags) $(CFLAGS) -MMD -MP -c -o $@ $<

# --- libraries -------------------------------------------------------------------------------------

soname = -shared -Wl,-soname,$(@F) -Wl,-Bsymbolic $(ldflags) $(LDFLAGS)

$(B)/lib/libdat2.so.2: $(dat_o) $(B)/obj/util/log.o dat/libdat2.map
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(soname) -Wl,--version-script=dat/libdat2.map -o $@ $(filter %.o,$^) -ldl
	$(Q)ln -sf $(@F) $(@D)/libdat2.so

$(B)/lib/libdaplofa.so.2: $(dapl_o) $(util_o) dapl/dapl.map $(B)/lib/libdat2.so.2
	$(call say,LD,$@)
	$(Q)$(CC) $(soname) -Wl,--version-script=dapl/dapl.map -o $@ $(filter %.o,$^) -L$(B)/lib -ldat2 $(verbs) $(config)

# The software device inside: none of its verbs may be seen, or bound to a real libibverbs beside it; its engine thread
# outlives a dlclose by a moment, so the text stays.
$(B)/lib/libdaplsoft.so.2: $(dapl_o) $(util_o) $(B)/lib/softverbs.o dapl/dapl.map $(B)/lib/libdat2.so.2
	$(call say,LD,$@)
	$(Q)$(CC) $(soname) -Wl,--version-script=dapl/dapl.map -Wl,-z,nodelete -o $@ \
		$(filter %.o,$^) -L$(B)/lib -ldat2 $(config)

# One object in which only the verbs and rdma_cm calls have names: the rest cannot meet the provider's.
$(B)/lib/softverbs.o: $(soft_o)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -r -nostdlib -o $@ $^
	$(Q)$(OBJCOPY) --wildcard --keep-global-symbol='ibv_*' --keep-global-symbol='_ibv_*' \
		--keep-global-symbol='rdma_*' --keep-global-symbol='*_ibv_rate' $@

# The drop-in: rdma-core's names and versions before the same device. The connection manager stays with the device
# under private names, and librdmacm.so.1 leads there.
$(B)/lib/softverbs/libibverbs.so.1: $(B)/lib/softverbs.o $(filter-out $(drop_cm_o),$(drop_o)) $(soft_util_o) softverbs/libibverbs.map
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)nm --defined-only $< | sed -n 's/.* T \(rdma_.*\)/\1 softverbs_\1/p' > $@.names
	$(Q)$(OBJCOPY) --redefine-syms=$@.names $< $@.o
	$(Q)$(CC) $(soname) -Wl,--version-script=softverbs/libibverbs.map -Wl,-z,nodelete -o $@ \
		$@.o $(filter-out $<,$(filter %.o,$^))
	$(Q)rm -f $@.names $@.o

$(B)/lib/softverbs/librdmacm.so.1: $(drop_cm_o) softverbs/librdmacm.map $(B)/lib/softverbs/libibverbs.so.1
	$(call say,LD,$@)
	$(Q)$(CC) $(soname) -Wl,--version-script=softverbs/librdmacm.map -Wl,-z,nodelete -o $@ $(filter %.o %.so.1,$^)

$(B)/lib/libsoftverbs.a: $(soft_o)
	@mkdir -p $(@D)
	$(call say,AR,$@)
	$(Q)rm -f $@; $(AR) rcs $@ $^

$(B)/lib/libdapl.a: $(dapl_o) $(util_o)
	@mkdir -p $(@D)
	$(Q)rm -f $@; $(AR) rcs $@ $^

# --- programs --------------------------------------------------------------------------------------

rpath = -Wl,-rpath,'$$ORIGIN/$(1)' $(ldflags) $(LDFLAGS)

$(B)/bin/dtest: $(dtest_o)
$(B)/bin/dtestcm: $(call dtest_of,dtestcm)
$(B)/bin/dtestsrq: $(call dtest_of,dtestsrq)
$(B)/bin/dtestx: $(call dtest_of,dtestx)
$(B)/bin/dapltest: $(dapltest_o)
$(addprefix $(B)/bin/,dtest dtestcm dtestsrq dtestx dapltest): $(B)/lib/libdat2.so.2
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(call rpath,../lib) -o $@ $(filter %.o,$^) -L$(B)/lib -ldat2

$(B)/bin/datinfo: $(datinfo_o) $(B)/lib/libdat2.so.2
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(call rpath,../lib) -o $@ $(filter %.o,$^) -L$(B)/lib -ldat2 $(config) -ldl

$(B)/examples/echo_epoll $(B)/examples/echo_libevent: $(call objs,docs/examples/echo.c)
$(B)/examples/echo_libevent: private LDLIBS += -levent_core
$(examples): $(B)/examples/%: $(B)/obj/docs/examples/%.o $(B)/lib/libdat2.so.2
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(call rpath,../lib) -o $@ $(filter %.o,$^) -L$(B)/lib -ldat2 $(LDLIBS)

$(B)/bin/softverbs-run: tools/softverbs-run
	@mkdir -p $(@D)
	$(Q)sed 's|@libdir@|$(LIBDIR)|' $< > $@ && chmod +x $@

$(B)/dat.conf: dat.conf Makefile
	@mkdir -p $(@D)
	$(Q)sed 's|libdapl\([a-z]*\)\.so\.2|$(abspath $(B))/lib/&|' $< > $@

# --- measuring: see bench/README.md ------------------------------------------------------------------

$(B)/bench/gate: $(B)/obj/bench/gate.o $(B)/obj/bench/measure.o
$(B)/bench/limit-%: $(B)/obj/bench/limit_%.o $(B)/obj/bench/measure.o
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ldflags) $(LDFLAGS) -o $@ $^
# A peer, where it can be compiled.
$(B)/bench/fi-rma: $(B)/obj/bench/fi_rma.o $(B)/obj/bench/measure.o
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ldflags) $(LDFLAGS) -o $@ $^ -lfabric
$(B)/bench/gate:
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ldflags) $(LDFLAGS) -o $@ $^

# As any verbs program is linked; the path leads to the drop-in.
$(B)/bench/verbs: $(call objs,$(wildcard bench/verbs*.c) bench/measure.c) $(drop)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(call rpath,../lib/softverbs) -o $@ $(filter %.o,$^) $(drop)

$(B)/bench/dat: $(call objs,bench/dat.c bench/measure.c) $(libs)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(call rpath,../lib) -o $@ $(filter %.o,$^) -L$(B)/lib -ldat2

# DAT, and verbs on the drop-in, in one program.
$(B)/bench/event: $(B)/obj/bench/event.o $(libs) $(drop)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(call rpath,../lib) -Wl,-rpath,'$$ORIGIN/../lib/softverbs' -o $@ $(filter %.o,$^) -L$(B)/lib -ldat2 $(drop)

.PHONY: bench-event
bench-event: $(B)/bench/event $(confs)
	$(Q)DAT_OVERRIDE=$(abspath $(B))/dat.conf $(B)/bench/event

bench-programs: $(bench) $(exact) $(layer) $(confs)

# ROUNDS=n, GOALS='G1 G3', SHORT=1: that all of it runs, in a minute and without a verdict.
bench: bench-programs
	$(Q)bench/run $(B) $(if $(ROUNDS),--rounds $(ROUNDS)) --goals '$(GOALS)' $(if $(SHORT),--short)

# --- what a call costs above the device, counted by single steps (x86-64) ---------------------------

$(B)/bench/exact: $(call objs,bench/exact.c bench/exact_step.c bench/exact_text.c bench/beside.c)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ldflags) $(LDFLAGS) -o $@ $^

# Which libdat2 it gets is said by who runs it.
$(B)/bench/exact-client: $(call objs,bench/exact_client.c bench/exact_pair.c) $(B)/lib/libdat2.so.2
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ldflags) $(LDFLAGS) -o $@ $(filter %.o,$^) -L$(B)/lib -ldat2

$(B)/bench/layer: $(call objs,bench/layer.c bench/beside.c)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ldflags) $(LDFLAGS) -o $@ $^
$(B)/bench/layer-client: $(call objs,bench/layer_client.c bench/exact_pair.c) $(B)/lib/libdat2.so.2
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ldflags) $(LDFLAGS) -o $@ $(filter %.o,$^) -L$(B)/lib -ldat2 -ldl
# It looks for the calls that it stands before in what it is linked with.
$(B)/bench/layer-stub.so: $(call objs,bench/layer_stub.c)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -shared $(LDFLAGS) -o $@ $^ -Wl,--no-as-needed -libverbs -ldl
$(B)/bench/conn-stub.so: $(call objs,bench/conn_stub.c)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -shared $(LDFLAGS) -o $@ $^
$(call objs,bench/layer_stub.c bench/conn_stub.c): private cflags += -fvisibility=default

.PHONY: bench-exact
bench-exact: all $(exact) $(layer)
	$(Q)$(B)/bench/exact $(if $(REPORT),--report)
	$(Q)$(B)/bench/layer $(if $(REPORT),--report)

# --- tests -----------------------------------------------------------------------------------------

$(addprefix $(B)/test/,$(unit_dat)): $(B)/test/%: $(B)/obj/test/unit/%.o $(B)/obj/test/unit/unit.o $(dat_o) $(B)/obj/util/log.o
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
	$(Q)$(CC) $(ldflags) $(LDFLAGS) -o $@ $^ -lcunit

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

# One end of a connection between two stacks, for test/vm.
$(B)/test/wire: $(call objs,$(wildcard test/vm/wire*.c)) $(B)/lib/libdat2.so.2
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(call rpath,../lib) -o $@ $(filter %.o,$^) -L$(B)/lib -ldat2

# The ping program of the README, compiled as printed there.
$(B)/test/readme-ping: README.md $(B)/lib/libdat2.so.2
	@mkdir -p $(@D)
	$(call say,README,ping.c)
	$(Q)awk '/^```c$$/ {on = 1; next} /^```$$/ {on = 0} on' README.md > $(B)/test/readme-ping.c
	$(Q)$(CC) $(cppflags) $(cflags) $(CFLAGS) $(call rpath,../lib) -o $@ $(B)/test/readme-ping.c -L$(B)/lib -ldat2

# How many test programs run at a time: most of them wait most of the time.
JOBS ?= $(shell n=$$(nproc); [ $$n -lt 4 ] && echo $$n || echo 4)
test_env = JOBS='$(JOBS)' DAT_OVERRIDE=$(abspath $(B))/dat.conf BUILD=$(abspath $(B)) FAKE_PROVIDER=$(abspath $(B))/test/fake_provider.so \
           DAPL_SOFT_LIB=$(abspath $(B))/lib/libdaplsoft.so.2 SAN='$(SAN)' CC='$(CC)' \
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
# QUICK=1: half of it, in half the time.
check-rxe: tests
	$(Q)$(test_env) QUICK='$(QUICK)' test/vm/check
bench-rxe: all $(B)/bench/verbs $(B)/bench/dat
	$(Q)BUILD=$(abspath $(B)) bench/rxe
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

demo: all
	$(Q)BUILD=$(abspath $(B)) test/demo

# --- installation ----------------------------------------------------------------------------------

install: all
	install -d $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(PREFIX)/include/dat2 $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(SYSCONFDIR)
	install -m 644 $(libs) $(DESTDIR)$(LIBDIR)
	install -d $(DESTDIR)$(LIBDIR)/softverbs
	install -m 644 $(drop) $(DESTDIR)$(LIBDIR)/softverbs
	for l in dat2 daplofa daplsoft; do ln -sf lib$$l.so.2 $(DESTDIR)$(LIBDIR)/lib$$l.so || exit; done
	install -m 644 dat/include/dat2/*.h $(DESTDIR)$(PREFIX)/include/dat2
	install $(progs) $(DESTDIR)$(PREFIX)/bin
	install -m 644 dat.conf dapl.conf $(DESTDIR)$(SYSCONFDIR)
	sed 's|@prefix@|$(PREFIX)|; s|@libdir@|$(LIBDIR)|; s|@version@|$(VERSION)|' dat2.pc.in > $(DESTDIR)$(LIBDIR)/pkgconfig/dat2.pc
	for s in 1 3 5 7; do \
		set -- man$$s/*.$$s; [ -e "$$1" ] || continue; \
		install -d $(DESTDIR)$(PREFIX)/share/man/man$$s && \
		install -m 644 "$$@" $(DESTDIR)$(PREFIX)/share/man/man$$s || exit; \
	done

clean:
	rm -rf build

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
