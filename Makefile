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
B     := build$(if $(SAN),/$(subst $(comma),-,$(SAN)))
Q     := $(if $(V),,@)
quiet := $(findstring s,$(firstword -$(MAKEFLAGS)))
say    = $(if $(V)$(quiet),@:,@printf '  %-7s %s\n' '$(1)' '$(2)')

CFLAGS ?= -O2 -g
warn   := -Wall -Wextra -Wmissing-prototypes -Wstrict-prototypes -Wshadow -Wpointer-arith -Wwrite-strings
cflags := -std=gnu11 -fPIC -fvisibility=hidden -pthread $(warn) $(if $(WERROR),-Werror) \
          $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer) \
          $(if $(findstring undefined,$(SAN)),-fno-sanitize-recover=undefined)
cppflags := -D_GNU_SOURCE -DSYSCONFDIR='"$(SYSCONFDIR)"' -I. -Idat/include
ldflags := -pthread $(if $(SAN),-fsanitize=$(SAN),-Wl$(comma)-z$(comma)defs) -Wl,-z,now -Wl,--as-needed
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
dtest_common  := $(addprefix test/dtest/,output.c clock.c address.c await.c channel.c)
dtest_series  := $(addprefix test/dtest/,adapter.c option.c meet.c pattern.c)
dtest_of       = $(call objs,$(dtest_common) $(dtest_series) $(wildcard test/dtest/$(1).c test/dtest/$(1)_*.c))
dtest_others  := $(wildcard test/dtest/dtestcm*.c test/dtest/dtestsrq*.c test/dtest/dtestx*.c)
dtest_o       := $(call objs,$(filter-out $(dtest_series) $(dtest_others),$(wildcard test/dtest/*.c)))
dapltest_o    := $(call objs,$(wildcard test/dapltest/*.c))

libs  := $(B)/lib/libdat2.so.2 $(B)/lib/libdaplofa.so.2 $(B)/lib/libdaplsoft.so.2
drop  := $(B)/lib/softverbs/libibverbs.so.1 $(B)/lib/softverbs/librdmacm.so.1
progs := $(addprefix $(B)/bin/,dtest dtestcm dtestsrq dtestx dapltest datinfo softverbs-run)
confs := $(B)/dat.conf

# Suites. A program each: those of the registry carry its objects and a provider of their own, the others the
# objects of the stack, linked as needed.
unit_all  := $(patsubst test/unit/%.c,%,$(wildcard test/unit/test_*.c))
unit_dat  := $(filter test_conf% test_registry% test_ia_handle% test_strerror% test_dispatch% test_loader%,$(unit_all))
unit_soft := $(filter test_softverbs%,$(unit_all))
unit_dapl := $(filter-out $(unit_dat) $(unit_soft),$(unit_all))
conform   := $(patsubst test/conform/%.c,%,$(wildcard test/conform/conform_*.c))
blackbox  := $(filter-out %/lib.sh %/lib-verbs.sh,$(sort $(wildcard test/blackbox/*.sh)))
suites    := $(addprefix $(B)/test/,$(unit_all) $(conform))
unit_util := $(call objs,$(filter-out test/unit/test_%.c test/unit/fake_provider%.c,$(wildcard test/unit/*.c)))
conf_util := $(call objs,$(filter-out test/conform/conform_%.c,$(wildcard test/conform/*.c))) $(call objs,test/unit/unit.c)

.PHONY: all check check-fast check-unit check-layers check-exports check-headers check-abi check-man \
        check-blackbox check-fresh check-rxe demo install clean tests FORCE
.DELETE_ON_ERROR:
.SECONDARY:

all: $(libs) $(drop) $(progs) $(confs)
tests: all $(suites) $(addprefix $(B)/test/rdma/,$(conform)) $(B)/test/fake_provider.so $(B)/test/readme-ping

# --- objects: rebuilt when the compiler or the flags change ------------------------------------------

flags := $(CC) $(cppflags) $(CPPFLAGS) $(cflags) $(CFLAGS)
$(B)/flags: FORCE
	@mkdir -p $(@D); echo '$(subst ','\'',$(flags))' | cmp -s - $@ || echo '$(subst ','\'',$(flags))' > $@

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

$(B)/bin/softverbs-run: tools/softverbs-run
	@mkdir -p $(@D)
	$(Q)sed 's|@libdir@|$(LIBDIR)|' $< > $@ && chmod +x $@

$(B)/dat.conf: dat.conf Makefile
	@mkdir -p $(@D)
	$(Q)sed 's|libdapl\([a-z]*\)\.so\.2|$(abspath $(B))/lib/&|' $< > $@

# --- tests -----------------------------------------------------------------------------------------

$(addprefix $(B)/test/,$(unit_dat)): $(B)/test/%: $(B)/obj/test/unit/%.o $(B)/obj/test/unit/unit.o $(dat_o) $(B)/obj/util/log.o
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(call rpath,../lib) -rdynamic -o $@ $^ -lcunit -ldl

# Fails the nth allocation.
$(B)/test/test_registry_memory: private ldflags += -Wl,--wrap=calloc
# Moves the clock.
$(B)/test/test_ep_expiry: private ldflags += -Wl,--wrap=clock_gettime

$(addprefix $(B)/test/,$(unit_dapl)): $(B)/test/%: $(B)/obj/test/unit/%.o $(unit_util) $(B)/lib/libdapl.a \
		$(B)/lib/softverbs.o $(libs)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(call rpath,../lib) -o $@ $(filter %.o,$^) $(B)/lib/libdapl.a -L$(B)/lib -ldat2 $(config) -lcunit

$(addprefix $(B)/test/,$(unit_soft)): $(B)/test/%: $(B)/obj/test/unit/%.o $(B)/obj/test/unit/unit.o \
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
	$(Q)$(CC) -shared $(if $(SAN),-fsanitize=$(SAN)) -o $@ $^

# The ping program of the README, compiled as printed there.
$(B)/test/readme-ping: README.md $(B)/lib/libdat2.so.2
	@mkdir -p $(@D)
	$(call say,README,ping.c)
	$(Q)awk '/^```c$$/ {on = 1; next} /^```$$/ {on = 0} on' README.md > $(B)/test/readme-ping.c
	$(Q)$(CC) $(cppflags) $(cflags) $(CFLAGS) $(call rpath,../lib) -o $@ $(B)/test/readme-ping.c -L$(B)/lib -ldat2

test_env = DAT_OVERRIDE=$(abspath $(B))/dat.conf BUILD=$(abspath $(B)) FAKE_PROVIDER=$(abspath $(B))/test/fake_provider.so \
           DAPL_SOFT_LIB=$(abspath $(B))/lib/libdaplsoft.so.2 SAN='$(SAN)' CC='$(CC)'

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
check-fresh:
	$(Q)test/fresh/run
check-rxe: tests
	$(Q)test/vm/rxe-run -t 540 env $(test_env) test/vm/suite
check: tests check-layers check-headers check-man $(if $(SAN),,check-exports)
	$(Q)$(test_env) test/run $(suites) $(blackbox)

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
