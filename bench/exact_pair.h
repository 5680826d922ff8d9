/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Two connected endpoints of one process, for the counted calls. */
#ifndef EXACT_PAIR_H
#define EXACT_PAIR_H

#include <dat2/udat.h>

#define PAIR_DEPTH 64 /* posts of either side that the queue holds */

struct pair {
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE async, requests, connections, sent, received;
	DAT_EP_HANDLE active, passive;
	DAT_LMR_TRIPLET local, landing; /* 8 bytes each */
	DAT_RMR_TRIPLET remote;		/* of the target buffer */
};

/* Ends the program on failure. */
void pair_open(struct pair *pair, const char *ia);
void pair_close(struct pair *pair);

/* On failure prints the call and its status, and ends the program. */
void must(DAT_RETURN status, const char *call);
#define MUST(call) must(call, #call)

#endif
