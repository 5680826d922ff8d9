/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Flags combine without a cast, keep their type, and are what C makes of them. The exit status is 0 if so. */
#include <dat2/dat_ib_extensions.h>

static int privileges(DAT_MEM_PRIV_FLAGS flags) { return flags; }
static int streams(DAT_EVD_FLAGS flags) { return flags; }
static int completion(DAT_COMPLETION_FLAGS flags) { return flags; }
static int mask(DAT_EVD_PARAM_MASK flags) { return flags; }
static int mask(DAT_CR_PARAM_MASK flags) { return flags; }
static int mask(DAT_CSP_PARAM_MASK flags) { return flags; }
static int mask(DAT_LMR_PARAM_MASK flags) { return flags; }
static int mask(DAT_PSP_PARAM_MASK flags) { return flags; }
static int mask(DAT_PZ_PARAM_MASK flags) { return flags; }
static int mask(DAT_RMR_PARAM_MASK flags) { return flags; }
static int mask(DAT_RSP_PARAM_MASK flags) { return flags; }
static int mask(DAT_SRQ_PARAM_MASK flags) { return flags; }

#if __cplusplus >= 201103L
enum { CONSTANT = DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG };
static_assert(CONSTANT == 0x60, "a constant expression");
#endif

int main()
{
	DAT_MEM_PRIV_FLAGS some = DAT_MEM_PRIV_READ_FLAG | DAT_MEM_PRIV_WRITE_FLAG;
	DAT_CONNECT_FLAGS connect = DAT_CONNECT_DEFAULT_FLAG | DAT_CONNECT_MULTIPATH_FLAG;
	DAT_QOS qos = DAT_QOS_LOW_LATENCY | DAT_QOS_ECONOMY;
	int plain = DAT_EVD_CR_FLAG | DAT_EVD_SOFTWARE_FLAG;

	some |= DAT_IB_MEM_PRIV_REMOTE_ATOMIC;
	if (some != 0x73 || connect != 1 || qos != 6 || plain != 0x11)
		return 1;
	if (privileges(DAT_MEM_PRIV_LOCAL_WRITE_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG) != 0x30 ||
	    privileges(DAT_MEM_PRIV_ALL_FLAG | DAT_IB_MEM_PRIV_REMOTE_ATOMIC) != 0x73 ||
	    streams(DAT_EVD_DTO_FLAG | DAT_EVD_CR_FLAG | DAT_IB_EVD_EXTENSION_FLAG) != 0x230 ||
	    completion(DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG) != 9)
		return 2;
	if (mask(DAT_EVD_FIELD_EVD_QLEN | DAT_EVD_FIELD_CNO) != 0xa ||
	    mask(DAT_CR_FIELD_REMOTE_PORT_QUAL | DAT_CR_FIELD_PRIVATE_DATA) != 0xa ||
	    mask(DAT_CSP_FIELD_IA_HANDLE | DAT_CSP_FIELD_COMM) != 3 ||
	    mask(DAT_LMR_FIELD_IA_HANDLE | DAT_LMR_FIELD_MEM_TYPE) != 3 ||
	    mask(DAT_PSP_FIELD_IA_HANDLE | DAT_PSP_FIELD_CONN_QUAL) != 3 ||
	    mask(DAT_PZ_FIELD_IA_HANDLE | DAT_PZ_FIELD_IA_HANDLE) != 1 ||
	    mask(DAT_RMR_FIELD_IA_HANDLE | DAT_RMR_FIELD_PZ_HANDLE) != 3 ||
	    mask(DAT_RSP_FIELD_IA_HANDLE | DAT_RSP_FIELD_CONN_QUAL) != 3 ||
	    mask(DAT_SRQ_FIELD_IA_HANDLE | DAT_SRQ_FIELD_PZ_HANDLE) != 5)
		return 3;
	some &= ~DAT_MEM_PRIV_WRITE_FLAG;
	if (some != 0x43 || privileges(some &= DAT_MEM_PRIV_READ_FLAG) != 3)
		return 4;
	if ((some & DAT_MEM_PRIV_REMOTE_READ_FLAG) != 2 || (some & 1u) != 1)
		return 5;
	return 0;
}
