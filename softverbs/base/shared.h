/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* SV_SHARED marks a function that the connection manager calls; in the drop-in that is another library. */
#ifndef SV_BASE_SHARED_H
#define SV_BASE_SHARED_H

#define SV_SHARED __attribute__((visibility("default")))

#endif
