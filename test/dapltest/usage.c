/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A short list of the options. */

#include <stdio.h>

#include "dapltest.h"

static const char common[] = "  -D name       provider, as in dat.conf (ofa-v2-ib0)\n"
			     "  -n port       port of the server (62000)\n"
			     "  -R qos        HT, LL, EC, PM, or BE: best effort (BE)\n"
			     "  -d            more output\n"
			     "  --timeout s   longest time of a single wait, in seconds (60)\n";

static const char transaction[] =
	"Transaction test: dapltest -T T -s server [options] OP OP ...\n"
	"  -s host       where the server is\n"
	"  -i count      iterations (1000)\n"
	"  -t count      threads (1)\n"
	"  -w count      endpoints of a thread (1)\n"
	"  -V            compare what arrives\n"
	"  -P            poll for completions\n"
	"  -r            reserved in place of public service points\n"
	"  -Q            accepted for old scripts\n"
	"An OP is: client|server SR|RR|RW [segment size (4096) [segments (1)]] [-f]\n"
	"  SR, RR, RW    send and receive, RDMA read, RDMA write\n"
	"  -f            SR only, client and server by turns: reap the client's send later\n"
	"There must be an SR of the client and one of the server; -V adds three.\n";

static const char performance[] =
	"Performance test: dapltest -T P -s server [options] [RW|RR [segment size [segments]]]\n"
	"  -s host       where the server is\n"
	"  -m b|p        block or poll (b)\n"
	"  -i count      transfers (1000)\n"
	"  -p count      transfers under way at a time (as many as the adapter can)\n";

static const char limit[] =
	"Limit test: dapltest -T L [options] [limit_ia] [limit_pz] [limit_cno] [limit_evd]\n"
	"            [limit_ep] [limit_rsp] [limit_psp] [limit_lmr] [limit_rpost]\n"
	"            [limit_size_lmr]\n"
	"  -w count      adapters opened at a time (1)\n"
	"  -m count      most objects to be created (1000)\n";

static const char functional[] =
	"Functional test: dapltest -T F -f feature [options] [case0] [case1] ...\n"
	"  -f feature    hwconn, endpoint, pz, mem, connmgt or queryinfo\n"
	"  -s, -i, -t, -v accepted for old scripts\n";

static const char quit[] = "Quit: dapltest -T Q -s server [options]\n"
			   "  -s host       where the server is\n";

static const char server[] = "Server: dapltest [-T S [options]]\n";

static const char *const texts[] = {
	[TEST_SERVER] = server,
	[TEST_TRANSACTION] = transaction,
	[TEST_PERFORMANCE] = performance,
	[TEST_LIMIT] = limit,
	[TEST_QUIT] = quit,
	[TEST_FUNCTIONAL] = functional,
};

void usage_show(void)
{
	printf("usage: dapltest -T test [options]\n"
	       "       dapltest -f script\n"
	       "  S server, T transaction, P performance, L limit, F functional, Q quit\n");
	printf("dapltest alone is a server.\nOptions of all tests:\n%s", common);
	fflush(stdout);
}

void usage_show_all(void)
{
	size_t i;

	usage_show();
	printf("  --help        this text, if it is the only argument\n");
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		printf("\n%s", texts[i]);
	fflush(stdout);
}

void usage_show_test(enum test_type type)
{
	printf("%s%s", texts[type], common);
	fflush(stdout);
}
