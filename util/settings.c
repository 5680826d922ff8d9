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
			    "n: wait 4.096 microseconds times 2 to the n for an acknowledgement; "
			    "0: without limit; -1 leaves it to the connection manager" },
	[SET_ACK_RETRY] = { "ack_retry", "DAPL_ACK_RETRY", SETTING_NUMBER, true, 0, 7, 7, NULL,
			    "times that a packet is sent again if it is not acknowledged" },
	[SET_RNR_TIMER] = { "rnr_timer", "DAPL_RNR_TIMER", SETTING_NUMBER, true, -1, 31, -1, NULL,
			    "InfiniBand's code of the time that a sender waits if no receive is "
			    "posted; -1 leaves it to the connection manager" },
	[SET_RNR_RETRY] = { "rnr_retry", "DAPL_RNR_RETRY", SETTING_NUMBER, true, 0, 7, 7, NULL,
			    "times that a message is sent again if no receive is posted; 7 is "
			    "without limit" },
	[SET_IB_MTU] = { "ib_mtu", "DAPL_IB_MTU", SETTING_POWER, true, 256, 4096, 0, NULL,
			 "bytes of a packet, if less than the path's; 0 leaves the path's; "
			 "over rdma_cm it must be the same on both sides" },
	[SET_SCM_NETDEV] = { "scm_netdev", "DAPL_SCM_NETDEV", SETTING_NAME, true, 0, 0, 0, NULL,
			     "interface whose IPv4 address peers of the socket CM connect to; none "
			     "leaves it to the first that fits" },
	[SET_UCM_REP_TIME] = { "ucm_rep_time", "DAPL_UCM_REP_TIME", SETTING_NUMBER, true, 1, 600000,
			       800, NULL,
			       "milliseconds that the UD CM waits for an answer before it repeats "
			       "a request; then twice as long each time" },
	[SET_UCM_RTU_TIME] = { "ucm_rtu_time", "DAPL_UCM_RTU_TIME", SETTING_NUMBER, true, 1, 600000,
			       800, NULL,
			       "milliseconds that the UD CM waits before it repeats an acceptance; "
			       "then twice as long each time" },
	[SET_UCM_RETRY] = { "ucm_retry", "DAPL_UCM_RETRY", SETTING_NUMBER, true, 1, 20, 10, NULL,
			    "times that the UD CM sends a request or an acceptance" },
	[SET_UCM_DREP_TIME] = { "ucm_drep_time", "DAPL_UCM_DREP_TIME", SETTING_NUMBER, true, 1,
				600000, 200, NULL,
				"milliseconds that the UD CM waits for the answer to a "
				"disconnect" },
	[SET_UCM_DREQ_RETRY] = { "ucm_dreq_retry", "DAPL_UCM_DREQ_RETRY", SETTING_NUMBER, true, 0,
				 20, 1, NULL, "times that the UD CM repeats a disconnect" },
	[SET_UCM_WAIT_TIME] = { "ucm_wait_time", "DAPL_UCM_WAIT_TIME", SETTING_NUMBER, true, 0,
				600000, 60000, NULL,
				"milliseconds that the UD CM remembers a connection that is over" },
	[SET_UCM_QP_SIZE] = { "ucm_qp_size", "DAPL_UCM_QP_SIZE", SETTING_NUMBER, true, 16, 65536,
			      2048, NULL,
			      "messages that the queues of the UD CM hold in each direction" },
	[SET_NETWORK_PROCESS_NUM] = { "network_process_num", "DAPL_NETWORK_PROCESS_NUM",
				      SETTING_NUMBER, false, 0, INT_MAX, 0, NULL,
				      "processes of the job; 0 is network_nodes times "
				      "network_ppn" },
	[SET_NETWORK_NODES] = { "network_nodes", "DAPL_NETWORK_NODES", SETTING_NUMBER, false, 1,
				1000000, 32, NULL, "nodes of the job" },
	[SET_NETWORK_PPN] = { "network_ppn", "DAPL_NETWORK_PPN", SETTING_NUMBER, false, 1, 1000000,
			      32, NULL, "processes of a node" },
	[SET_NETWORK_THRESHOLD] = { "network_threshold", "DAPL_NETWORK_TRESHOLD", SETTING_NUMBER,
				    false, 0, INT_MAX, 1024, NULL,
				    "processes of a job above which the defaults of ucm_rep_time "
				    "and ucm_rtu_time are 20 times as large, of ucm_drep_time "
				    "twice, and of ucm_qp_size 4 times" },
	[SET_IB_SL] = { "ib_sl", "DAPL_IB_SL", SETTING_NUMBER, true, 0, 15, 0, NULL,
			"service level of paths that the socket CM and the UD CM make" },
	[SET_IB_PKEY] = { "ib_pkey", "DAPL_IB_PKEY", SETTING_NUMBER, true, 0, 0xffff, 0, NULL,
			  "partition key, with its membership bit, of connections that the socket "
			  "CM and the UD CM make; 0 is the port's first" },
	[SET_GLOBAL_ROUTING] = { "global_routing", "DAPL_GLOBAL_ROUTING", SETTING_NUMBER, true, 0,
				 1, 0, NULL,
				 "1 gives paths that the socket CM and the UD CM make a GRH, which "
				 "they have on Ethernet in any case" },
	[SET_HOP_LIMIT] = { "hop_limit", "DAPL_HOP_LIMIT", SETTING_NUMBER, true, 0, 255, 255, NULL,
			    "hop limit of that GRH" },
	[SET_TCLASS] = { "tclass", "DAPL_TCLASS", SETTING_NUMBER, true, 0, 255, 0, NULL,
			 "traffic class of that GRH" },
	[SET_MAX_INLINE] = { "max_inline", "DAPL_MAX_INLINE", SETTING_NUMBER, true, 0, 65536, 64,
			     NULL, "bytes of inline data asked of the device for each endpoint" },
	[SET_WR_MAX] = { "wr_max", "DAPL_WR_MAX", SETTING_NUMBER, true, 1, INT_MAX, INT_MAX, NULL,
			 "work requests in a queue, if less than the device offers" },
	[SET_SGE_MAX] = { "sge_max", "DAPL_SGE_MAX", SETTING_NUMBER, true, 1, INT_MAX, INT_MAX,
			  NULL, "segments of a work request, if less than the device offers" },
	[SET_EVD_QLEN_MAX] = { "evd_qlen_max", "DAPL_EVD_QLEN_MAX", SETTING_NUMBER, true, 1,
			       INT_MAX, INT_MAX, NULL,
			       "events in the queue of an event dispatcher, if less than the "
			       "device offers" },
	[SET_WAIT_POLICY] = { "wait_policy", "DAPL_WAIT_POLICY", SETTING_CHOICE, true, 0, 2, 0,
			      wait_policies,
			      "how a wait waits: it blocks, it polls, or it polls and yields the "
			      "processor between polls" },
	[SET_SPIN_US] = { "spin_us", "DAPL_SPIN_US", SETTING_NUMBER, true, 0, 1000000, 0, NULL,
			  "microseconds that a wait polls before it blocks, if it blocks" },
	[SET_ASYNC_CANCEL] = { "async_cancel", "DAPL_ASYNC_CANCEL", SETTING_NUMBER, false, 0, 1, 0,
			       NULL,
			       "1 lets threads whose cancel type is asynchronous call what posts, "
			       "dequeues and polls" },
	[SET_DBG_TYPE] = { "log", "DAPL_DBG_TYPE", SETTING_BITS, false, 0, UINT_MAX,
			   LOG_ERROR | LOG_WARN, log_words, "what is logged" },
	[SET_DBG_DEST] = { "log_to", "DAPL_DBG_DEST", SETTING_BITS, false, 0, 7, LOG_TO_STDERR,
			   log_places, "where it is logged" },
};

