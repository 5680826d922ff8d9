#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# datinfo: the entries that libdat2 sees, every attribute of an IA, the settings and where they come from.
. test/blackbox/lib.sh

command -v python3 >/dev/null 2>&1 || skip 'no python3 here to read JSON with'
datinfo=$BUILD/bin/datinfo
unset DAPL_ACK_RETRY DAPL_SPIN_US DAT_DBG_TYPE DAT_DBG_DEST
export DAPL_CONF=

# run STATUS ARGUMENT...: output in $tmp/out, complaints in $tmp/err.
run() {
	want=$1
	shift
	"$datinfo" "$@" >"$tmp/out" 2>"$tmp/err"
	got=$?
	[ $got -eq "$want" ] || fail "datinfo $* ended with status $got, not $want"
}

# json EXPRESSION...: each must be true of the output, as j.
json() {
	python3 - "$tmp/out" "$@" <<-'END' || fail "see above"
		import json, sys
		j = json.load(open(sys.argv[1]))
		entry = {e["name"]: e for e in j.get("entries", [])}
		ia = {e["name"]: e for e in j.get("ias", [])}
		setting = {e["name"]: e for e in j.get("settings", [])}
		wrong = [x for x in sys.argv[2:] if not eval(x)]
		for x in wrong: print("not so:", x)
		sys.exit(bool(wrong))
	END
}

# --- entries ---

cat >"$tmp/dat.conf" <<END
good     u2.0 nonthreadsafe default $BUILD/lib/libdaplsoft.so.2 dapl.2.0 "soft0 1" ""
absent   u2.0 nonthreadsafe default $tmp/absent.so dapl.2.0 "" ""
no-init  u2.0 nonthreadsafe default libc.so.6 dapl.2.0 "a \\"b\\" \\\\" ""
broken   u2.0
two      u2.0 nonthreadsafe default $tmp/absent.so dapl.2.0 "first" ""
two      u2.0 nonthreadsafe default $BUILD/lib/libdaplsoft.so.2 dapl.2.0 "soft0 1" ""
other    u1.2 threadsafe default $BUILD/lib/libdaplsoft.so.2 dapl.2.0 "nowhere 1" ""
END
printf 'odd\001\377\342\202\254 u2.0 nonthreadsafe default lib dapl.2.0 "" ""\n' >>"$tmp/dat.conf"
export DAT_OVERRIDE="$tmp/dat.conf"

run 0 -j
json 'j["dat_conf"] == "'"$tmp"'/dat.conf"' \
	'[e["name"] for e in j["entries"]] == ["good", "absent", "no-init", "two", "two", "other", "odd\1\ufffd\u20ac"]' \
	'entry["good"]["status"] == "DAT_SUCCESS" and entry["good"]["device"] == "soft0"' \
	'entry["good"]["library_file"].endswith("/libdaplsoft.so.2") and "library_error" not in entry["good"]' \
	'entry["good"]["address"] == "127.0.0.1"' \
	'"No such file" in entry["absent"]["library_error"] and "library_file" not in entry["absent"]' \
	'(entry["absent"]["status"], entry["absent"]["detail"]) == ("DAT_PROVIDER_NOT_FOUND", "DAT_NAME_NOT_REGISTERED")' \
	'"dat_provider_init" in entry["no-init"]["library_error"] and entry["no-init"]["status"] != "DAT_SUCCESS"' \
	'entry["no-init"]["parameters"] == "a \"b\" \\"' \
	'[(e["fallback"], "status" in e) for e in j["entries"] if e["name"] == "two"] == [(False, True), (True, False)]' \
	'j["entries"][3]["name"] == "two" and j["entries"][3]["status"] == "DAT_SUCCESS"' \
	'entry["other"]["version"] == "1.2" and entry["other"]["thread_safe"] and entry["other"]["status"] != "DAT_SUCCESS"'
[ "$(grep -c 'dat.conf:4: field 3: missing' "$tmp/err")" -eq 1 ] || fail 'a bad record is not told once'

# The same to read: the file, what loads, and why another one does not.
run 0
for words in "$tmp/dat.conf" 'libdaplsoft.so.2' 'No such file' 'dat_provider_init' '127.0.0.1'; do
	grep -qF "$words" "$tmp/out" || fail "the text does not say $words"
done

# Each long option is the short one.
alike() {
	"$datinfo" $1 >"$tmp/short" 2>/dev/null
	"$datinfo" $2 >"$tmp/long" 2>/dev/null
	[ -s "$tmp/long" ] && cmp -s "$tmp/short" "$tmp/long" || fail "$2 is not $1"
	case $2 in *--json*) python3 -m json.tool "$tmp/long" /dev/null || fail "$2: not JSON" ;; esac
}
alike -j --json
alike -jn '--json --no-open'
alike -aj '--all --json'
alike '-j good' '--json good'
alike -s --settings
alike -sj '--settings --json'
alike -h --help

# The same file and entries as libdat2 itself, wherever it finds them.
for override in "$DAT_OVERRIDE" "$BUILD/dat.conf" "$tmp/absent" "$tmp" none; do
	if [ "$override" = none ]; then unset DAT_OVERRIDE; else export DAT_OVERRIDE="$override"; fi
	run 0 -jn
	json '"status" not in str(j) and "library_file" not in str(j)'
	cp "$tmp/out" "$tmp/list"
	DAT_DBG_TYPE=4 DAT_DBG_DEST=1 "$datinfo" no-such-name >"$tmp/libdat2" 2>/dev/null
	python3 - "$tmp/list" "$tmp/libdat2" <<-'END' || fail "not what libdat2 reads with DAT_OVERRIDE=$override"
		import json, re, sys
		j = json.load(open(sys.argv[1]))
		log = open(sys.argv[2], errors="replace").read()
		files = re.findall("^libdat2: reading (.*)$", log, re.M)
		names = re.findall(r"^libdat2: (.*?) \d+\.\d+ (?:non)?threadsafe: ", log, re.M)
		files = ["(built-in dat.conf)"] if "using the built-in entries" in log else files
		printable = lambda name: re.sub("[^ -~]", "", name)
		sys.exit(not (files == [j["dat_conf"]] * len(files) and bool(files) == bool(j["dat_conf"]) and
			      [printable(n) for n in names] == [printable(e["name"]) for e in j["entries"]]))
	END
