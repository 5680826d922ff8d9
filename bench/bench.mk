# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Measuring: see bench/README.md.

bench := $(addprefix $(B)/bench/,limit stream verbs dat round $(if $(ofi_ok),message))
# Counted by single steps, which is valid only for code without a sanitizer.
exact := $(if $(SAN)$(COV),,$(if $(filter x86_64%,$(ARCH)),$(addprefix $(B)/bench/,exact exact-client exact-client1)))

.PHONY: bench bench-exact bench-hosts bench-lines bench-round bench-rxe

$(B)/bench/limit: $(call objs,bench/limit.c bench/limit_conn.c bench/measure.c)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ldflags) $(LDFLAGS) -o $@ $^

$(B)/bench/stream: $(call objs,bench/stream.c bench/measure.c)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ldflags) $(LDFLAGS) -o $@ $^

$(B)/bench/message: $(call objs,bench/message.c bench/measure.c)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ldflags) $(LDFLAGS) -o $@ $^ -lfabric

# Linked like any verbs program; the path leads to the drop-in.
$(B)/bench/verbs: $(call objs,bench/verbs.c bench/verbs_cm.c bench/measure.c) $(drop)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(call rpath,../lib/softverbs) -o $@ $(filter %.o,$^) $(drop)

$(B)/bench/dat: $(call objs,bench/dat.c bench/measure.c) $(libs)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(call rpath,../lib) -o $@ $(filter %.o,$^) -L$(B)/lib -ldat2

# Three minutes. ARGS='--rows wake --seconds 20': the options of bench/run.
bench: need-bench all $(bench)
	$(Q)bench/run --svg '$(B)/bench/speeds.svg' $(ARGS) $(B)

# The device between two hosts, which are network namespaces; as root.
bench-hosts: need-bench all $(bench)
	$(Q)bench/hosts --seconds 120 $(ARGS) $(B)

# DAT, ours and OFED's, beside verbs alone, in a guest with soft-RoCE (test/vm).
bench-rxe: all $(bench)
	$(Q)test/vm/rxe-run -t 3000 bench/run --rxe --seconds 900 $(ARGS) $(B)

# --- what a call costs above the device, counted by single steps (x86-64) ---------------------------

$(B)/bench/exact: $(call objs,bench/exact.c bench/exact_step.c bench/exact_text.c bench/beside.c)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ldflags) $(LDFLAGS) -o $@ $^

# The starting program chooses its libdat2.
$(B)/bench/exact-client: $(call objs,bench/exact_client.c bench/exact_pair.c) $(B)/lib/libdat2.so.2
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ldflags) $(LDFLAGS) -o $@ $(filter %.o,$^) -L$(B)/lib -ldat2

# The same for libdat.so.1 and DAT 1.2.
$(B)/bench/exact-client1: $(patsubst %.c,$(B)/one/%.o,bench/exact_client.c bench/exact_pair.c) $(libdat) $(B)/lib/libdat2.so.2
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ldflags) $(LDFLAGS) -o $@ $(filter %.o,$^) -L$(B)/lib -ldat -Wl,-rpath-link,$(B)/lib

bench-exact: all $(exact)
	$(Q)$(B)/bench/exact $(if $(REPORT),--report)

# --- what a round of posts and polls costs in the device itself, counted by callgrind ----------------

$(B)/bench/round: $(call objs,bench/round.c) $(drop)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(call rpath,../lib/softverbs) -o $@ $(filter %.o,$^) $(drop)

bench-round: $(B)/bench/round
	$(Q)for kind in rq srq; do \
		valgrind -q --tool=callgrind --callgrind-out-file=$(B)/bench/round.$$kind --toggle-collect=round_once $(B)/bench/round 1000 $$kind && \
		awk -v kind=$$kind '/^totals:/ { printf "%-4s %d instructions a round\n", kind, $$2 / 1000 }' $(B)/bench/round.$$kind || exit; \
	done

# --- the cache lines of a connection that a message touches, traced by lackey ------------------------

bench-lines: all $(bench)
	$(Q)bench/lines.py $(if $(REPORT),--report) $(B)
