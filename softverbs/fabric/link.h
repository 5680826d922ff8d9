/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A link to a process of another host: one TCP connection, from connect to close. */
#ifndef SV_FABRIC_LINK_H
#define SV_FABRIC_LINK_H

#include <pthread.h>
#include "softverbs/fabric/fabric.h"
#include "softverbs/fabric/wire.h"
#include "softverbs/link/engine.h"

enum fabric_state {
	FABRIC_CONNECTING, /* begun here; TCP connects */
	FABRIC_PRELUDE,	   /* waits for the prelude of the other side */
	FABRIC_PROOF,	   /* for its proof, or the verdict on this one's */
	FABRIC_TARGET,	   /* begun there: for the target */
	FABRIC_LOOKUP,	   /* begun there: a process of this host is asked for its slot */
	FABRIC_ANSWER,	   /* begun here: for the answer */
	FABRIC_READY,
	FABRIC_DOWN,
};

struct fabric_backlog {
	uint64_t queued; /* bytes of frames handed over */
	uint64_t left;	 /* those of them that have left the process */
	bool waited;	 /* a send queue waits for its bytes to leave */
};

struct fabric_out {
	struct sv_endpoint_op op; /* under way from the endpoint; first */
	struct fabric_peer *to;
	STAILQ_ENTRY(fabric_out) entry;
	size_t size, sent; /* of the frame */
	uint8_t bytes[];   /* room for a token, frame */
};

static inline uint8_t *fabric_out_frame(struct fabric_out *out)
{
	return out->bytes + WIRE_TOKEN;
}

static inline uint8_t *fabric_out_payload(struct fabric_out *out)
{
	return fabric_out_frame(out) + WIRE_HEADER;
}

#define FABRIC_FIRST   256u	  /* bytes of the input buffer until the link is ready */
#define FABRIC_BACKLOG (1u << 20) /* bytes of output after which datagrams are lost */

struct fabric_link {
	struct engine_fd handler; /* the socket; -1 after its end */
	struct engine_fd asked;	  /* FABRIC_LOOKUP: the socket of a name */
	struct engine_job job;
	struct sv_timer timer;	      /* limits the time of a step, until it is ready */
	enum fabric_state state;      /* written by the engine, inside the fabric's lock */
	bool active;		      /* begun here */
	struct sv_ip host;	      /* the other one */
	char name[64];		      /* its address as text, for the log */
	uint8_t nonce[2][WIRE_NONCE]; /* of the side that began the link, and of the other one */
	struct wire_target target;
	uint64_t token;		/* given to the other side */
	sv_fabric_found *found; /* NULL if begun there */
	uint32_t cookie;
	int error; /* the reason why it ends, if known before */
	/* engine, at the end: numbers of the last message, if the peer leaves, and of the next one */
	uint32_t last, next;
	unsigned steps, quiet;
	/* input: for the engine, or for the thread that has the reading lock, see ready_links.h */
	bool in_ready;	       /* written inside the fabric's lock, too */
	bool has_cm, has_data; /* among what the engine has just read */
	uint8_t *in;
	size_t in_size, in_have;
	uint8_t first[FABRIC_FIRST];
	/* output, inside the fabric's lock */
	STAILQ_HEAD(, fabric_out) out;
	struct fabric_backlog backlog;
	struct fabric_peer *peer; /* FABRIC_READY; holds no reference, see peers.c */
	LIST_ENTRY(fabric_link) entry;
	LIST_ENTRY(fabric_link) token_entry; /* FABRIC_READY */
	/* begun there, and not proven yet; engine */
	TAILQ_ENTRY(fabric_link) unproven_entry;
	uint64_t accepted_at;
};

/* Guards what is said so above, and the lists of links and peers. Acquired after the links lock. */
void sv_fabric_lock(void);
void sv_fabric_unlock(void);
bool sv_fabric_trylock(void);

/* link.c. All but the first in the engine. */
int sv_fabric_link_open(const struct sv_ip *host, const struct wire_target *target, uint32_t cookie,
			sv_fabric_found *found);
