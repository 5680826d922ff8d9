/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Selects and reads dat.conf. */
#include <errno.h>
#include <stdlib.h>
#include "dat/common/reg.h"
#include "util/log.h"
#include "util/text_file.h"

#ifndef SYSCONFDIR
#define SYSCONFDIR "/etc"
#endif

#define CONF_FILE_MAX (16u << 20) /* an endless device must not take all memory */

/* Used if there is no dat.conf: the software device, and the first InfiniBand interface. */
static const char built_in[] =
	"ofa-v2-soft u2.0 nonthreadsafe default libdaplsoft.so.2 dapl.2.0 \"soft0 1\" \"\"\n"
	"ofa-v2-ib0 u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 \"ib0 0\" \"\"\n";

static void conf_file_parse(char *text, size_t len, const char *source,
			    const struct conf_sink *sink)
{
	if (sink->opened)
		sink->opened(sink->arg, source);
	conf_parse(text, len, source, sink);
}

static int load_file(const char *path, const struct conf_sink *sink)
{
	char *text;
	size_t len;
	int error = text_file_read(path, CONF_FILE_MAX, &text, &len);

	if (error)
		return error;
	log_at(REG_LOG_STATIC, "reading %s", path);
	conf_file_parse(text, len, path, sink);
	free(text);
	return 0;
}

static void load_built_in(const struct conf_sink *sink)
{
	char text[sizeof(built_in)];

	memcpy(text, built_in, sizeof(text));
	log_at(REG_LOG_STATIC, "no dat.conf: using the built-in entries");
	conf_file_parse(text, sizeof(text) - 1, "(built-in dat.conf)", sink);
}

void conf_load(const char *only, const char *const *places, const struct conf_sink *sink)
{
	bool exists = false;
	int error;

	if (only) {
		error = load_file(only, sink);
		if (error) {
			errno = error;
			log_at(REG_LOG_ERROR, "DAT_OVERRIDE=\"%s\": %m", only);
		}
		return;
	}
	for (; *places; places++) {
		error = load_file(*places, sink);
		if (!error)
			return;
		if (error == ENOENT || error == ENOTDIR)
			continue;
		exists = true;
		errno = error;
		log_at(REG_LOG_ERROR, "%s: %m", *places);
	}
	if (!exists)
		load_built_in(sink);
}

void conf_load_usual(const struct conf_sink *sink)
{
	static const char *const places[] = { SYSCONFDIR "/dat.conf", "/etc/dat.conf", NULL };
	bool same = !strcmp(places[0], places[1]);

	conf_load(secure_getenv("DAT_OVERRIDE"), same ? places + 1 : places, sink);
}
