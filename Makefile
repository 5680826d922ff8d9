# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# One Makefile, not recursive. Variants are switches: SAN=address,undefined or SAN=thread, CC=clang, V=1.
# Products of the default variant are under build/, those of a sanitizer under build/<sanitizers>/; B=FOLDER in the place of
# build. Neither B nor a variant's name has blanks; the tree's own path may have them.

VERSION    := 2.0.0
PREFIX     ?= /usr
SYSCONFDIR ?= /etc
ARCH       := $(subst -pc-,-,$(subst -unknown-,-,$(shell $(CC) -dumpmachine 2>/dev/null)))
# As the system has it: a folder for each machine (Debian), lib64 (Red Hat, SUSE), or neither.
libdir_of   = $(if $(wildcard /usr/lib/$(ARCH)),lib/$(ARCH),$(if $(wildcard /usr/lib64/libc.so.6),lib64,lib))
LIBDIR     ?= $(PREFIX)/$(libdir_of)

comma := ,
SAN   ?=
OBJCOPY ?= objcopy
B     := build
override B := $(B)$(if $(SAN),/$(subst $(comma),-,$(SAN)))$(if $(COV),/coverage)
# With its path, which may have blanks: for recipes, in quotes.
build  = $(if $(filter /%,$(B)),,$(CURDIR)/)$(B)
Q     := $(if $(V),,@)
quiet := $(findstring s,$(firstword -$(MAKEFLAGS)))
say    = $(if $(V)$(quiet),@:,@printf '  %-7s %s\n' '$(1)' '$(2)')

CFLAGS ?= -O2 -g
# What finds an overrun of a buffer before it does harm. The files of `unguarded` have no buffers, and a call of theirs would
# need five instructions more; the flag comes last, for CFLAGS of a distribution ask for the guard, too.
hardened  := $(if $(SAN)$(COV),,-fstack-protector-strong $(if $(findstring _FORTIFY_SOURCE,$(CPPFLAGS) $(CFLAGS))$(findstring -O0,$(CFLAGS)),,\
             -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))
unguarded := dat/common/api_ext.c dat/common/ia_handle.c dapl/udapl/ext.c dapl/udapl/ep_post.c dapl/udapl/evd_arm.c dapl/openib/cq.c
guard     :=
warn   := -Wall -Wextra -Wmissing-prototypes -Wstrict-prototypes -Wshadow -Wpointer-arith -Wwrite-strings
# Without vectors of straight code: two stores are less than the half of a vector made of two registers.
cflags := -std=gnu11 -fPIC -fvisibility=hidden -fno-tree-slp-vectorize -pthread $(warn) $(if $(WERROR),-Werror) \
          $(hardened) \
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
           -Wl,-z,relro -Wl,-z,now -Wl,--as-needed
verbs  := -libverbs -lrdmacm
config := -lconfig -ldl

