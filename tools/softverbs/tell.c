/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* What softverbs-run tells of the device without a command: its settings, and whether another host can be
 * reached. */
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "softverbs/attend.h"
#include "softverbs/base/settings.h"
#include "softverbs/fabric/fabric.h"
#include "util/log.h"

/* ---- settings ---- */

static void origin_print(const struct sv_setting_shown *shown)
{
	if (shown->variable)
		puts("environment");
	else if (shown->file)
		printf("%s:%u\n", shown->file, shown->line);
	else
		puts("default");
}

static int tell_settings(void)
{
	struct sv_setting_shown shown;

	for (int which = 0; which < SV_SETTINGS; which++) {
		sv_setting_show((enum sv_setting)which, &shown);
		printf("%-24s %-20s ", shown.name, *shown.value ? shown.value : "-");
		origin_print(&shown);
	}
	return ferror(stdout) || fflush(stdout) ? 1 : 0;
}

/* ---- check ---- */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t known;
	bool done;
	int error;
} check = { .lock = PTHREAD_MUTEX_INITIALIZER, .known = PTHREAD_COND_INITIALIZER };

static void check_found(uint32_t cookie, struct sv_peer *peer, int error)
{
	(void)cookie;
	(void)peer; /* a check finds none */
	pthread_mutex_lock(&check.lock);
	check.done = true;
	check.error = error;
	pthread_cond_signal(&check.known);
	pthread_mutex_unlock(&check.lock);
}

static int check_run(const struct sv_ip *host)
{
	int error = sv_fabric_check(host, 0, check_found);

	if (error)
		return error;
	pthread_mutex_lock(&check.lock);
	while (!check.done)
		pthread_cond_wait(&check.known, &check.lock);
	error = check.error;
	pthread_mutex_unlock(&check.lock);
	return error;
}

static const char *hindrance(int error)
{
	switch (error) {
	case ECONNREFUSED:
		return "no process there listens on the port: none with SOFTVERBS_FABRIC runs, or "
		       "it "
		       "has another SOFTVERBS_FABRIC_PORT";
	case EACCES: return "it has another key (SOFTVERBS_FABRIC_KEY)";
	case EPROTO: return "another version of softverbs, or another program, listens on the port";
	case EPROTONOSUPPORT: return "it has another SOFTVERBS_FABRIC, see the line above";
	case ETIMEDOUT:
		return "no answer: the host is down, or a firewall drops what goes to the port";
	case ENETUNREACH:
	case EHOSTUNREACH: return "no route to the host";
	case EBUSY: return "the process there has no memory or descriptor left";
	default: return strerror(error);
	}
}

static int tell_check(const char *name)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list;
	unsigned long port = sv_setting(SV_SET_FABRIC_PORT);
	int error = getaddrinfo(name, NULL, &hints, &list);
	struct sv_ip host;
	char text[64];
	uint16_t none;

	if (error) {
		fprintf(stderr, "softverbs-run: %s: %s\n", name, gai_strerror(error));
		return 1;
	}
	sv_ip_from_sockaddr(&host, &none, list->ai_addr);
	sv_ip_show(&host, text);
	freeaddrinfo(list);
	if (!sv_fabric_wish()) {
		fputs("softverbs-run: SOFTVERBS_FABRIC is off: no other host can be reached\n",
		      stderr);
		return 1;
	}
	error = sv_runtime_hold(&sv_data_client);
	if (error) {
		fprintf(stderr, "softverbs-run: the device: %s\n", strerror(error));
		return 1;
	}
	if (!sv_fabric_is_on()) /* the log has the reason */
		error = ENODEV;
	else if ((error = check_run(&host)))
		fprintf(stderr, "softverbs-run: %s, port %lu: %s\n", text, port, hindrance(error));
	else
		printf("%s, port %lu: reached, with the same key and version\n", text, port);
	sv_runtime_release();
	return !!error;
}

int main(int argc, char **argv)
{
	log_more(LOG_WARN);
	if (argc == 2 && !strcmp(argv[1], "--settings"))
		return tell_settings();
	if (argc == 3 && !strcmp(argv[1], "--check"))
		return tell_check(argv[2]);
	fputs("usage: softverbs-run --settings\n       softverbs-run --check HOST\n", stderr);
	return 2;
}