done

# --- attributes ---

export DAT_OVERRIDE="$tmp/dat.conf"
run 0 -j good
json '[e["name"] for e in j["ias"]] == ["good"] and ia["good"]["status"] == "DAT_SUCCESS"' \
	'ia["good"]["ia"]["adapter_name"] == "soft0" and ia["good"]["ia"]["ia_address_ptr"] == "127.0.0.1"' \
	'ia["good"]["provider"]["provider_name"] == "good" and ia["good"]["provider"]["dapl_version_major"] == 2' \
	'ia["good"]["provider"]["provider_specific_attr"]["DAT_IB_RDMA_READ"] == "TRUE"' \
	'ia["good"]["provider"]["provider_specific_attr"]["DAT_IB_DEVICE_NAME"] == "soft0"' \
	'"DTO" in ia["good"]["provider"]["evd_stream_merging_supported"]["CONNECTION"]' \
	'0 < ia["good"]["ia"]["max_dto_per_ep"] < 2**31 and ia["good"]["ia"]["max_lmr_virtual_address"] == 2**64 - 1'

# members STRUCT: those of the public header but the lengths of arrays, which JSON does not need.
members() {
	awk -v "start=^struct $1 {" '$0 ~ start { on = 1; next } /^};/ { on = 0 } on' dat/include/dat2/udat.h |
		sed -n 's/^[^/]*[ *]\([a-z_0-9]*\)\(\[[^;]*\]\)*;.*/\1/p' | grep -v '^num_.*_attr$'
}
for part in ia provider; do
	json 'sorted(ia["good"]["'$part'"]) == sorted("'"$(members dat_${part}_attr | tr '\n' ' ')"'".split())' \
		'len(ia["good"]["'$part'"]) > 25'
done

run 0 good
for line in '^good$' '^        adapter_name: *soft0$' '^            DAT_IB_DEVICE_NAME: *soft0$'; do
	grep -q "$line" "$tmp/out" || fail "no line like $line"
done
run 0 two
grep -q absent.so "$tmp/err" || fail 'libdat2 does not tell why the first library is not used'
run 0 -aj
json 'len(j["ias"]) == 6 and ia["good"]["ia"] and ia["two"]["ia"] and "ia" not in ia["absent"]'
run 1 -j good absent no-such-name
json '[e["status"] for e in j["ias"]] == ["DAT_SUCCESS", "DAT_PROVIDER_NOT_FOUND", "DAT_PROVIDER_NOT_FOUND"]'
run 1 "$(printf '%256s' x)"
for arguments in '-x' '-n good' '-a good' '-an' '-s a b'; do
	# shellcheck disable=SC2086
	run 2 $arguments
	[ ! -s "$tmp/out" ] || fail "datinfo $arguments: usage on standard output"
done
run 0 --help
"$datinfo" >/dev/full 2>/dev/null && fail 'a full disk is no failure'

# --- settings ---

cat >"$tmp/dapl.conf" <<'END'
defaults = { ack_retry = 3;
             spin_us = 4; nosuch = 1;
             rnr_retry = 9; };
devices = ( { name = "soft0"; spin_us = 5; ack_retry = 2; } );
END
run 0 -sj
json 'j["dapl_conf"] == "" and setting["ack_retry"]["value"] == 7 and setting["ack_retry"]["origin"] == "default"' \
	'len(j["settings"]) > 10 and all(s["help"] and s["allowed"] and s["environment"] for s in j["settings"])'
export DAPL_CONF="$tmp/dapl.conf" DAPL_ACK_RETRY=1
run 0 -sj
json 'j["dapl_conf"] == "'"$DAPL_CONF"'"' \
	'setting["ack_retry"]["value"] == 1 and setting["ack_retry"]["origin"] == "environment"' \
	'setting["spin_us"]["value"] == 4 and setting["spin_us"]["origin"] == "'"$DAPL_CONF"':2"' \
	'setting["rnr_retry"]["value"] == 7 and setting["rnr_retry"]["origin"] == "default"' \
	'j["devices"] == [{"name": "soft0", "origin": "'"$DAPL_CONF"':4", "ack_retry": 2, "spin_us": 5}]'
[ "$(grep -c "$DAPL_CONF:2: nosuch is not known" "$tmp/err")" -eq 1 ] || fail 'an unknown name is not told once'
[ "$(grep -c "$DAPL_CONF:3: rnr_retry: 9 is not" "$tmp/err")" -eq 1 ] || fail 'a bad value is not told once'
run 0 -sj soft0
json 'setting["spin_us"]["value"] == 5 and setting["ack_retry"]["value"] == 1'
run 0 -s soft0
grep -q "^spin_us  *5  *DAPL_SPIN_US  *$DAPL_CONF:4\$" "$tmp/out" || fail 'no line for spin_us'

# The provider reads the same file: it tells the same of it, once.
run 0 good
[ "$(grep -c "$DAPL_CONF:3: rnr_retry: 9 is not" "$tmp/err")" -eq 1 ] || fail 'the provider does not read dapl.conf'

echo "entries, attributes, settings; JSON read by $(python3 --version 2>&1)"
