/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The frames of a link that is ready, and the messages of an endpoint. */
#ifndef SV_FABRIC_FRAMES_H
#define SV_FABRIC_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct fabric_peer;

/*
 * Handles the first frame of these bytes, which came by a link. Its size, 0 if it is not complete, -1 if it is malformed.
 * `data_only`, for other threads than the engine: -1 also for other frames than requests, answers and datagrams.
 */
ssize_t sv_fabric_frame_read(struct fabric_peer *from, const uint8_t *bytes, size_t size,
			     bool data_only);

/* A frame that came by the endpoint, in its turn (order.h): a request or an answer. One thread at a time. False if it is malformed. */
bool sv_fabric_message_read(struct fabric_peer *from, const uint8_t *bytes, size_t size);

#endif
