# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Installation. Folders: PREFIX, LIBDIR, SYSCONFDIR, and those below; DESTDIR precedes all of them. packaging/install
# lists the place of each file.

BINDIR     ?= $(PREFIX)/bin
INCLUDEDIR ?= $(PREFIX)/include
MANDIR     ?= $(PREFIX)/share/man
DOCDIR     ?= $(PREFIX)/share/doc/udapl
PKGDIR     ?= $(LIBDIR)/pkgconfig
STRIP      ?= strip
# 1: DAT 1.2 as well, libdat.so.1 and the headers <dat/...>. Distributions once had these names.
COMPAT     ?=
# 1: replaces files that belong to packages.
FORCE      ?=

.PHONY: install install-strip uninstall

# The loader searches these folders by itself: programs need no path, and dat.conf bare names.
is_system_libdir = $(filter $(LIBDIR),/lib /usr/lib /lib64 /usr/lib64 /lib/$(ARCH) /usr/lib/$(ARCH))

made := $(addprefix $(B)/install/,dat.conf dat2.pc dat.pc softverbs-run)
$(made): $(B)/libdir
$(B)/install/dat.conf: dat.conf
	@mkdir -p $(@D)
	$(Q)sed 's|libdapl[a-z]*\.so\.2|$(if $(is_system_libdir),,$(LIBDIR)/)&|' $< > $@
$(B)/install/dat2.pc $(B)/install/dat.pc: $(B)/install/%.pc: %.pc.in
	@mkdir -p $(@D)
	$(Q)sed 's|@prefix@|$(PREFIX)|; s|@includedir@|$(INCLUDEDIR)|; s|@libdir@|$(LIBDIR)|; s|@version@|$(VERSION)|' $< > $@
$(B)/install/softverbs-run: tools/softverbs-run
	@mkdir -p $(@D)
	$(Q)sed 's|@libdir@|$(LIBDIR)|' $< > $@

places = B='$(B)' VERSION='$(VERSION)' DESTDIR='$(DESTDIR)' LIBDIR='$(LIBDIR)' SYSCONFDIR='$(SYSCONFDIR)' BINDIR='$(BINDIR)' \
         INCLUDEDIR='$(INCLUDEDIR)' MANDIR='$(MANDIR)' DOCDIR='$(DOCDIR)' PKGDIR='$(PKGDIR)' STRIP='$(STRIP)' COMPAT='$(COMPAT)' \
         FORCE='$(FORCE)'

install install-strip: all $(addprefix $(B)/install/,$(tools)) $(made)
	$(Q)$(places) packaging/install $@
uninstall:
	$(Q)$(places) packaging/install $@
