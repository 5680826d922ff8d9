/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Contents of the data areas. A peer of another make fills the rest of its buffer with 'b'. */

#include <stdio.h>
#include <string.h>

#include "dtest.h"

const char *write_text(bool server)
{
	return server ? "server RDMA write data..." : "client RDMA write data...";
}

const char *read_text(bool server)
{
	return server ? "server RDMA read data..." : "client RDMA read data...";
}

unsigned int write_seed(bool server)
{
	return server ? 0x31 : 0x47;
}

unsigned int read_seed(bool server)
{
	return server ? 0x59 : 0x7f;
}

/* The bytes differ from those at any small distance and in any neighbouring page. */
static unsigned char pattern(unsigned int seed, size_t i)
{
	return (unsigned char)(seed + i * 29 + (i >> 8) * 101 + (i >> 16) * 53);
}

void content_make(unsigned char *to, uint32_t length, const struct content *c, bool plain)
{
	size_t text = strlen(c->text) + 1;

	if (text > length)
		text = length;
	memcpy(to, c->text, text);
	for (size_t i = text; i < length; i++)
		to[i] = plain ? 'b' : pattern(c->seed, i);
	if (c->last >= 0)
		to[length - 1] = (unsigned char)c->last;
}

bool content_same(const unsigned char *got, const unsigned char *want, uint32_t length,
		  const char *what)
{
	uint32_t i = 0;

	if (!memcmp(got, want, length))
		return true;
	while (got[i] == want[i])
		i++;
	complain("Error: %s of %u bytes: byte %u is 0x%02x, expected 0x%02x", what, length, i,
		 got[i], want[i]);
	return false;
}

/* All bytes must be as one make of program fills them: a mixture of the two is wrong. */
bool content_check(struct session *s, const unsigned char *got, const struct content *c,
		   const char *what)
{
	uint32_t length = s->opt->length;

	content_make(s->want[0], length, c, true);
	if (!memcmp(got, s->want[0], length))
		return true;
	content_make(s->want[0], length, c, false);
	return content_same(got, s->want[0], length, what);
}

void content_show(const struct session *s, const char *what, const unsigned char *data)
{
	char text[80];
	size_t n = 0;

	while (n < sizeof(text) - 1 && n < s->opt->length && data[n] >= ' ' && data[n] < 0x7f)
		n++;
	memcpy(text, data, n);
	text[n] = '\0';
	say("%s: %s buffer contains: %s", role(s), what, text);
}
