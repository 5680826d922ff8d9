/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The UD CM: connections by number and port, the messages they send, and repetition. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "dapl/cm/ucm.h"

/* ---- numbers and ports ---- */

static bool by_id_grow(struct ucm *ucm)
{
	uint32_t size = ucm->by_id_size ? 2 * ucm->by_id_size : 256;
	struct ucm_conn **grown;

	if (size > UCM_CONNS_MAX)
		return false;
	grown = realloc(ucm->by_id, size * sizeof(struct ucm_conn *));
	if (!grown)
		return false;
	memset(grown + ucm->by_id_size, 0, (size - ucm->by_id_size) * sizeof(*grown));
	ucm->by_id = grown;
	ucm->next_id = ucm->by_id_size;
	ucm->by_id_size = size;
	return true;
}

/* Returns a free number, or 0 if there is none. The search begins after the last one, so that a number is not
 * reused soon. */
static uint32_t id_allocate(struct ucm *ucm, struct ucm_conn *conn)
{
	uint32_t tries, at;

	for (tries = 0; tries < ucm->by_id_size; tries++) {
		at = (ucm->next_id + tries) % ucm->by_id_size;
		if (!ucm->by_id[at])
			break;
	}
	if (tries == ucm->by_id_size) {
		if (!by_id_grow(ucm))
			return 0;
		at = ucm->next_id;
	}
	ucm->by_id[at] = conn;
	ucm->next_id = at + 1;
	return at + 1;
}

/* Returns a free port of 16 bits, since peers compare no more; not one with a listener. */
static uint16_t port_allocate(struct cm_channel *channel, struct ucm_conn *conn)
{
	struct ucm *ucm = channel->ucm;
	uint32_t tries;
	uint16_t port;

	for (tries = 0; tries < UCM_PORTS; tries++) {
		port = ++ucm->next_port;
		if (!port || ucm->by_port[port] || cm_listener_find(channel, port, IBV_QPT_RC) ||
		    cm_listener_find(channel, port, IBV_QPT_UD))
			continue;
		ucm->by_port[port] = conn;
		return port;
	}
	return 0;
}

struct ucm_conn *ucm_conn_new(struct cm_channel *channel, struct cm_id *id, bool wants_port)
{
	struct ucm_conn *conn = calloc(1, sizeof(*conn));
	struct ucm *ucm = channel->ucm;

	if (!conn)
		return NULL;
	conn->channel = channel;
	conn->head = (struct cm_message){ .ver = CM_VERSION, .sqpn = ucm->qp->qp_num };
	LIST_INSERT_HEAD(&ucm->conns, conn, entry);
	conn->head.s_id = id_allocate(ucm, conn);
	if (conn->head.s_id && wants_port)
		conn->head.sport = port_allocate(channel, conn);
	conn->holds_port = conn->head.sport;
	if (!conn->head.s_id || (wants_port && !conn->holds_port)) {
		ucm_conn_free(conn);
		return NULL;
	}
	conn->id = id;
	ucm_id_of(id)->conn = conn;
	return conn;
}

void ucm_conn_free(struct ucm_conn *conn)
{
	struct ucm *ucm = conn->channel->ucm;

	cm_timer_disarm(conn->channel, &conn->timer);
	if (conn->head.s_id)
		ucm->by_id[conn->head.s_id - 1] = NULL;
	if (conn->holds_port)
		ucm->by_port[conn->head.sport] = NULL;
	if (conn->id)
		ucm_id_of(conn->id)->conn = NULL;
	LIST_REMOVE(conn, entry);
	free(conn);
}

/* ---- the connection of a message ---- */

static uint16_t sender_lid(const struct cm_message *message)
{
	struct cm_endpoint sender;

	cm_endpoint_read(&sender, message->saddr);
	return sender.lid;
}

/* Finds the connection of a message. A reject by a CM without a connection has no number, so the port of the
 * request identifies it. */
struct ucm_conn *ucm_conn_find(struct cm_channel *channel, const struct cm_message *message)
{
	struct ucm *ucm = channel->ucm;
	struct ucm_conn *conn = NULL;

