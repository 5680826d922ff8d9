/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* How a link opens: preludes, proofs, target and answer; see wire.h. */
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include "softverbs/base/log_from.h"
#include "softverbs/fabric/endpoint.h"
#include "softverbs/fabric/link.h"
#include "softverbs/fabric/unproven.h"
#include "softverbs/link/runtime.h"

/* The messages before the frames are short, and the socket is new: it has room. */
static int plain_send(struct fabric_link *link, const void *bytes, size_t size)
{
	ssize_t sent = send(link->handler.fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);

	return sent == (ssize_t)size ? 0 : sent < 0 ? errno : EPIPE;
}

static void state_set(struct fabric_link *link, enum fabric_state state)
{
	sv_fabric_lock();
	link->state = state;
	sv_fabric_unlock();
	sv_fabric_link_step(link);
}

static int link_end(struct fabric_link *link, int error)
{
	link->error = error;
	return -1;
}

int sv_fabric_opening_begin(struct fabric_link *link)
{
	uint8_t prelude[WIRE_PRELUDE], *nonce = link->nonce[!link->active];

	if (getrandom(nonce, WIRE_NONCE, 0) != WIRE_NONCE)
		return EIO;
	sv_wire_prelude_write(prelude, nonce);
	return plain_send(link, prelude, sizeof(prelude));
}

/* ---- preludes ---- */

static int prelude_read(struct fabric_link *link, const uint8_t *bytes)
{
	uint8_t proof[WIRE_PROOF];
	uint32_t version;
	int error = 0;

	if (!sv_wire_prelude_read(bytes, &version, link->nonce[link->active])) {
		sv_log_from(sv_source_user(0), LOG_WARN, "softverbs: %s: not a prelude",
			    link->name);
		return link_end(link, EPROTO);
	}
	if (!link->active)
		error = sv_fabric_opening_begin(link);
	if (version != WIRE_VERSION) {
		sv_log_from(sv_source_user(0), LOG_ERROR,
			    "softverbs: %s: version %u of the link, this is version %u", link->name,
			    version, WIRE_VERSION);
		return link_end(link, EPROTO);
	}
	if (!error && link->active) {
		sv_fabric_prove(proof, true, link->nonce);
		error = plain_send(link, proof, sizeof(proof));
	}
	state_set(link, FABRIC_PROOF);
	return error ? link_end(link, error) : 0;
}

/* ---- proofs ---- */

static int proof_check(struct fabric_link *link, const uint8_t *bytes)
{
	uint8_t verdict[WIRE_VERDICT] = { WIRE_WELCOME };

	if (!sv_fabric_proof_is_right(bytes, true, link->nonce)) {
		sv_log_from(sv_source_user(0), LOG_ERROR,
			    "softverbs: %s: refused: it has another key", link->name);
		verdict[0] = WIRE_WRONG_KEY;
		plain_send(link, verdict, sizeof(verdict));
		return link_end(link, EACCES);
	}
	sv_fabric_prove(verdict + 1, false, link->nonce);
	sv_unproven_remove(link);
	state_set(link, FABRIC_TARGET);
	link->error = plain_send(link, verdict, sizeof(verdict));
	return link->error ? -1 : 0;
}

static int verdict_read(struct fabric_link *link, const uint8_t *bytes)
{
	uint8_t target[WIRE_TARGET_SIZE];

	if (bytes[0] != WIRE_WELCOME || !sv_fabric_proof_is_right(bytes + 1, false, link->nonce)) {
		log_at(LOG_NOTE, "softverbs: %s: it has another key", link->name);
		return link_end(link, EACCES);
	}
	sv_fabric_end_fill(link, &link->target.end);
	sv_wire_target_write(target, &link->target);
	sv_fabric_lock();
	link->state = FABRIC_ANSWER;
	link->error = sv_fabric_link_send_locked(link, WIRE_TARGET, target, sizeof(target));
	sv_fabric_unlock();
	sv_fabric_link_step(link);
	return link->error ? -1 : 0;
}

/* ---- target and answer ---- */

void sv_fabric_end_fill(const struct fabric_link *link, struct wire_end *end)
{
	*end = (struct wire_end){ .name = *sv_fabric_endpoint_name(), .token = link->token };
}

