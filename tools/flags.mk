# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# The flags of compiler and linker: warnings, hardening, sanitizers, coverage, the checks of locks.

# The sanitizers find the same without most of the optimizer and say where with line tables alone; the rest would take half
# of the compiler's time.
CFLAGS ?= $(if $(SAN),-O1 -g1,-O2 -g)
# Hardening finds an overrun of a buffer before it does harm. The files of `unguarded` have no buffer, or one whose bound is
# checked before it is filled, and the guard would cost a call five instructions.
hardened  := $(if $(SAN)$(COV),,-fstack-protector-strong $(if $(findstring _FORTIFY_SOURCE,$(CPPFLAGS) $(CFLAGS))$(findstring -O0,$(CFLAGS)),,\
             -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))
unguarded := dat/common/api_ext.c dat/common/ia_handle.c dapl/udapl/ia/ext_table.c dapl/udapl/post/post.c dapl/udapl/evd/arm.c dapl/openib/cq.c \
             dat/one/event.c dat/one/post.c
# Suites are compiled without the optimizer: it would take two thirds of the time of a build, and what they test is
# optimized. What a file adds to the flags of all comes last (`late`), after those of a distribution, which
# ask for the guard, too.
in_suites := -O0 -U_FORTIFY_SOURCE
late      :=
warn   := -Wall -Wextra -Wmissing-prototypes -Wstrict-prototypes -Wshadow -Wpointer-arith -Wwrite-strings -Wvla
# At that level, and beside the sanitizers' own code, gcc sees uses of uninitialized variables where there are none.
unsure := $(if $(SAN),$(if $(findstring clang,$(CC)),,-Wno-maybe-uninitialized))
# clang 21 warns of a DAT_PROVIDER_ATTR that a query is to fill in, because one of its members is const.
unsure += $(if $(findstring clang,$(CC)),-Wno-unknown-warning-option -Wno-default-const-init-field-unsafe)
# Straight code is not vectorised: two stores are cheaper than building a vector from two registers.
cflags := -std=gnu11 -fPIC -fvisibility=hidden -fno-tree-slp-vectorize -pthread $(warn) $(unsure) $(if $(WERROR),-Werror) \
          $(hardened) \
          $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer) \
          $(if $(findstring undefined,$(SAN)),-fno-sanitize-recover=undefined)
# gcc defines these under a sanitizer by itself, clang does not.
under_san := $(if $(findstring clang,$(CC)),$(if $(findstring thread,$(SAN)),-D__SANITIZE_THREAD__) \
             $(if $(findstring address,$(SAN)),-D__SANITIZE_ADDRESS__))
# The order of locks is checked (util/lock_check.h) for debugging and under the thread sanitizer.
checked  := $(if $(DEBUG)$(findstring thread,$(SAN)),1)
cppflags := -D_GNU_SOURCE $(if $(checked),-DLOCK_CHECK) -DSYSCONFDIR='"$(SYSCONFDIR)"' -I. -I$(B)/gen -Idat/include $(under_san)
# As with gcc, programs and libraries share one runtime of the address sanitizer, which other makers' programs can preload.
shared_asan := $(if $(findstring address,$(SAN)),$(if $(findstring clang,$(CC)),-shared-libasan \
	-Wl$(comma)-rpath$(comma)$(dir $(shell $(CC) -print-file-name=libclang_rt.asan-$(firstword $(subst -, ,$(ARCH))).so))))
ldflags := -pthread $(if $(COV),--coverage) $(if $(SAN),-fsanitize=$(SAN) $(shared_asan),-Wl$(comma)-z$(comma)defs) \
           -Wl,-z,relro -Wl,-z,now -Wl,--as-needed
