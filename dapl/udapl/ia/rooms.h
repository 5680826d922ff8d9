/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Opens the pool of each kind of object, and fills in the calls upward. Called once, when the provider is loaded. */
#ifndef DAPL_ROOMS_H
#define DAPL_ROOMS_H

void rooms_open(void);

#endif
