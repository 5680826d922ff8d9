#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# datinfo: the entries that libdat2 sees, every attribute of an IA, the settings and their sources.
. test/blackbox/lib.sh

command -v python3 >/dev/null 2>&1 || skip 'no python3 here to read JSON with'
datinfo=$BUILD/bin/datinfo
unset DAPL_ACK_RETRY DAPL_SPIN_US DAT_DBG_TYPE DAT_DBG_DEST
export DAPL_CONF=

# run STATUS ARGUMENT...: its output is in $tmp/out, its errors in $tmp/err.
run() {
	want=$1
	shift
	"$datinfo" "$@" >"$tmp/out" 2>"$tmp/err"
	got=$?
	[ $got -eq "$want" ] || fail "datinfo $* ended with status $got, not $want"
}

# json EXPRESSION...: each expression is true of the output, which is named j.
json() {
	python3 - "$tmp/out" "$@" <<-'END' || fail "see above"
		import json, sys
		j = json.load(open(sys.argv[1]))
		entry = {e["name"]: e for e in j.get("entries", [])}
		of = lambda name: [e for e in j["entries"] if e["name"] == name]
		ia = {e["name"]: e for e in j.get("ias", [])}
		setting = {e["name"]: e for e in j.get("settings", [])}
		wrong = [x for x in sys.argv[2:] if not eval(x)]
		for x in wrong: print("not so:", x)
		sys.exit(bool(wrong))
	END
}

# --- entries ---

# Provider libraries, each with another fault.
mkdir "$tmp/so"
fault() {
	printf '#include <stdio.h>\n#include <stdlib.h>\n#include <signal.h>\nvoid dat_provider_init(void) { %s; }\n' "$2" |
		$CC -shared -fPIC -o "$tmp/so/$1.so" -x c - || fail "no compiler for $1.so"
}
fault crash 'puts("on the way"); fflush(stdout); abort()'
fault leave 'exit(3)'
fault sleep 'raise(SIGALRM)'
fault idle 'fputs("no device today\n", stderr)'
$CC -shared -fPIC -o "$tmp/so/needed.so" -Wl,-soname,needed.so -x c /dev/null
$CC -shared -fPIC -Wl,--no-as-needed -o "$tmp/so/needs.so" -x c /dev/null -x none "$tmp/so/needed.so"
rm "$tmp/so/needed.so"
soft=$BUILD/lib/libdaplsoft.so.2

cat >"$tmp/dat.conf" <<END
good     u2.0 nonthreadsafe default $soft dapl.2.0 "soft0 1" ""
absent   u2.0 nonthreadsafe default $tmp/absent.so dapl.2.0 "" ""
no-init  u2.0 nonthreadsafe default libc.so.6 dapl.2.0 "a \\"b\\" \\\\" ""
broken   u2.0
two      u2.0 nonthreadsafe default $tmp/absent.so dapl.2.0 "first" ""
two      u2.0 nonthreadsafe default $soft dapl.2.0 "soft0 1" ""
two      u2.0 nonthreadsafe default $soft dapl.2.0 "nowhere 1" ""
other    u1.2 threadsafe default $soft dapl.2.0 "nowhere 1" ""
old      u1.2 nonthreadsafe default $soft dapl.1.2 "soft0 1" ""
safe     u2.0 threadsafe default $soft dapl.2.0 "soft0 1" ""
good     u2.0 threadsafe default $soft dapl.2.0 "soft0 1" ""
kernel   k2.0 nonthreadsafe default $soft dapl.2.0 "soft0 1" ""
spare    u2.0 nonthreadsafe nondefault $soft dapl.2.0 "soft0 1" ""
port     u2.0 nonthreadsafe default $soft dapl.2.0 "soft0 2" ""
nowhere  u2.0 nonthreadsafe default $soft dapl.2.0 "no.such.name.invalid 0" ""
crash    u2.0 nonthreadsafe default $tmp/so/crash.so dapl.2.0 "" ""
leave    u2.0 nonthreadsafe default $tmp/so/leave.so dapl.2.0 "" ""
sleep    u2.0 nonthreadsafe default $tmp/so/sleep.so dapl.2.0 "" ""
idle     u2.0 nonthreadsafe default $tmp/so/idle.so dapl.2.0 "" ""
idler    u2.0 nonthreadsafe default $tmp/so/idle.so dapl.2.0 "" ""
idler    u2.0 nonthreadsafe default $soft dapl.2.0 "soft0 1" ""
needs    u2.0 nonthreadsafe default $tmp/so/needs.so dapl.2.0 "" ""
mlx4     u2.0 nonthreadsafe default libdaplomcm.so.2 dapl.2.0 "mlx4_0 1" ""
END
printf 'odd\001\377\342\202\254 u2.0 nonthreadsafe default lib dapl.2.0 "" ""\n' >>"$tmp/dat.conf"
export DAT_OVERRIDE="$tmp/dat.conf"

