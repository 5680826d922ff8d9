# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# One Makefile, not recursive. Variants are switches: SAN=address,undefined or SAN=thread, DEBUG=1, CC=clang, V=1.
# Products are in build/, those of a sanitizer in build/<sanitizers>/, those of DEBUG in build/debug/; B=FOLDER replaces
# build. B and the name of a variant have no blanks; the tree's own path may have them. Flags, programs, tests, benchmarks,
# installation and packages are in the fragments that the last lines include.

VERSION    := 2.0.0
PREFIX     ?= /usr
SYSCONFDIR ?= /etc
ARCH       := $(subst -pc-,-,$(subst -unknown-,-,$(shell $(CC) -dumpmachine 2>/dev/null)))
# The system's layout: a folder for each machine (Debian), lib64 (Red Hat, SUSE), or neither.
libdir_of   = $(if $(wildcard /usr/lib/$(ARCH)),lib/$(ARCH),$(if $(wildcard /usr/lib64/libc.so.6),lib64,lib))
LIBDIR     ?= $(PREFIX)/$(libdir_of)

comma := ,
SAN   ?=
B     := build
override B := $(B)$(if $(SAN),/$(subst $(comma),-,$(SAN)))$(if $(COV),/coverage)$(if $(DEBUG),/debug)
# The path of B, which may have blanks: recipes have it in quotes.
build  = $(if $(filter /%,$(B)),,$(CURDIR)/)$(B)
Q     := $(if $(V),,@)
quiet := $(findstring s,$(firstword -$(MAKEFLAGS)))
say    = $(if $(V)$(quiet),@:,@printf '  %-7s %s\n' '$(1)' '$(2)')

include tools/flags.mk

verbs  := -libverbs -lrdmacm
config := -lconfig -ldl