/* Whether one more connection may be accepted. If not, it waits in the kernel: the peer finds room later. */
bool sv_fabric_link_has_room(void);
void sv_fabric_link_accept(int fd); /* takes ownership */
/* A connection that another process of this host accepted and proved, for `target`. */
void sv_fabric_link_adopt(int fd, const struct wire_target *target);

/* link_io.c. 0 or errno. */
int sv_fabric_link_send_locked(struct fabric_link *link, enum wire_type type, const void *payload,
			       size_t size);
struct fabric_out *sv_fabric_out_new(enum wire_type type,
				     size_t size); /* to fill; NULL: no memory */
int sv_fabric_link_out_locked(struct fabric_link *link,
			      struct fabric_out *out); /* takes ownership */

/* link.c; the engine. What the link waits for has come; the next step has its time. */
void sv_fabric_link_step(struct fabric_link *link);
void sv_fabric_link_down(struct fabric_link *link, int error);
int sv_fabric_links_open(void); /* with SOFTVERBS_FABRIC=link; 0 or errno */
void sv_fabric_links_close(void);
void sv_fabric_links_fork_child(void);

/* link_io.c, engine; the last one as link->in says. */
void sv_fabric_link_forget(struct fabric_link *link); /* drops what was not sent */
int sv_fabric_link_flush(struct fabric_link *link);   /* 0 or errno */
/*
 * Reads some frames, none beyond the one by which the link becomes ready. False if only the end is left, if the peer violates
 * the protocol, or if a frame is for the engine, which is to read on.
 */
bool sv_fabric_link_read(struct fabric_link *link);

/* link_socket.c. Begins to connect to the port of the fabric: 0 or errno. */
int sv_fabric_socket_connect(const struct sv_ip *host, int *socket_fd);
/* So that a link that is idle notices the end of the other host by itself. */
void sv_fabric_socket_set(int fd);
int sv_fabric_socket_error(int fd);	 /* with which connecting failed; 0: it did not */
bool sv_fabric_socket_is_unread(int fd); /* something has arrived */

/* link_open.c: the bytes that come before a link is ready. Bytes used, 0: more are needed, -1: end the link. */
ssize_t sv_fabric_opening_read(struct fabric_link *link, const uint8_t *bytes, size_t size);
int sv_fabric_opening_begin(struct fabric_link *link); /* sends the prelude; 0 or errno */

/* link_open.c: the end of this process, for the other side of the link; whether the other's is of that kind, else it
 * is logged. */
void sv_fabric_end_fill(const struct fabric_link *link, struct wire_end *end);
bool sv_fabric_end_fits(const struct fabric_link *link, const struct wire_end *end);

/* target.c: finds the process of this host that a link is for, and hands the link to it or answers. */
void sv_fabric_target(struct fabric_link *link);

/* auth.c */
int sv_fabric_key_read(void); /* 0, or errno with a log line */
void sv_fabric_prove(uint8_t proof[static WIRE_PROOF], bool active,
		     const uint8_t nonce[2][WIRE_NONCE]);
bool sv_fabric_proof_is_right(const uint8_t proof[static WIRE_PROOF], bool active,
			      const uint8_t nonce[2][WIRE_NONCE]);

/* link_token.c: the state becomes FABRIC_READY. */
void sv_fabric_link_opened_locked(struct fabric_link *link);
/* The peer of the link that has this token; NULL if there is none. */
struct fabric_peer *sv_fabric_link_peer_locked(uint64_t token);
void sv_fabric_tokens_forget(void);

/* peers.c */
struct fabric_peer;
void sv_fabric_peers_fork_child(void);
/* Engine: both sides know each other; the peer is found or made. NULL with errno. */
struct sv_peer *sv_fabric_peer_ready_locked(struct fabric_link *link, uint16_t slot,
					    const uint64_t nonce[2], const struct wire_end *end);
/* The link ends: its peer, to be reported and released, if this was its last one. */
struct sv_peer *sv_fabric_peer_leave_locked(struct fabric_link *link);

#endif