run 0 -j
json 'j["dat_conf"] == "'"$tmp"'/dat.conf" and j["libdat2"].endswith("/libdat2.so.2")' \
	'[e["name"] for e in j["entries"]] == "good absent no-init two two two other old safe good kernel spare port \
		nowhere crash leave sleep idle idler idler needs mlx4".split() + ["odd\1\ufffd\u20ac"]' \
	'all(set(e) >= {"reason", "cure"} for e in j["entries"] if e["used"] and e["status"] != "DAT_SUCCESS")' \
	'not any("cure" in e for e in j["entries"] if e.get("status") == "DAT_SUCCESS")'
# The entries that programs can open.
json '[e["status"] for e in of("good")if e["used"]] == ["DAT_SUCCESS"] and of("good")[0]["device"] == "soft0"' \
	'of("good")[0]["rdma"].startswith("loads and stores in shared memory; copies in private memory")' \
	'of("good")[0]["library_file"].endswith("/libdaplsoft.so.2") and of("good")[0]["address"] == "127.0.0.1"' \
	'of("good")[1]["used"] == False and "u2.0 nonthreadsafe" in of("good")[1]["reason"]' \
	'entry["safe"]["used"] and entry["safe"]["status"] == "DAT_SUCCESS"' \
	'[e["used"] for e in of("two")] == [False, True, False] and [e["fallback"] for e in of("two")] == [False, True, True]' \
	'of("two")[1]["status"] == "DAT_SUCCESS" and "No such file" in of("two")[0]["reason"]' \
	'"status" not in of("two")[2] and "above" in of("two")[2]["reason"]' \
	'[e["used"] for e in of("idler")] == [False, True] and "does not register" in of("idler")[0]["reason"]'
# The entries that programs cannot open: of DAT 1.2, of the kernel, or not the default.
json 'not entry["other"]["used"] and entry["other"]["version"] == "1.2" and entry["other"]["thread_safe"]' \
	'not entry["old"]["used"] and "status" not in entry["old"] and "DAT 1.2" in entry["old"]["reason"]' \
	'not entry["kernel"]["used"] and "kernel" in entry["kernel"]["reason"]' \
	'not entry["spare"]["used"] and "nondefault" in entry["spare"]["reason"]'
# The reason why an entry fails, and its remedy.
json '"No such file" in entry["absent"]["reason"] and "library_file" not in entry["absent"]' \
	'(entry["absent"]["status"], entry["absent"]["detail"]) == ("DAT_PROVIDER_NOT_FOUND", "DAT_NAME_NOT_REGISTERED")' \
	'"correct the path" in entry["absent"]["cure"] and "'"$tmp"'/dat.conf" in entry["absent"]["cure"]' \
	'"dat_provider_init" in entry["no-init"]["reason"] and "libdaplofa.so.2" in entry["no-init"]["cure"]' \
	'entry["no-init"]["parameters"] == "a \"b\" \\"' \
	'entry["port"]["reason"] == "soft0 has no port 2: its only port is 1" and "soft0 1" in entry["port"]["cure"]' \
	'entry["port"]["status"] == "DAT_INVALID_ADDRESS" and "messages" not in entry["port"]' \
	'"no.such.name.invalid" in entry["nowhere"]["reason"]' \
	'entry["crash"]["status"] == "none" and "crash" in entry["crash"]["reason"]' \
	'entry["crash"]["messages"] == ["on the way"]' \
	'"end the process" in entry["leave"]["reason"] and "60 seconds" in entry["sleep"]["reason"]' \
	'"did not register" in entry["idle"]["reason"] and entry["idle"]["messages"] == ["no device today"]' \
	'"needed.so" in entry["needs"]["reason"] and "install the package with needed.so" in entry["needs"]["cure"]' \
	'"libdaploscm.so.2" in entry["mlx4"]["cure"]'
[ "$(grep -c 'dat.conf:4: field 3: missing' "$tmp/err")" -eq 1 ] || fail 'a bad record is not told once'
[ "$(grep -c '' "$tmp/err")" -eq 1 ] || fail 'the libraries write past the report'