/* A static instance, of which only the values before the first load must be right. */
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

static bool parse_name(const char *text, struct setting_value *value)
{
	if (strlen(text) >= SETTING_WORD_MAX || text[strcspn(text, "/ \t")])
		return false;
	value->value = 0;
	strcpy(value->name, text);
	return true;
}

static bool parse_number(const struct setting_row *row, const char *text, long *value)
{
	const char *digits = text + strspn(text, " \t+-");
	bool hex = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
	char *end;

	errno = 0;
	*value = strtol(text, &end, hex ? 16 : 10);
	if (end == text && row->type == SETTING_BITS)
		return parse_words(row, text, value);
	/* a negative mask is its 32-bit two's complement: -1 is everything */
	if (row->type == SETTING_BITS && *value < 0 && *value >= INT_MIN)
		*value &= UINT_MAX;
	return !errno && end != text && !*end && setting_fits(row, *value);
}

bool setting_parse(const struct setting_row *row, const char *text, struct setting_value *value)
{
	switch (row->type) {
	case SETTING_CHOICE: return parse_choice(row, text, &value->value);
	case SETTING_NAME: return parse_name(text, value);
	default: return parse_number(row, text, &value->value);
	}
}

const char *setting_format(const struct setting_row *row, long value, char text[SETTING_TEXT_MAX])
{
	const struct setting_word *known;

	snprintf(text, SETTING_TEXT_MAX, row->type == SETTING_BITS ? "0x%lx" : "%ld", value);
	for (known = row->words; row->type == SETTING_CHOICE && known->word; known++)
		if (known->bits == value)
			snprintf(text, SETTING_TEXT_MAX, "%s", known->word);
	if (row->type == SETTING_NAME)
		strcpy(text, "\"\"");
	return text;
}

const char *setting_show(const struct setting_row *row, const struct setting_value *value,
			 char text[SETTING_TEXT_MAX])
{
	if (row->type == SETTING_NAME && *value->name)
		return strcpy(text, value->name);
	return setting_format(row, value->value, text);
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
	case SETTING_NAME:
		snprintf(text, SETTING_TEXT_MAX, "a name of at most %d bytes",
			 SETTING_WORD_MAX - 1);
		break;
	}
	return text;
}

static void read_environment(struct settings *all)
{
	char range[SETTING_TEXT_MAX], used[SETTING_TEXT_MAX];
	const struct setting_row *row;
	struct setting_value value;
	const char *text;
	int i;

	for (i = 0; i < SETTINGS; i++) {
		row = &settings_table[i];
		text = secure_getenv(row->variable);
		if (!text)
			continue;
		value = (struct setting_value){ .origin = SETTING_ENVIRONMENT };
		if (setting_parse(row, text, &value))
			all->values[i] = value;
		else
			log_at(LOG_ERROR, "%s: '%s' is not %s; %s is used", row->variable, text,
			       setting_range(row, range), setting_show(row, &all->values[i], used));
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
	settings_job(all);
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
	/* release: a thread that sees it set sees the values */
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

const char *setting_name_for(const char *device, enum setting which)
{
	return is_loaded() ? settings_find(&ours, NULL, device, which)->name : "";
}
