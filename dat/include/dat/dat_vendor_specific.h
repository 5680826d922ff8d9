/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Vendor additions to dat.h; this implementation has none. */
#ifndef _DAT_VENDOR_SPECIFIC_H_
#define _DAT_VENDOR_SPECIFIC_H_

#endif /* _DAT_VENDOR_SPECIFIC_H_ */
