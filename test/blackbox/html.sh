#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# `make html`: each link of each page works in a browser.
. test/blackbox/lib.sh
command -v mandoc >"$tmp/where" || skip 'no mandoc here (Debian: mandoc)'
command -v chromium >"$tmp/where" || skip 'no chromium here (Debian: chromium)'

echo '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"></svg>' >"$tmp/speeds.svg"
tools/html "$tmp/html" "$tmp/speeds.svg" >"$tmp/made" 2>&1 || fail 'tools/html'
# The browser runs this script, which follows each link and counts; it ends with a line in the document.
cat >"$tmp/html/follow.html" <<'END'
<!DOCTYPE html><title>follow</title><pre id="found"></pre><script>
const seen = new Map(), bad = [];
async function load(url) {
	if (!seen.has(url)) {
		const answer = await fetch(url), text = answer.ok ? await answer.text() : '';
		const isPage = url.endsWith('.html');
		seen.set(url, answer.ok ? new DOMParser().parseFromString(isPage ? text : '', 'text/html') : null);
		if (answer.ok && isPage) await follow(url, seen.get(url));
	}
	return seen.get(url);
}
async function follow(url, page) {
	for (const to of page.querySelectorAll('a[href], img[src], link[href]')) {
		const [place, id] = new URL(to.getAttribute('href') || to.getAttribute('src'), url).href.split('#');
		if (!place.startsWith(location.origin)) continue;
		const target = await load(place);
		if (!target || id && !target.getElementById(decodeURIComponent(id)))
			bad.push(url + ' -> ' + place + (id ? '#' + id : ''));
	}
}
load(location.origin + '/index.html').then(() => {
	document.getElementById('found').textContent = 'followed ' + seen.size + ' bad ' + bad.length + '\n' + bad.join('\n');
}, why => { document.getElementById('found').textContent = 'followed nothing: ' + why; });
</script>
END
start server python3 -u -m http.server --bind 127.0.0.1 --directory "$tmp/html" 8765
within 20 says server 'Serving HTTP' || fail 'no web server'
timeout -k 2 "$longest" chromium --headless --no-sandbox --disable-gpu --user-data-dir="$tmp/profile" \
	--virtual-time-budget=60000 --dump-dom http://127.0.0.1:8765/follow.html >"$tmp/dom" 2>"$tmp/chromium" || fail 'chromium'
pages=$(ls "$tmp"/html/*.html | wc -l)
found=$(sed -n 's/.*followed \([0-9]*\) bad 0$/\1/p' "$tmp/dom")
# All pages but follow.html, a style sheet and two pictures.
[ "${found:-0}" -eq $((pages - 1 + 3)) ] || fail "links that lead nowhere, or pages that no link leads to"
echo "html: $((pages - 1)) pages, each link leads somewhere"
