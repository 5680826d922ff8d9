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
cppflags := -D_GNU_SOURCE -DSYSCONFDIR='"$(SYSCONFDIR)"' -I. -I$(B)/gen -Idat/include $(under_san)
# As with gcc, programs and libraries share one runtime of the address sanitizer, which others' programs can load first.
shared_asan := $(if $(findstring address,$(SAN)),$(if $(findstring clang,$(CC)),-shared-libasan \
	-Wl$(comma)-rpath$(comma)$(dir $(shell $(CC) -print-file-name=libclang_rt.asan-$(firstword $(subst -, ,$(ARCH))).so))))
ldflags := -pthread $(if $(COV),--coverage) $(if $(SAN),-fsanitize=$(SAN) $(shared_asan),-Wl$(comma)-z$(comma)defs) \
           -Wl,-z,now -Wl,--as-needed
verbs  := -libverbs -lrdmacm
config := -lconfig

objs    = $(patsubst %.c,$(B)/obj/%.o,$(1))
dat_o  := $(call objs,$(wildcard dat/common/*.c) util/log.c util/text_file.c)
util_o := $(call objs,$(wildcard util/*.c))
dapl_o := $(call objs,$(wildcard dapl/udapl/*.c dapl/openib/*.c))
drop_o := $(call objs,$(wildcard softverbs/dropin_*.c))
drop_cm_o := $(filter %/dropin_rdmacm.o %/dropin_rsocket.o,$(drop_o))
soft_o := $(filter-out $(drop_o),$(call objs,$(wildcard softverbs/*.c)))
soft_util_o := $(filter-out $(B)/obj/util/settings%.o $(B)/obj/util/text_file.o,$(util_o))
datinfo_o := $(call objs,$(wildcard tools/*.c) dat/common/conf.c dat/common/conf_file.c) \
             $(filter %/log.o %/text_file.o $(B)/obj/util/settings%.o,$(util_o))
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

.PHONY: all demo clean FORCE
.DELETE_ON_ERROR:
.SECONDARY:

all: $(libs) $(drop) $(progs) $(confs)

# --- objects: rebuilt when the compiler or the flags change ------------------------------------------

flags := $(CC) $(cppflags) $(CPPFLAGS) $(cflags) $(CFLAGS)
$(B)/flags: FORCE
	@mkdir -p $(@D); echo '$(subst ','\'',$(flags))' | cmp -s - $@ || echo '$(subst ','\'',$(flags))' > $@

# What this machine's verbs headers lack, for softverbs/api.h.
$(B)/gen/verbs_have.h: tools/verbs-probe $(B)/flags
	@mkdir -p $(@D)
	$(call say,PROBE,$@)
	$(Q)tools/verbs-probe $(CC) $(cppflags) $(CPPFLAGS) $(CFLAGS) > $@

$(if $(COV),$(dat_o) $(dapl_o)): private cflags += --coverage -fprofile-update=atomic
$(B)/obj/%.o: %.c $(B)/flags $(B)/gen/verbs_have.h
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(cppflags) $(CPPFLAGS) $(cflags) $(CFLAGS) -MMD -MP -c -o $@ $<

# --- libraries -------------------------------------------------------------------------------------

soname = -shared -Wl,-soname,$(@F) -Wl,-Bsymbolic $(ldflags) $(LDFLAGS)

$(B)/lib/libdat2.so.2: $(dat_o) dat/libdat2.map
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

demo: all
	$(Q)BUILD=$(abspath $(B)) test/demo

clean:
	rm -rf build

include bench/bench.mk test/test.mk test/long.mk test/vm/vm.mk packaging/install.mk

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
