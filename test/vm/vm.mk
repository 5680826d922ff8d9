# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Soft-RoCE in virtual machines: see CONTRIBUTING.md.

.PHONY: check-rxe

# One end of a connection between two stacks, for test/vm.
$(B)/test/wire: $(call objs,$(wildcard test/vm/wire*.c)) $(B)/lib/libdat2.so.2
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(call rpath,../lib) -o $@ $(filter %.o,$^) -L$(B)/lib -ldat2

# QUICK=1: one guest, in a few minutes. VM_RELEASE=trixie: on the kernel of that release of Debian.
check-rxe: tests
	$(Q)$(test_env) QUICK='$(QUICK)' VM_RELEASE='$(VM_RELEASE)' test/vm/check
