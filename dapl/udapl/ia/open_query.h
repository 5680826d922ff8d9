/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Attributes of an IA by its name. The operations take a name in the place of a handle. */
#ifndef DAPL_OPEN_QUERY_H
#define DAPL_OPEN_QUERY_H

#include <stdarg.h>
#include <dat2/udat.h>

DAT_RETURN ext_open_query(DAT_HANDLE name, va_list args);
DAT_RETURN ext_close_query(DAT_HANDLE ia, va_list args);

#endif
