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
cat >"$tmp/bin/apt-cache" <<-'END'
	#!/bin/sh
	[ -n "$LISTS" ] || grep -q update "$ASKED" 2>/dev/null || exit 0
	echo "$2:"
	case " $OFFERED " in *" $2 "*) echo '  Candidate: 1.0' ;; *) echo '  Candidate: (none)' ;; esac
END
printf '#!/bin/sh\necho "${USER_ID:-0}"\n' >"$tmp/bin/id"
chmod 755 "$tmp/bin"/*
LISTS=1 OFFERED='gcc make git dapl2-utils'
export ASKED="$tmp/asked" THERE LISTS OFFERED

# needs PACKAGE...: what need says is in $tmp/said
needs() {
	rm -f "$tmp/asked"
	PATH="$tmp/bin:$PATH" sh -c '. tools/need.sh; need "$@"' - "$@" >"$tmp/said" 2>&1
}

# asks PACKAGE...: what is installed beside THERE
asks() {
	needs "$@" || fail "need $*"
	sed -n 's/.* install -y //p' "$tmp/asked" 2>/dev/null
}

THERE='gcc make'
[ "$(asks gcc make)" = '' ] || fail 'what is there is installed'
[ "$(asks gcc git dapl2-utils)" = '--no-remove --no-install-recommends git dapl2-utils' ] || fail 'what is missing'
THERE='gcc dapl-utils'
[ "$(asks gcc git dapl2-utils)" = '--no-remove --no-install-recommends git' ] || fail 'a package is replaced'
grep -q 'without dapl2-utils' "$tmp/said" || fail 'nothing is said of the package that is left out'

THERE=gcc OFFERED='gcc make git'
for LISTS in 1 ''; do
	[ "$(asks gcc git dapl2-utils)" = '--no-remove --no-install-recommends git' ] || fail "what the release does not have, LISTS=$LISTS"
done
[ "$(LISTS=1 asks gcc dapl2-utils)" = '' ] || fail 'nothing is missing that the release has'
[ "$(LISTS=1 asks gcc libibverbs-dev)" = '--no-remove --no-install-recommends libibverbs-dev' ] ||
	fail 'what the build needs is left out'

# An ordinary user gets a command that works, whatever the release has.
export USER_ID=1000
LISTS=''
needs gcc git dapl2-utils && fail 'need is content without git'
grep -q ' --no-install-recommends git$' "$tmp/said" || fail 'the command of an ordinary user without lists'
needs gcc dapl2-utils || fail 'a package that the release may not have is insisted on'
LISTS=1 OFFERED='gcc make git dapl2-utils'
needs gcc git dapl2-utils && fail 'need is content without git and dapl2-utils'
grep -q ' --no-install-recommends git dapl2-utils$' "$tmp/said" || fail 'the command of an ordinary user'
[ ! -e "$tmp/asked" ] || fail 'an ordinary user installs'

echo 'what is missing, and nothing in the place of another package'
