# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# The programs: test programs, datinfo, softverbs-run, the examples of the manual; the demo, and the manual as web pages.

# Programs that share a folder: each has the parts that are named after it, and the common ones.
tool_common   := $(call objs,$(wildcard test/common/*.c))
dtest_common  := $(addprefix test/dtest/,output.c clock.c await.c channel.c)
dtest_series  := $(addprefix test/dtest/,adapter.c option.c meet.c pattern.c)
dtest_of       = $(call objs,$(dtest_common) $(dtest_series) $(wildcard test/dtest/$(1).c test/dtest/$(1)_*.c)) $(tool_common)
dtest_others  := $(wildcard test/dtest/dtestcm*.c test/dtest/dtestsrq*.c test/dtest/dtestx*.c)
dtest_o       := $(call objs,$(filter-out $(dtest_series) $(dtest_others),$(wildcard test/dtest/*.c))) $(tool_common)
dapltest_o    := $(call objs,$(wildcard test/dapltest/*.c)) $(tool_common)

rpath = -pie -Wl,-rpath,'$$ORIGIN/$(1)' $(ldflags) $(LDFLAGS)

# Each is linked once for the build folder, with the libraries beside it, and once for installation.
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

# What softverbs-run calls for --settings; it has the device inside.
$(tell): $(call objs,tools/softverbs/tell.c) $(B)/lib/libsoftverbs.a $(soft_util_o)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -pie $(ldflags) $(LDFLAGS) -o $@ $^ -ldl

# In the build folder it finds the drop-in beside itself.
$(B)/bin/softverbs-run: tools/softverbs-run
	@mkdir -p $(@D)
	$(Q)cp $< $@ && chmod 755 $@

demo: all
	$(Q)BUILD="$(build)" test/demo
# The same with existing products: another ./demo may build in this folder.
run-demo:
	$(Q)BUILD="$(build)" test/demo

# The manual as web pages, with the numbers of the last `make bench`.
html: need-html
	$(Q)tools/html '$(B)/html' '$(B)/bench/speeds.svg'
