#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# What ./check installs: what is missing, and never in the place of a package that is there.
. test/blackbox/lib.sh

mkdir "$tmp/bin"
cat >"$tmp/bin/dpkg-query" <<-'END'
	#!/bin/sh
	for package; do :; done
	case " $THERE " in *" $package "*) echo 'install ok installed' ;; *) exit 1 ;; esac
END
cat >"$tmp/bin/apt-get" <<-'END'
	#!/bin/sh
	echo "$*" >>"$ASKED"
END
printf '#!/bin/sh\necho 0\n' >"$tmp/bin/id"
chmod 755 "$tmp/bin"/*
export ASKED="$tmp/asked" THERE

# asks PACKAGE...: what is installed beside THERE
asks() {
	rm -f "$tmp/asked"
	PATH="$tmp/bin:$PATH" sh -c '. tools/need.sh; need "$@"' - "$@" >"$tmp/said" 2>&1 || fail "need $*"
	sed -n 's/.* install -y //p' "$tmp/asked" 2>/dev/null
}

THERE='gcc make'
[ "$(asks gcc make)" = '' ] || fail 'what is there is installed'
[ "$(asks gcc git dapl2-utils)" = '--no-remove --no-install-recommends git dapl2-utils' ] || fail 'what is missing'
THERE='gcc dapl-utils'
[ "$(asks gcc git dapl2-utils)" = '--no-remove --no-install-recommends git' ] || fail 'a package is replaced'
grep -q 'without dapl2-utils' "$tmp/said" || fail 'nothing is said of the package that is left out'

echo 'what is missing, and nothing in the place of another package'
