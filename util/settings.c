/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The settings of the provider: their table, their values, and the environment that overrides the
 * file.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "util/log.h"
#include "util/settings.h"

static const struct setting_word log_words[] = {
	{ "errors", LOG_ERROR },
	{ "warnings", LOG_WARN },
	{ "notes", LOG_NOTE },
	{ "traces", LOG_TRACE },
	{ NULL, 0 },
};

static const struct setting_word log_places[] = {
	{ "stdout", LOG_TO_STDOUT },
	{ "syslog", LOG_TO_SYSLOG },
	{ "stderr", LOG_TO_STDERR },
	{ NULL, 0 },
};

static const struct setting_word wait_policies[] = {
	{ "block", 0 },
	{ "spin", 1 },
	{ "yield", 2 },
	{ NULL, 0 },
};

const struct setting_row settings_table[SETTINGS] = {
	[SET_CM_ARP_TIMEOUT_MS] = { "cm_arp_timeout_ms", "DAPL_CM_ARP_TIMEOUT_MS", SETTING_NUMBER,
				    true, 1, 600000, 4000, NULL,
				    "milliseconds to wait for one address resolution" },
	[SET_CM_ARP_RETRY_COUNT] = { "cm_arp_retry_count", "DAPL_CM_ARP_RETRY_COUNT",
				     SETTING_NUMBER, true, 1, 1000, 15, NULL,
				     "address resolutions that may time out before the peer is "
				     "unreachable" },
	[SET_CM_ROUTE_TIMEOUT_MS] = { "cm_route_timeout_ms", "DAPL_CM_ROUTE_TIMEOUT_MS",
				      SETTING_NUMBER, true, 1, 600000, 4000, NULL,
				      "milliseconds to wait for one route resolution" },
	[SET_CM_ROUTE_RETRY_COUNT] = { "cm_route_retry_count", "DAPL_CM_ROUTE_RETRY_COUNT",
				       SETTING_NUMBER, true, 1, 1000, 15, NULL,
				       "route resolutions that may time out before the peer is "
				       "unreachable" },
	[SET_CM_TOS] = { "cm_tos", "DAPL_CM_TOS", SETTING_NUMBER, true, 0, 255, 0, NULL,
			 "type of service of connections; 0 leaves the system's" },
	[SET_ACK_TIMER] = { "ack_timer", "DAPL_ACK_TIMER", SETTING_NUMBER, true, -1, 31, -1, NULL,
			    "n waits 4.096 microseconds times 2 to the n for an acknowledgement, 0 "
			    "for ever;"
			    " -1 leaves it to the connection manager" },
	[SET_ACK_RETRY] = { "ack_retry", "DAPL_ACK_RETRY", SETTING_NUMBER, true, 0, 7, 7, NULL,
			    "times that a packet is sent again when it is not acknowledged" },
	[SET_RNR_TIMER] = { "rnr_timer", "DAPL_RNR_TIMER", SETTING_NUMBER, true, -1, 31, -1, NULL,
			    "InfiniBand's code of the time that a sender waits when no receive is "
			    "posted;"
			    " -1 leaves it to the connection manager" },
	[SET_RNR_RETRY] = { "rnr_retry", "DAPL_RNR_RETRY", SETTING_NUMBER, true, 0, 7, 7, NULL,
			    "times that a message is sent again when no receive is posted; 7 is "
			    "for ever" },
	[SET_IB_MTU] = { "ib_mtu", "DAPL_IB_MTU", SETTING_POWER, true, 256, 4096, 0, NULL,
			 "bytes of a packet, when less than the port's; 0 leaves the port's" },
	[SET_MAX_INLINE] = { "max_inline", "DAPL_MAX_INLINE", SETTING_NUMBER, true, 0, 65536, 64,
			     NULL, "bytes of inline data asked of the device for each endpoint" },
	[SET_WR_MAX] = { "wr_max", "DAPL_WR_MAX", SETTING_NUMBER, true, 1, INT_MAX, INT_MAX, NULL,
			 "work requests in a queue, when less than the device offers" },
	[SET_SGE_MAX] = { "sge_max", "DAPL_SGE_MAX", SETTING_NUMBER, true, 1, INT_MAX, INT_MAX,
			  NULL, "segments of a work request, when less than the device offers" },
	[SET_EVD_QLEN_MAX] = { "evd_qlen_max", "DAPL_EVD_QLEN_MAX", SETTING_NUMBER, true, 1,
			       INT_MAX, INT_MAX, NULL,
			       "events in the queue of an event dispatcher, when less than the "
			       "device offers" },
	[SET_WAIT_POLICY] = { "wait_policy", "DAPL_WAIT_POLICY", SETTING_CHOICE, true, 0, 2, 0,
			      wait_policies,
			      "how a wait spends its time: it sleeps, it goes on looking, or it "
			      "looks and yields the"
			      " processor in between" },
	[SET_SPIN_US] = { "spin_us", "DAPL_SPIN_US", SETTING_NUMBER, true, 0, 1000000, 0, NULL,
			  "microseconds that a wait looks at its queue before it sleeps, if it "
			  "does" },
	[SET_DBG_TYPE] = { "log", "DAPL_DBG_TYPE", SETTING_BITS, false, 0, UINT_MAX,
			   LOG_ERROR | LOG_WARN, log_words, "what is logged" },
	[SET_DBG_DEST] = { "log_to", "DAPL_DBG_DEST", SETTING_BITS, false, 0, 7, LOG_TO_STDERR,
			   log_places, "where it is logged" },
};

