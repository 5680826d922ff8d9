/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* datinfo: reports the entries of the registry, the attributes of IAs, and the settings of the providers. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tools/datinfo.h"
#include "util/log.h"

enum { EXIT_USAGE = 2 };

static const char usage_text[] =
	"usage: datinfo [-jn]            the entries of dat.conf, and whether each opens\n"
	"       datinfo [-j] NAME...     all attributes of these IAs\n"
	"       datinfo [-j] -a          all attributes of all IAs\n"
	"       datinfo [-j] -s [NAME]   the settings, for this device or IA\n"
	"\n"
	"  -a, --all        each IA of dat.conf\n"
	"  -j, --json       as JSON\n"
	"  -n, --no-open    only read dat.conf: load no library, open no IA\n"
	"  -s, --settings   the settings of the providers, with value and origin\n"
	"  -h, --help       this text\n";

struct options {
	bool all, json, no_open, settings;
};

static _Noreturn void usage(FILE *stream, int status)
{
	fputs(usage_text, stream);
	exit(status);
}

static struct options datinfo_parse(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "all", no_argument, NULL, 'a' },     { "json", no_argument, NULL, 'j' },
		{ "no-open", no_argument, NULL, 'n' }, { "settings", no_argument, NULL, 's' },
		{ "help", no_argument, NULL, 'h' },    { NULL, 0, NULL, 0 },
	};
	struct options options = { .json = false };
	int c, names;

	while ((c = getopt_long(argc, argv, "ajnsh", longs, NULL)) != -1) {
		switch (c) {
		case 'a': options.all = true; break;
		case 'j': options.json = true; break;
		case 'n': options.no_open = true; break;
		case 's': options.settings = true; break;
		case 'h': usage(stdout, EXIT_SUCCESS);
		default: usage(stderr, EXIT_USAGE);
		}
	}
	names = argc - optind;
	if (options.all + options.no_open + options.settings > 1 ||
	    (names && (options.all || options.no_open)) || (options.settings && names > 1))
		usage(stderr, EXIT_USAGE);
	return options;
}

/* Returns false if one of them does not open. */
static bool report_names(struct out *out, const struct registry *registry, char **names)
{
	bool good = true;

	for (; *names; names++) {
		if (!name_is_valid(*names)) {
			fprintf(stderr, "datinfo: no name of an IA has 256 bytes\n");
			good = false;
			continue;
		}
		if (!ia_report(out, registry, *names)) {
			fprintf(stderr, "datinfo: %s cannot be opened\n", *names);
			good = false;
		}
	}
	return good;
}

static bool report_registry(struct out *out, const struct options *options, char **names)
{
	struct registry registry;
	bool good = true;

	registry_read(&registry);
	if (!*names && !options->all) {
		good = registry_report(out, &registry, !options->no_open);
	} else {
		out_list(out, "ias");
		if (options->all)
			registry_report_ias(out, &registry);
		else
			good = report_names(out, &registry, names);
		out_list_end(out);
	}
	registry_free(&registry);
	return good;
}

/* The name of a device, or of an IA. */
static bool name_is_known(const char *name)
{
	struct registry registry;
	char path[PATH_MAX];
	bool known;

	registry_read(&registry);
	known = registry_has(&registry, name);
	registry_free(&registry);
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s", name);
	return known || !strcmp(name, "soft0") || !access(path, F_OK);
}

static bool report_settings(struct out *out, const char *name)
{
	if (settings_report(out, name) || name_is_known(name))
		return true;
	fprintf(stderr,
		"datinfo: %s is unknown to dat.conf, to dapl.conf and to this machine; these are "
		"the "
		"settings for all devices\n",
		name);
	return false;
}

int main(int argc, char **argv)
{
	struct options options = datinfo_parse(argc, argv);
	struct out out = { .stream = stdout, .json = options.json };
	bool good = true;

	log_open("datinfo", LOG_ERROR, LOG_TO_STDERR);
	out_document(&out);
	if (options.settings)
		good = report_settings(&out, argv[optind]);
	else
		good = report_registry(&out, &options, argv + optind);
	out_document_end(&out);
	if (fflush(stdout) || ferror(stdout)) {
		perror("datinfo: standard output");
		return EXIT_FAILURE;
	}
	return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
