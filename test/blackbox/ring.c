/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Messages of all lengths in a ring of MPI ranks, filled by each sender; for blackbox/verbs-mpi.sh.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#define LONGEST (1 << 20)

static unsigned char out[LONGEST], in[LONGEST];

/* Returns the number of bytes that differ from what the previous rank sent. */
static int ring_once(int rank, int ranks, int length, int round)
{
	int before = (rank + ranks - 1) % ranks, bad = 0;

	memset(out, rank + round, (size_t)length);
	MPI_Sendrecv(out, length, MPI_BYTE, (rank + 1) % ranks, round, in, length, MPI_BYTE, before,
		     round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int i = 0; i < length; i++)
		bad += in[i] != (unsigned char)(before + round);
	return bad;
}

int main(int argc, char **argv)
{
	int rank, ranks, bad = 0, sum = 0, round = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (int length = 0; length <= LONGEST; length = length * 2 + 1)
		bad += ring_once(rank, ranks, length < LONGEST ? length : LONGEST, round++);
	MPI_Allreduce(&bad, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (!rank)
		printf("%d ranks, %d rounds, %d bad bytes\n", ranks, round, sum);
	MPI_Finalize();
	return sum != 0;
}
