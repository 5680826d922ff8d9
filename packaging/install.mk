# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Installation.

.PHONY: install

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
