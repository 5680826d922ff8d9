/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Names for the log. */
#ifndef DAPL_NAMES_H
#define DAPL_NAMES_H

#include <dat2/udat.h>

const char *ep_state_name(DAT_EP_STATE state); /* without the common prefix */
const char *connection_event_name(DAT_EVENT_NUMBER event);
const char *async_error_name(DAT_EVENT_NUMBER event);

const char *ext_op_name(DAT_EXTENDED_OP op);

/*
 * Logs a refused call; libdat2 does this for the calls that are not of the data path. `arguments`: their
 * names, comma-separated; the line has the name of the argument that `status` is about.
 */
void refusal_log(const char *call, const char *arguments, const void *handle, DAT_RETURN status)
	__attribute__((cold));

#endif