/* A static instance, of which only the values before the first load have to be right. */
static struct settings ours;
static atomic_bool loaded;

bool setting_fits(const struct setting_row *row, long value)
{
	if (row->type == SETTING_POWER && (!value || value & (value - 1)))
		return !value;
	return value >= row->least && value <= row->most;
}

static bool parse_choice(const struct setting_row *row, const char *text, long *value)
{
	const struct setting_word *known;

	for (known = row->words; known->word; known++) {
		if (!strcmp(known->word, text)) {
			*value = known->bits;
			return true;
		}
	}
	return false;
}

static bool parse_words(const struct setting_row *row, const char *text, long *value)
{
	static const char separators[] = ", |+";
	const struct setting_word *known;
	const char *word = text + strspn(text, separators);
	size_t len;

	if (!*word)
		return false;
	for (*value = 0; *word; word += len + strspn(word + len, separators)) {
		len = strcspn(word, separators);
		for (known = row->words; known->word; known++)
			if (strlen(known->word) == len && !memcmp(known->word, word, len))
				break;
		if (!known->word)
			return false;
		*value |= known->bits;
	}
	return true;
}

bool setting_parse(const struct setting_row *row, const char *text, long *value)
{
	const char *digits = text + strspn(text, " \t+-");
	bool hex = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
	char *end;

	if (row->type == SETTING_CHOICE)
		return parse_choice(row, text, value);
	errno = 0;
	*value = strtol(text, &end, hex ? 16 : 10);
	if (end == text && row->type == SETTING_BITS)
		return parse_words(row, text, value);
	/* a negative mask is its 32-bit two's complement: -1 is everything */
	if (row->type == SETTING_BITS && *value < 0 && *value >= INT_MIN)
		*value &= UINT_MAX;
	return !errno && end != text && !*end && setting_fits(row, *value);
}

const char *setting_format(const struct setting_row *row, long value, char text[SETTING_TEXT_MAX])
{
	const struct setting_word *known;

	snprintf(text, SETTING_TEXT_MAX, row->type == SETTING_BITS ? "0x%lx" : "%ld", value);
	for (known = row->words; row->type == SETTING_CHOICE && known->word; known++)
		if (known->bits == value)
			snprintf(text, SETTING_TEXT_MAX, "%s", known->word);
	return text;
}

