/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Vendor additions to udat.h; this implementation has none. */
#ifndef _UDAT_VENDOR_SPECIFIC_H_
#define _UDAT_VENDOR_SPECIFIC_H_

#include <dat/dat_vendor_specific.h>

#endif /* _UDAT_VENDOR_SPECIFIC_H_ */