# The same as text: the file, which library loads, and why another one does not.
run 0
for words in "$tmp/dat.conf" 'libdaplsoft.so.2' 'No such file' 'dat_provider_init' '127.0.0.1' 'on the way'; do
	grep -qF "$words" "$tmp/out" || fail "the text does not say $words"
done

# Of entries that fail alike the text shows two, and names the rest.
mkdir "$tmp/many"
{
	echo "good u2.0 nonthreadsafe default $soft dapl.2.0 \"soft0 1\" \"\""
	for i in 1 2 3 4 5 6; do echo "nohow$i u2.0 nonthreadsafe default $soft dapl.2.0 \"no.such$i.invalid 0\" \"\""; done
} >"$tmp/many/dat.conf"
DAT_OVERRIDE="$tmp/many/dat.conf" run 0
grep -q '^alike: *4 more with .*: nohow3 nohow4 nohow5 nohow6$' "$tmp/out" && [ "$(grep -c '^nohow' "$tmp/out")" -eq 2 ] ||
	fail 'entries that fail alike are not told together'
DAT_OVERRIDE="$tmp/many/dat.conf" run 0 -j
json 'len(j["entries"]) == 7 and "alike" not in j'

# Only datinfo's own search path has this library: datinfo would find it, but programs do not.
mkdir "$tmp/bin" "$tmp/lib"
cp "$datinfo" "$tmp/bin" && cp "$BUILD/lib/libdat2.so.2" "$tmp/lib" && cp "$soft" "$tmp/lib/libdapl-hidden.so"
cp "$tmp/dat.conf" "$tmp/usual.conf"
cat >"$tmp/dat.conf" <<END
hidden u2.0 nonthreadsafe default libdapl-hidden.so dapl.2.0 "soft0 1" ""
first  u2.0 nonthreadsafe default $tmp/lib/libdapl-hidden.so dapl.2.0 "soft0 1" ""
again  u2.0 nonthreadsafe default libdapl-hidden.so dapl.2.0 "soft0 1" ""
END
env -u LD_LIBRARY_PATH "$tmp/bin/datinfo" -j >"$tmp/out" || fail 'datinfo does not run elsewhere'
json 'j["libdat2"] == "'"$tmp"'/lib/libdat2.so.2"' \
	'entry["first"]["status"] == "DAT_SUCCESS"' \
	'entry["hidden"]["status"] == entry["again"]["status"] == "DAT_PROVIDER_NOT_FOUND"' \
	'"cannot open shared object file" in entry["hidden"]["reason"] and "ldconfig" in entry["hidden"]["cure"]'
env -u LD_LIBRARY_PATH "$tmp/bin/datinfo" hidden >"$tmp/out" 2>/dev/null && fail 'datinfo opens what programs cannot'
mv "$tmp/usual.conf" "$tmp/dat.conf"

# A dat.conf or a library that this user may not read: the reason, and what helps.
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null 2>&1; then
	chmod a+rx "$tmp" "$tmp/so"
	cp "$tmp/dat.conf" "$tmp/closed.conf" && cp "$soft" "$tmp/so/closed.so" && chmod 600 "$tmp/closed.conf" "$tmp/so/closed.so"
	echo "closed u2.0 nonthreadsafe default $tmp/so/closed.so dapl.2.0 \"soft0 1\" \"\"" >"$tmp/open.conf"
	cp "$datinfo" "$BUILD/lib/libdat2.so.2" "$tmp/so"
	user='setpriv --reuid=65534 --regid=65534 --clear-groups'
	LD_LIBRARY_PATH="$tmp/so" DAT_OVERRIDE="$tmp/closed.conf" $user "$tmp/so/datinfo" -j >"$tmp/out" 2>"$tmp/err" &&
		fail 'success without a dat.conf'
	json '"Permission denied" in j["reason"] and "let this user read" in j["cure"]'
	LD_LIBRARY_PATH="$tmp/so" DAT_OVERRIDE="$tmp/open.conf" $user "$tmp/so/datinfo" -j >"$tmp/out" 2>"$tmp/err" ||
		fail 'no success with a dat.conf'
	json '"Permission denied" in entry["closed"]["reason"] and entry["closed"]["cure"].startswith("let this user read")'
fi
DAT_OVERRIDE="$tmp/nowhere.conf" run 1 -j
json '"No such file" in j["reason"] and "DAT_OVERRIDE" in j["cure"]'