const char *setting_range(const struct setting_row *row, char text[SETTING_TEXT_MAX])
{
	const struct setting_word *known;
	int len = 0;

	switch (row->type) {
	case SETTING_NUMBER:
		snprintf(text, SETTING_TEXT_MAX, "a number from %ld to %ld", row->least, row->most);
		break;
	case SETTING_POWER:
		snprintf(text, SETTING_TEXT_MAX, "0 or a power of two from %ld to %ld", row->least,
			 row->most);
		break;
	case SETTING_BITS:
		len = snprintf(text, SETTING_TEXT_MAX, "a sum of");
		for (known = row->words; known->word; known++)
			len += snprintf(text + len, SETTING_TEXT_MAX - (size_t)len, " %s 0x%lx,",
					known->word, known->bits);
		text[len - 1] = '\0';
		break;
	case SETTING_CHOICE:
		len = snprintf(text, SETTING_TEXT_MAX, "one of");
		for (known = row->words; known->word; known++)
			len += snprintf(text + len, SETTING_TEXT_MAX - (size_t)len, " %s,",
					known->word);
		text[len - 1] = '\0';
		break;
	}
	return text;
}

static void read_environment(struct settings *all)
{
	char range[SETTING_TEXT_MAX], used[SETTING_TEXT_MAX];
	const struct setting_row *row;
	const char *text;
	long value;
	int i;

	for (i = 0; i < SETTINGS; i++) {
		row = &settings_table[i];
		text = secure_getenv(row->variable);
		if (!text)
			continue;
		if (setting_parse(row, text, &value))
			all->values[i] = (struct setting_value){ value, SETTING_ENVIRONMENT, 0 };
		else
			log_at(LOG_ERROR, "%s: '%s' is not %s; %s is used", row->variable, text,
			       setting_range(row, range),
			       setting_format(row, all->values[i].value, used));
	}
}

void settings_read(struct settings *all)
{
	const char *path = secure_getenv("DAPL_CONF");
	int i;

	all->path[0] = '\0';
	all->device_count = 0;
	for (i = 0; i < SETTINGS; i++)
		all->values[i] = (struct setting_value){ .value = settings_table[i].standard };
	if (!path)
		settings_file_read(all, SYSCONFDIR "/dapl.conf", false);
	else if (*path)
		settings_file_read(all, path, true);
	read_environment(all);
}

static const struct settings_device *device_find(const struct settings *all, const char *name)
{
	unsigned i;

	for (i = 0; name && i < all->device_count; i++)
		if (!strcmp(all->devices[i].name, name))
			return &all->devices[i];
	return NULL;
}

const struct setting_value *settings_find(const struct settings *all, const char *ia,
					  const char *device, enum setting which)
{
	const char *const names[] = { ia, device };
	const struct settings_device *section;
	int i;

	if (all->values[which].origin == SETTING_ENVIRONMENT)
		return &all->values[which];
	for (i = 0; i < 2; i++) {
		section = device_find(all, names[i]);
		if (section && section->values[which].origin == SETTING_FILE)
			return &section->values[which];
	}
	return &all->values[which];
}

static void load(void)
{
	settings_read(&ours);
	/* release: who sees it set sees the values */
	atomic_store_explicit(&loaded, true, memory_order_release);
}

void settings_load(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load);
}

static bool is_loaded(void)
{
	return atomic_load_explicit(&loaded, memory_order_acquire);
}

long setting(enum setting which)
{
	return is_loaded() ? ours.values[which].value : settings_table[which].standard;
}

long setting_for_ia(const char *ia, const char *device, enum setting which)
{
	return is_loaded() ? settings_find(&ours, ia, device, which)->value
			   : settings_table[which].standard;
}

long setting_for(const char *device, enum setting which)
{
	return setting_for_ia(NULL, device, which);
}