objs    = $(patsubst %.c,$(B)/obj/%.o,$(1))
dat_o  := $(call objs,$(wildcard dat/common/*.c) util/log.c util/text_file.c)
util_o := $(call objs,$(wildcard util/*.c))
dapl_o := $(call objs,$(wildcard dapl/udapl/*.c dapl/openib/*.c))
drop_o := $(call objs,$(wildcard softverbs/dropin_*.c))
drop_cm_o := $(filter %/dropin_rdmacm.o %/dropin_rsocket.o,$(drop_o))
soft_o := $(filter-out $(drop_o),$(call objs,$(wildcard softverbs/*.c)))
soft_util_o := $(filter-out $(B)/obj/util/settings%.o $(B)/obj/util/text_file.o,$(util_o))
datinfo_o := $(call objs,$(wildcard tools/*.c) $(addprefix dat/common/,conf.c conf_file.c match.c)) \
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

.PHONY: all demo run-demo clean values FORCE
.DELETE_ON_ERROR:
.SECONDARY:

all: $(libs) $(drop) $(progs) $(confs)

# --- objects: rebuilt when the compiler or the flags change ------------------------------------------

# Files that hold a value: what depends on one is made again when the value is another.
value_of_flags     = $(CC) $(cppflags) $(CPPFLAGS) $(cflags) $(CFLAGS) $(unguarded)
value_of_folder    = $(build)
value_of_libdir    = $(LIBDIR) $(SYSCONFDIR) $(PREFIX) $(LDFLAGS)
$(addprefix $(B)/,flags folder libdir): FORCE
	@mkdir -p $(@D); value='$(subst ','\'',$(value_of_$(@F)))'; \
		printf '%s\n' "$$value" | cmp -s - $@ || printf '%s\n' "$$value" > $@

# What this machine's verbs headers lack, for softverbs/api.h.
$(B)/gen/verbs_have.h: tools/verbs-probe util/platform.h $(B)/flags
	@mkdir -p $(@D)
	$(Q)$(CC) -fsyntax-only -x c util/platform.h
	$(call say,PROBE,$@)
	$(Q)tools/verbs-probe $(CC) $(cppflags) $(CPPFLAGS) $(CFLAGS) > $@

# Files that hold a value, for tools/progress.
values: $(addprefix $(B)/,flags folder libdir)

$(if $(COV),$(dat_o) $(dapl_o)): private cflags += --coverage -fprofile-update=atomic
$(call objs,$(unguarded)): private guard := -fno-stack-protector
$(B)/obj/%.o: %.c $(B)/flags $(B)/gen/verbs_have.h
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(cppflags) $(CPPFLAGS) $(cflags) $(CFLAGS) $(guard) -MMD -MP -c -o $@ $<

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

rpath = -pie -Wl,-rpath,'$$ORIGIN/$(1)' $(ldflags) $(LDFLAGS)

# Each once for the build folder, where the libraries are beside it, and once for installation.
bins = $(B)/bin/$(1) $(B)/install/$(1)
tools := dtest dtestcm dtestsrq dtestx dapltest datinfo
$(call bins,dtest): $(dtest_o)
$(call bins,dtestcm): $(call dtest_of,dtestcm)
$(call bins,dtestsrq): $(call dtest_of,dtestsrq)
$(call bins,dtestx): $(call dtest_of,dtestx)
$(call bins,dapltest): $(dapltest_o)
$(call bins,datinfo): $(datinfo_o)
$(call bins,datinfo): private LDLIBS += $(config) -ldl
$(addprefix $(B)/bin/,$(tools)): private search = -Wl,-rpath,'$$ORIGIN/../lib'
$(addprefix $(B)/install/,$(tools)): private search = $(if $(is_system_libdir),,-Wl$(comma)-rpath,'$(LIBDIR)')
$(addprefix $(B)/install/,$(tools)): $(B)/libdir
$(foreach tool,$(tools),$(call bins,$(tool))): $(B)/lib/libdat2.so.2
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -pie $(search) $(ldflags) $(LDFLAGS) -o $@ $(filter %.o,$^) -L$(B)/lib -ldat2 $(LDLIBS)

$(B)/examples/echo_epoll $(B)/examples/echo_libevent: $(call objs,docs/examples/echo.c)
$(B)/examples/echo_libevent: private LDLIBS += -levent_core
$(examples): $(B)/examples/%: $(B)/obj/docs/examples/%.o $(B)/lib/libdat2.so.2
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(call rpath,../lib) -o $@ $(filter %.o,$^) -L$(B)/lib -ldat2 $(LDLIBS)

# From the build folder it finds the drop-in beside itself.
$(B)/bin/softverbs-run: tools/softverbs-run
	@mkdir -p $(@D)
	$(Q)cp $< $@ && chmod 755 $@

# A name with blanks is quoted in dat.conf(5).
$(B)/dat.conf: dat.conf $(B)/folder
	@mkdir -p $(@D)
	$(Q)folder=$$(printf '%s' "$(build)/lib/" | sed 's/[\\"]/\\&/g; s/[\\&|]/\\&/g') && \
		sed "s|libdapl[a-z]*\.so\.2|\"$$folder&\"|" $< > $@

demo: all
	$(Q)BUILD="$(build)" test/demo
# The same of what is built already: another ./demo may build in this folder.
run-demo:
	$(Q)BUILD="$(build)" test/demo

# Only what is a build folder.
clean:
	$(Q)[ ! -e $(B)/flags ] || rm -rf $(B)

include bench/bench.mk test/test.mk test/long.mk test/vm/vm.mk packaging/install.mk packaging/package.mk

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