objs    = $(patsubst %.c,$(B)/obj/%.o,$(1))
dat_o  := $(call objs,$(wildcard dat/common/*.c) util/log.c util/text_file.c)
util_o := $(call objs,$(filter-out $(if $(checked),,util/lock_check.c),$(wildcard util/*.c)))
one_o  := $(call objs,$(wildcard dat/one/*.c) util/log.c)
# The linked objects decide which connection manager a provider has: each has a table (struct ib_cm_kind), and those that
# replace librdmacm are in dapl/cm.
kinds  := $(wildcard dapl/openib/cm_*.c)
dapl_o := $(call objs,$(wildcard dapl/udapl/*/*.c) $(filter-out $(kinds),$(wildcard dapl/openib/*.c)))
rdmacm_o := $(call objs,dapl/openib/cm_rdmacm.c)
cm_shared := $(filter-out dapl/cm/scm% dapl/cm/ucm%,$(wildcard dapl/cm/*.c))
scm_cm_o := $(call objs,$(cm_shared) $(wildcard dapl/cm/scm*.c))
ucm_cm_o := $(call objs,$(cm_shared) $(wildcard dapl/cm/ucm*.c))
scm_o  := $(call objs,dapl/openib/cm_scm.c dapl/openib/cm_port.c) $(scm_cm_o)
ucm_o  := $(call objs,dapl/openib/cm_ucm.c dapl/openib/cm_port.c) $(ucm_cm_o)
drop_o := $(call objs,$(wildcard softverbs/dropin/*.c))
drop_cm_o := $(filter %/rdmacm.o %/rsocket.o,$(drop_o))
drop_verbs_o := $(filter-out $(drop_cm_o),$(drop_o))
# What needs libraries of others, for other hosts: objects of their own, where these are.
ofi_ok   := $(shell printf '\043include <rdma/fi_endpoint.h>\n\043if FI_MAJOR_VERSION == 1 \046\046 FI_MINOR_VERSION < 17\n\043error\n\043endif\n' | \
              $(CC) $(CPPFLAGS) -shared -x c -o /dev/null - -lfabric 2>/dev/null && echo 1)
ofi_o    := $(call objs,$(wildcard softverbs/plugin/ofi*.c))
plugin_o := $(call objs,$(wildcard softverbs/plugin/*.c))
plugin_ok := $(shell printf '\043include <nettle/hmac.h>\n' | $(CC) $(CPPFLAGS) -shared -x c -o /dev/null - -lnettle 2>/dev/null && echo 1)
plugin := $(if $(plugin_ok),$(addprefix $(B)/lib/softverbs/libsoftverbs-,fabric.so.1 $(if $(ofi_ok),ofi.so.1)))
soft_o := $(filter-out $(drop_o) $(plugin_o),$(call objs,$(wildcard softverbs/*.c softverbs/*/*.c)))
soft_cm_o := $(filter $(B)/obj/softverbs/cm/%,$(soft_o))
soft_verbs_o := $(filter-out $(soft_cm_o),$(soft_o))
soft_util_o := $(filter-out $(B)/obj/util/settings%.o,$(util_o))
datinfo_o := $(call objs,$(wildcard tools/*.c) $(addprefix dat/common/,conf.c conf_file.c match.c) \
             $(addprefix softverbs/base/,settings.c settings_file.c)) \
             $(filter %/log.o %/text_file.o $(B)/obj/util/settings%.o,$(util_o))

# DAT 1.2, for programs of that version: always built and tested, installed with COMPAT=1.
libdat := $(B)/lib/libdat.so.1
libs  := $(addprefix $(B)/lib/,libdat2.so.2 libdaplofa.so.2 libdaploscm.so.2 libdaploucm.so.2 libdaplsoft.so.2)
drop  := $(B)/lib/softverbs/libibverbs.so.1 $(B)/lib/softverbs/librdmacm.so.1
tell  := $(B)/lib/softverbs/softverbs-tell
progs := $(addprefix $(B)/bin/,dtest dtestcm dtestsrq dtestx dapltest datinfo softverbs-run)
confs := $(B)/dat.conf
# The example with libevent is built where libevent is installed.
examples := $(addprefix $(B)/examples/,echo_client echo_epoll $(if $(wildcard /usr/include/event2/event.h),echo_libevent))

.PHONY: all demo run-demo html clean values FORCE
.DELETE_ON_ERROR:
.SECONDARY:

all: $(libs) $(libdat) $(drop) $(plugin) $(tell) $(progs) $(confs)

# --- objects: rebuilt when the compiler or the flags change ------------------------------------------

# Each of these says in one line which packages it lacks, before anything is compiled or packed.
needing := bench deb html rpm
needed  := $(addprefix need-,$(filter $(needing),$(MAKECMDGOALS)))
.PHONY: $(needing:%=need-%)
$(needing:%=need-%): need-%:
	@CC='$(CC)' PATHS='$(filter -I% --sysroot=%,$(CPPFLAGS) $(CFLAGS))' FLAGS='$(filter -d --nodeps,$(DEB_FLAGS) $(RPM_FLAGS))' tools/missing $*

# Each file holds a value; a product that depends on it is rebuilt when the value changes. The folder's own path is none of
# the flags: what is moved with the folder stays as it is.
value_of_flags     = $(CC) $(filter-out -I$(B)/gen,$(cppflags)) $(CPPFLAGS) $(cflags) $(CFLAGS) $(unguarded) $(in_suites)
value_of_folder    = $(build)
value_of_libdir    = $(LIBDIR) $(SYSCONFDIR) $(PREFIX) $(LDFLAGS)
$(addprefix $(B)/,flags folder libdir): FORCE | $(needed)
	@mkdir -p $(@D); value='$(subst ','\'',$(value_of_$(@F)))'; \
		printf '%s\n' "$$value" | cmp -s - $@ || printf '%s\n' "$$value" > $@

# The features that this machine's verbs headers lack, for softverbs/base/api.h.
$(B)/gen/verbs_have.h: tools/verbs-probe util/platform.h $(B)/flags
	@mkdir -p $(@D)
	$(Q)$(CC) -fsyntax-only -x c util/platform.h
	$(call say,PROBE,$@)
	$(Q)tools/verbs-probe $(CC) $(cppflags) $(CPPFLAGS) $(CFLAGS) > $@

# The same files for tools/progress.
values: $(addprefix $(B)/,flags folder libdir)

$(if $(COV),$(dat_o) $(dapl_o)): private cflags += --coverage -fprofile-update=atomic
$(call objs,$(unguarded)): private late := -fno-stack-protector
$(B)/obj/%.o: %.c $(B)/flags $(B)/gen/verbs_have.h
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(cppflags) $(CPPFLAGS) $(cflags) $(CFLAGS) $(late) -MMD -MP -c -o $@ $<

# --- libraries -------------------------------------------------------------------------------------

soname = -shared -Wl,-soname,$(@F) -Wl,-Bsymbolic $(ldflags) $(LDFLAGS)

$(B)/lib/libdat2.so.2: $(dat_o) dat/libdat2.map
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(soname) -Wl,--version-script=dat/libdat2.map -o $@ $(filter %.o,$^) -ldl
	$(Q)ln -sf $(@F) $(@D)/libdat2.so

# It finds the functions of libdat2 by name (dat/one/two.c), so no symbol shows the linker that it needs libdat2.
$(libdat): $(one_o) dat/libdat.map $(B)/lib/libdat2.so.2
	$(call say,LD,$@)
	$(Q)$(CC) $(soname) -Wl,--version-script=dat/libdat.map -o $@ $(filter %.o,$^) -L$(B)/lib -Wl,--no-as-needed -ldat2 -ldl
	$(Q)ln -sf $(@F) $(@D)/libdat.so

# librdmacm keeps each device open for the next identifier, also if it is unloaded, so it stays mapped.
$(B)/lib/libdaplofa.so.2: $(dapl_o) $(rdmacm_o) $(util_o) dapl/dapl.map $(B)/lib/libdat2.so.2
	$(call say,LD,$@)
	$(Q)$(CC) $(soname) -Wl,--version-script=dapl/dapl.map -Wl,-z,nodelete -o $@ $(filter %.o,$^) \
		-L$(B)/lib -ldat2 $(verbs) $(config)

$(B)/lib/libdaploscm.so.2: $(dapl_o) $(scm_o) $(util_o) dapl/scm.map $(B)/lib/libdat2.so.2
	$(call say,LD,$@)
	$(Q)$(CC) $(soname) -Wl,--version-script=dapl/scm.map -o $@ $(filter %.o,$^) -L$(B)/lib -ldat2 -libverbs $(config)

$(B)/lib/libdaploucm.so.2: $(dapl_o) $(ucm_o) $(util_o) dapl/ucm.map $(B)/lib/libdat2.so.2
	$(call say,LD,$@)
	$(Q)$(CC) $(soname) -Wl,--version-script=dapl/ucm.map -o $@ $(filter %.o,$^) -L$(B)/lib -ldat2 -libverbs $(config)

# The software device inside: its verbs are hidden, and are not bound to a real libibverbs beside it; its engine thread
# outlives a dlclose by a moment, so the library stays mapped.
$(B)/lib/libdaplsoft.so.2: $(dapl_o) $(rdmacm_o) $(util_o) $(soft_o) dapl/dapl.map $(B)/lib/libdat2.so.2
	$(call say,LD,$@)
	$(Q)$(CC) $(soname) -Wl,--version-script=dapl/dapl.map -Wl,-z,nodelete -o $@ \
		$(filter %.o,$^) -L$(B)/lib -ldat2 $(config)

# The drop-in: the same device under rdma-core's names and versions, in the same two libraries.
$(B)/gen/libibverbs.map: softverbs/dropin/libibverbs.map $(B)/gen/verbs_have.h
	$(Q)sed "s/@/$$(sed -n 's/.* VERBS_PRIVATE //p' $(B)/gen/verbs_have.h)/" $< > $@

$(B)/lib/softverbs/libibverbs.so.1: $(soft_verbs_o) $(drop_verbs_o) $(soft_util_o) $(B)/gen/libibverbs.map
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(soname) -Wl,--version-script=$(B)/gen/libibverbs.map -Wl,-z,nodelete -o $@ $(filter %.o,$^) -ldl

$(B)/lib/softverbs/libsoftverbs-fabric.so.1: $(filter-out $(ofi_o),$(plugin_o))
$(B)/lib/softverbs/libsoftverbs-fabric.so.1: private libraries = -lnettle
$(B)/lib/softverbs/libsoftverbs-ofi.so.1: $(ofi_o)
$(B)/lib/softverbs/libsoftverbs-ofi.so.1: private libraries = -lfabric
$(plugin):
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(soname) -o $@ $^ $(libraries)

$(B)/lib/softverbs/librdmacm.so.1: $(soft_cm_o) $(drop_cm_o) $(B)/obj/util/log.o softverbs/dropin/librdmacm.map \
		$(B)/lib/softverbs/libibverbs.so.1
	$(call say,LD,$@)
	$(Q)$(CC) $(soname) -Wl,--version-script=softverbs/dropin/librdmacm.map -Wl,-z,nodelete -o $@ $(filter %.o %.so.1,$^)

# A name with blanks is quoted in dat.conf(5).
$(B)/dat.conf: dat.conf $(B)/folder
	@mkdir -p $(@D)
	$(Q)folder=$$(printf '%s' "$(build)/lib/" | sed 's/[\\"]/\\&/g; s/[\\&|]/\\&/g') && \
		sed "s|libdapl[a-z]*\.so\.2|\"$$folder&\"|" $< > $@

# Removes B only if it is a build folder.
clean:
	$(Q)[ ! -e $(B)/flags ] || rm -rf $(B)

include tools/programs.mk bench/bench.mk test/test.mk test/long.mk test/vm/vm.mk packaging/install.mk packaging/package.mk

-include $(shell find $(B)/obj $(B)/one -name '*.d' 2>/dev/null)