bool sv_fabric_end_fits(const struct fabric_link *link, const struct wire_end *end)
{
	struct wire_end own;

	sv_fabric_end_fill(link, &own);
	if (!strcmp(end->name.kind, own.name.kind) && end->name.format == own.name.format)
		return true;
	sv_log_from(sv_source_user(0), LOG_ERROR,
		    "softverbs: %s: no link: its SOFTVERBS_FABRIC is %s, here it is %s (formats of "
		    "addresses %u, %u)",
		    link->name, end->name.kind, own.name.kind, end->name.format, own.name.format);
	return false;
}

/* The first frame opens the way back. */
static struct sv_peer *link_complete(struct fabric_link *link, const struct wire_answer *answer)
{
	struct sv_peer *peer;

	sv_fabric_lock();
	peer = sv_fabric_peer_ready_locked(link, answer->slot, answer->nonce, &answer->end);
	if (peer)
		link->error = sv_fabric_link_send_locked(link, WIRE_OPEN, "", 0);
	sv_fabric_unlock();
	return peer;
}

static int answer_read(struct fabric_link *link, const struct wire_answer *answer)
{
	struct sv_peer *peer = NULL;

	switch ((enum wire_status)answer->status) {
	case WIRE_ABSENT: return link_end(link, ENOENT);
	case WIRE_UNLIKE:
		sv_fabric_end_fits(link, &answer->end);
		return link_end(link, EPROTONOSUPPORT);
	case WIRE_LINKED:
		if (link->target.kind == WIRE_TO_CHECK)
			break;
		peer = link_complete(link, answer);
		if (!peer)
			return link_end(link, errno);
		break;
	case WIRE_ALREADY:
		peer = sv_fabric_peer_linked(answer->nonce, &link->host);
		if (!peer)
			return link_end(link, EAGAIN); /* that link has ended here */
		break;
	default: return link_end(link, EBUSY);
	}
	if (link->found)
		link->found(link->cookie, peer, 0);
	else if (peer)
		sv_peer_put(peer);
	link->found = NULL;
	/* the link of a check, or one beside another: it has done its work */
	return link->peer ? 0 : link_end(link, 0);
}

static int frame_handle(struct fabric_link *link, const struct wire_frame *frame,
			const uint8_t *payload)
{
	struct wire_answer answer;

	if (link->state == FABRIC_TARGET && frame->type == WIRE_TARGET &&
	    sv_wire_target_read(payload, frame->size, &link->target)) {
		sv_fabric_target(link);
		return link->state == FABRIC_DOWN ? -1 : 0;
	}
	if (link->state == FABRIC_ANSWER && frame->type == WIRE_ANSWER &&
	    sv_wire_answer_read(payload, frame->size, &answer))
		return answer_read(link, &answer);
	return link_end(link, EPROTO);
}

static ssize_t frame_read(struct fabric_link *link, const uint8_t *bytes, size_t size)
{
	struct wire_frame frame;

	if (size < WIRE_HEADER)
		return 0;
	if (!sv_wire_header_read(bytes, &frame) || WIRE_HEADER + frame.size > FABRIC_FIRST)
		return link_end(link, EPROTO);
	if (size < WIRE_HEADER + frame.size)
		return 0;
	return frame_handle(link, &frame, bytes + WIRE_HEADER)
		       ? -1
		       : (ssize_t)(WIRE_HEADER + frame.size);
}

ssize_t sv_fabric_opening_read(struct fabric_link *link, const uint8_t *bytes, size_t size)
{
	size_t needed = link->state == FABRIC_PRELUDE ? WIRE_PRELUDE
			: link->active		      ? WIRE_VERDICT
						      : WIRE_PROOF;
	int result;

	if (link->state == FABRIC_TARGET || link->state == FABRIC_ANSWER)
		return frame_read(link, bytes, size);
	if (link->state != FABRIC_PRELUDE && link->state != FABRIC_PROOF)
		return link_end(link, EPROTO); /* bytes before they are asked for */
	if (size < needed)
		return 0;
	if (link->state == FABRIC_PRELUDE)
		result = prelude_read(link, bytes);
	else
		result = link->active ? verdict_read(link, bytes) : proof_check(link, bytes);
	return result ? -1 : (ssize_t)needed;
}
