# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# A tarball of the source, and packages built from it with the distributions' own tools.

release := udapl-$(VERSION)
tarball := $(B)/dist/$(release).tar.gz

.PHONY: dist deb rpm check-packages

# From a clone, or from an unpacked tarball. The same files give the same bits: names are sorted, the time is that of
# the newest entry of debian/changelog, owners and modes do not depend on this machine.
sources = if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then git ls-files -z --cached --others --exclude-standard; \
          else find . -path ./build -prune -o -path './$(B)' -prune -o ! -type d -printf '%P\0'; fi
dated   = $(shell date -u -d "$$(sed -n 's/^ -- .*>  //p' packaging/debian/changelog | head -n 1)" +%s)
dist: | $(needed)
	@mkdir -p $(B)/dist
	$(call say,DIST,$(tarball))
	$(Q)$(sources) | LC_ALL=C sort -z | tar --null -T - --format=gnu --mtime=@$${SOURCE_DATE_EPOCH:-$(dated)} --owner=0 --group=0 --numeric-owner \
		--mode=u=rwX,go=rX --transform='s|^|$(release)/|' -cf - | gzip -9n > $(tarball)

# In a copy of the tarball's files, because Debian's tools search for the folder debian at its top.
deb: need-deb dist
	$(Q)rm -rf $(B)/deb && mkdir -p $(B)/deb && cp $(tarball) $(B)/deb/udapl_$(VERSION).orig.tar.gz && \
		tar -C $(B)/deb -xzf $(tarball) && cp -r packaging/debian $(B)/deb/$(release)
	$(Q)cd $(B)/deb/$(release) && env -u MAKEFLAGS -u MAKELEVEL -u WERROR DEB_BUILD_OPTIONS="parallel=$$(nproc) $$DEB_BUILD_OPTIONS" \
		dpkg-buildpackage -us -uc $(DEB_FLAGS) >../build.log 2>&1 || { tail -n 40 ../build.log; false; }
	$(Q)ls $(B)/deb/*.deb

# Where packages are not RPM packages, BuildRequires means nothing; tools/missing has looked for what is needed.
rpm: need-rpm dist
	$(Q)rm -rf $(B)/rpm && mkdir -p $(B)/rpm/SOURCES && cp $(tarball) $(B)/rpm/SOURCES
	$(Q)env -u MAKEFLAGS -u MAKELEVEL -u WERROR rpmbuild -ba --define "_topdir $(build)/rpm" \
		$$(rpm -q rpm >/dev/null 2>&1 || echo --nodeps) $(RPM_FLAGS) packaging/rpm/udapl.spec \
		>$(B)/rpm/build.log 2>&1 || { tail -n 40 $(B)/rpm/build.log; false; }
	$(Q)find $(B)/rpm/RPMS -name '*.rpm'

# In a bare Debian: installation, upgrade, downgrade, Debian's packages and back, purge. Then the same, as far as it goes without a
# distribution, of the RPM packages. Needs root and debootstrap; SHORT=1 builds once and leaves out what asks whether packages can
# be built again bit by bit.
check-packages:
	$(Q)B='$(B)' test/packages/run $(if $(SHORT),short)
	$(Q)$(if $(SHORT),:,B='$(B)' test/packages/rpm)