# Diagnostics that are redirected elsewhere are still shown.
export DAT_DBG_TYPE=0 DAT_DBG_DEST=2 DAPL_DBG_TYPE=0 DAPL_DBG_DEST=2
run 0 -j
json '"has no port 2" in entry["port"]["reason"] and "did not register" in entry["idle"]["reason"]'
unset DAT_DBG_TYPE DAT_DBG_DEST DAPL_DBG_TYPE DAPL_DBG_DEST

# Each long option does the same as the short one.
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

# datinfo reads the same file and entries as libdat2, wherever libdat2 finds them.
for override in "$DAT_OVERRIDE" "$BUILD/dat.conf" "$tmp/absent" "$tmp" none; do
	if [ "$override" = none ]; then unset DAT_OVERRIDE; else export DAT_OVERRIDE="$override"; fi
	case $override in "$tmp/absent" | "$tmp") run 1 -jn ;; *) run 0 -jn ;; esac
	json '"status" not in str(j) and "library_file" not in str(j)'
	cp "$tmp/out" "$tmp/list"
	DAT_DBG_TYPE=5 "$datinfo" -j no-such-name >"$tmp/libdat2" 2>/dev/null
	python3 - "$tmp/list" "$tmp/libdat2" <<-'END' || fail "not what libdat2 reads with DAT_OVERRIDE=$override"
		import json, re, sys
		j = json.load(open(sys.argv[1]))
		ia = json.load(open(sys.argv[2]))["ias"][0]
		log = "".join(line + "\n" for line in ia.get("messages", []) + ["libdat2: " + ia["reason"]])
		files = re.findall("^libdat2: reading (.*)$", log, re.M)
		names = re.findall(r"^libdat2: (.*?) \d+\.\d+ (?:non)?threadsafe: ", log, re.M)
		files = ["(built-in dat.conf)"] if "using the built-in entries" in log else files
		printable = lambda name: re.sub("[^ -~]", "", name)
		sys.exit(not (files == [j["dat_conf"]] * len(files) and bool(files) == bool(j["dat_conf"]) and
			      [printable(n) for n in names] == [printable(e["name"]) for e in j["entries"]
				if "for the kernel" not in e.get("reason", "") and "nondefault" not in e.get("reason", "")]))
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

# members STRUCT: the members of the public header without the lengths of arrays, which JSON does not need.
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
grep -q absent.so "$tmp/out" || fail 'libdat2 does not tell why the first library is not used'
run 0 -aj
json 'len(j["ias"]) == len(ia) == 17 and ia["good"]["ia"] and ia["two"]["ia"] and "ia" not in ia["absent"]' \
	'"crash" in ia["crash"]["reason"] and "has it for DAT 1.2" in ia["old"]["reason"]'
run 1 -j good absent no-such-name old
json '[e["status"] for e in j["ias"]] == ["DAT_SUCCESS"] + ["DAT_PROVIDER_NOT_FOUND"] * 3' \
	'ia["old"]["detail"] == "DAT_MAJOR_NOT_FOUND" and "u2.0" in ia["old"]["cure"]' \
	'"'"$tmp"'/dat.conf has good, absent, " in ia["no-such-name"]["reason"] and ia["no-such-name"]["cure"]'
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
run 1 -s nosuch
grep -q '^datinfo: nosuch is unknown' "$tmp/err" && grep -q '^spin_us ' "$tmp/out" || fail 'nothing is said of an unknown name'
run 0 -s good
run 0 -s soft0
grep -q "^spin_us  *5  *DAPL_SPIN_US  *$DAPL_CONF:4\$" "$tmp/out" || fail 'no line for spin_us'

# The provider reads the same file, and reports the same errors once.
run 0 good
[ "$(grep -c "$DAPL_CONF:3: rnr_retry: 9 is not" "$tmp/out")" -eq 1 ] || fail 'the provider does not read dapl.conf'

# OFED's file as its package has it, where that is installed: each record is read, and no line is reported.
ofed=
if dpkg-query -S /etc/dat.conf 2>/dev/null | grep -q '^libdapl2'; then
	records=$(grep -c '^[^#[:space:]]' /etc/dat.conf)
	export DAT_OVERRIDE=/etc/dat.conf
	run 0 -jn
	[ ! -s "$tmp/err" ] || fail "lines of OFED's dat.conf are refused"
	json "len(j['entries']) == $records and entry['ofa-v2-ib0']['library'] == 'libdaplofa.so.2'"
	ofed=" $records records of OFED's dat.conf;"
fi

echo "entries, attributes, settings;$ofed JSON read by $(python3 --version 2>&1)"
