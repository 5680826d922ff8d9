/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A device that does nothing, in the place of the real one when it is told to. Preloaded. */
#ifndef LAYER_STUB_H
#define LAYER_STUB_H

#include <stdbool.h>
#include <infiniband/verbs.h>

/* From now on a message is there when it is posted, and costs next to nothing. Nothing may be outstanding. */
void layer_stub_on(bool on);
/* A message by the stub alone, as the libraries above it would ask for it: two posts, two polls. */
void layer_stub_message(void);

#endif
