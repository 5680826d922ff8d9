# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Measuring: see bench/README.md.

bench     := $(addprefix $(B)/bench/,gate $(patsubst bench/limit_%.c,limit-%,$(wildcard bench/limit_*.c)) verbs dat event \
	$(if $(wildcard /usr/include/rdma/fi_rma.h),fi-rma))
# Counts by single steps; means something only of code without a sanitizer.
exact     := $(if $(SAN)$(COV),,$(if $(filter x86_64%,$(ARCH)),$(addprefix $(B)/bench/,exact exact-client)))
# The same, timed over a device that does nothing.
layer     := $(if $(SAN)$(COV),,$(addprefix $(B)/bench/,layer layer-client layer-stub.so conn-stub.so))

.PHONY: bench bench-programs

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
	$(Q)DAT_OVERRIDE="$(build)/dat.conf" $(B)/bench/event

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
