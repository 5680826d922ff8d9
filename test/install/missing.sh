#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# `make bench`, `deb`, `html` and `rpm` on a machine that lacks a program or a header: one line names the packages, and
# nothing is made. The machine is a folder of programs, some of which this test makes.
. test/blackbox/lib.sh
case ${SAN:-} in ?*) skip 'once is enough' ;; esac
unset MAKEFLAGS MAKELEVEL MFLAGS MAKEOVERRIDES
export HIDDEN='' RPMS='' UNMET='' LC_ALL=C
machine=${tmp:?}/machine own=$tmp/own

mkdir "$own"
# own NAME: standard input is a program of the machine.
own() {
	cat >"$own/$1" && chmod 755 "$own/$1"
}
for name in apt-get dpkg-buildpackage mandoc python3 rpmbuild; do
	printf '#!/bin/sh\nexit 1\n' | own $name
done
own dpkg-checkbuilddeps <<'PROGRAM'
#!/bin/sh
[ -z "$UNMET" ] || { echo "dpkg-checkbuilddeps: error: Unmet build dependencies: $UNMET" >&2; exit 1; }
PROGRAM
own rpm <<'PROGRAM'
#!/bin/sh
for name; do :; done
case " $RPMS " in *" $name "*) ;; *) exit 1 ;; esac
PROGRAM
own rpmspec <<'PROGRAM'
#!/bin/sh
printf '%s\n' gcc libconfig-devel 'libfabric-devel >= 1.17'
PROGRAM
# A compiler that has each header but one.
own cc <<'PROGRAM'
#!/bin/sh
case " $* " in
*" -include $HIDDEN "*) exit 1 ;;
*' -E -include '*) exit 0 ;;
esac
exec /usr/bin/cc "$@"
PROGRAM

# without NAME...: the machine has all programs but these.
without() {
	rm -rf "$machine"
	mkdir "$machine"
	cp "$own"/* "$machine"
	for folder in $(echo "$PATH" | tr : ' '); do
		ln -s "$folder"/* "$machine" 2>/dev/null
	done
	for name; do rm "$machine/$name"; done
}

# says_only GOAL LINE: make prints the line and its own error, and compiles and packs nothing.
says_only() {
	PATH=$machine timeout -k 2 60 make "$1" CC=cc B="$tmp/products" >"$tmp/said" 2>&1 && fail "make $1 succeeds: $2"
	[ "$(grep -v '^make: \*\*\* .* Error 1$' "$tmp/said")" = "make $1: packages are missing$2" ] || fail "make $1 does not say$2"
	[ "$(wc -l <"$tmp/said")" -eq 2 ] || fail "make $1 says more than a line"
	for folder in obj lib dist "$1"; do
		[ ! -e "$tmp/products/$folder" ] || fail "make $1 makes something before it fails"
	done
}

# looks GOAL [FLAGS]: nothing is missing, and nothing is said.
looks() {
	PATH=$machine FLAGS=${2:-} tools/missing "$1" >"$tmp/said" 2>&1 && [ ! -s "$tmp/said" ] || fail "missing $*"
}
install='; as root: apt-get install -y --no-install-recommends'

without
for goal in bench deb html rpm; do looks $goal; done
HIDDEN=libconfig.h
says_only bench "$install libconfig-dev"
HIDDEN=nettle/hmac.h
says_only rpm "$install nettle-dev"
HIDDEN=
UNMET='build-essential:native debhelper-compat (= 13) libfabric-dev (>= 1.17) | libofi-dev nettle-dev'
says_only deb "$install build-essential debhelper libfabric-dev nettle-dev"
looks deb ' -b -d'
UNMET=

without mandoc python3
says_only html "$install mandoc python3"
says_only bench "$install python3"
without dpkg-buildpackage rpmbuild
says_only deb "$install dpkg-dev"
says_only rpm "$install rpm"

# Where packages are RPM packages.
without apt-get
RPMS='rpm gcc libfabric-devel'
says_only rpm ': libconfig-devel'
looks rpm --nodeps

echo 'bench, deb, html and rpm name what the machine lacks, and make nothing'