	if (message->d_id && message->d_id <= ucm->by_id_size)
		conn = ucm->by_id[message->d_id - 1];
	else if (!message->d_id)
		conn = ucm->by_port[message->dport & 0xffff];
	if (!conn || (message->dport & 0xffff) != conn->head.sport ||
	    (message->sport & 0xffff) != conn->head.dport || message->dqpn != conn->head.sqpn ||
	    message->sqpn != conn->head.dqpn || sender_lid(message) != conn->lid)
		return NULL;
	return conn;
}

struct ucm_conn *ucm_conn_of_request(struct cm_channel *channel, const struct cm_message *request)
{
	struct ucm_conn *conn;

	LIST_FOREACH(conn, &channel->ucm->conns, entry)
		if (!conn->holds_port && conn->head.d_id == request->s_id &&
		    conn->head.dqpn == request->sqpn &&
		    conn->head.dport == (request->sport & 0xffff) &&
		    conn->head.sport == (request->dport & 0xffff) &&
		    conn->lid == sender_lid(request))
			return conn;
	return NULL;
}

/* ---- send ---- */

static void frame_send(struct ucm_conn *conn)
{
	ucm_send(conn->channel, conn->lid, conn->head.dqpn, conn->frame, conn->frame_size);
}

void ucm_say(struct ucm_conn *conn, enum cm_op op, const void *data, uint16_t size)
{
	conn->head.op = (uint16_t)op;
	conn->head.p_size = size;
	conn->head.rtns = 0;
	conn->frame_size = cm_frame_write(&conn->head, data, CM_HEADER, conn->frame);
	frame_send(conn);
}

/* Sends the last message again and counts that in `rtns`; without it a peer takes a request for a new one. */
void ucm_repeat(struct ucm_conn *conn)
{
	if (!conn->frame_size)
		return;
	if (conn->head.rtns < UINT8_MAX)
		conn->head.rtns++;
	cm_message_write(&conn->head, conn->frame);
	frame_send(conn);
}

/* ---- time ---- */

/* Returns the milliseconds before the first repetition; stores in `times` the number of transmissions in all. */
static long wait_of(const struct ucm_conn *conn, long *times)
{
	const struct cm_channel *channel = conn->channel;

	*times = cm_setting(channel, SET_UCM_RETRY);
	if (conn->state == UCM_REQUESTING)
		return cm_setting(channel, SET_UCM_REP_TIME);
	if (conn->state == UCM_ACCEPTED)
		return cm_setting(channel, SET_UCM_RTU_TIME);
	*times = 1 + cm_setting(channel, SET_UCM_DREQ_RETRY);
	return cm_setting(channel, SET_UCM_DREP_TIME);
}

/* From now on: after a time in which this process did not run, the answer to each repetition is waited for, too. */
static void arm(struct ucm_conn *conn, long milliseconds)
{
	unsigned repeated = conn->repeated ? conn->repeated - 1 : 0;

	cm_timer_arm(conn->channel, &conn->timer,
		     clock_now() + ((uint64_t)milliseconds << (repeated < 20 ? repeated : 20)) *
					   NSEC_PER_MSEC);
}

static void silence(struct cm_channel *channel, struct cm_timer *timer)
{
	struct ucm_conn *conn =
		(struct ucm_conn *)((char *)timer - offsetof(struct ucm_conn, timer));
	long times, milliseconds = wait_of(conn, &times);

	(void)channel;
	if (++conn->repeated >= times) {
		ucm_given_up(conn);
		return;
	}
	ucm_repeat(conn);
	arm(conn, milliseconds);
}

void ucm_expect(struct ucm_conn *conn, enum ucm_state state)
{
	long times;

	conn->state = state;
	conn->repeated = 0;
	conn->timer.call = silence;
	arm(conn, wait_of(conn, &times));
}

void ucm_settle(struct ucm_conn *conn, enum ucm_state state)
{
	conn->state = state;
	cm_timer_disarm(conn->channel, &conn->timer);
}

static void time_over(struct cm_channel *channel, struct cm_timer *timer)
{
	(void)channel;
	ucm_conn_free((struct ucm_conn *)((char *)timer - offsetof(struct ucm_conn, timer)));
}

void ucm_time_wait(struct ucm_conn *conn)
{
	conn->state = UCM_TIMEWAIT;
	conn->timer.call = time_over;
	cm_timer_arm(conn->channel, &conn->timer,
		     clock_now() + (uint64_t)cm_setting(conn->channel, SET_UCM_WAIT_TIME) *
					   NSEC_PER_MSEC);
}
