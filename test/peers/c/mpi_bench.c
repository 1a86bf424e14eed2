/*
 * mpi_bench.c - time MPI collectives over float32, nccl-tests conventions.
 *
 * Build the same file with mpicc.openmpi and with mpicc.mpich.
 *
 * Conventions
 *   bytes   allreduce, broadcast, reduce: size of the vector on each rank.
 *           allgather, reduce_scatter, scatter, gather, alltoall: the whole
 *           nranks*per-rank vector.  When the requested size is less than one
 *           float per rank it is rounded up, and the size really used is the
 *           one printed.
 *   algbw   bytes / time
 *   busbw   algbw * 2(n-1)/n   allreduce
 *           algbw * (n-1)/n    allgather reduce_scatter scatter gather alltoall
 *           algbw              broadcast reduce
 *   time    average over a loop of ITERS calls after a barrier; of the ranks
 *           the slowest counts; over REPEATS loops the median is reported and
 *           the fastest and the slowest loop are printed beside it.
 *           With -written 1 each rank writes its vector before each call; the
 *           calls alone are timed.
 *
 *   -op start   the time of MPI_Init on the slowest rank, in place of a call's
 *   -op memory  KiB in place of microseconds: VmRSS of the largest rank without
 *               its vectors, idle for 5 s (0 bytes), then after an Allreduce of
 *               each size
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum op { ALLREDUCE, BROADCAST, ALLGATHER, REDUCE, REDUCE_SCATTER,
          REDUCE_SCATTER_V, SCATTER, GATHER, ALLTOALL, ALLTOALLV, SENDRECV, BARRIER, NOPS };

static const char *const op_name[NOPS] = {
    "allreduce", "broadcast", "allgather", "reduce", "reduce_scatter",
    "reduce_scatter_v", "scatter", "gather", "alltoall",
    "alltoallv", "sendrecv", "barrier" };

static int rank, nranks, in_place, written, *counts, *starts;
static float *sbuf, *rbuf;

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}

/* skew: the two vectors start at different places in their pages */
static void *get_mem(size_t bytes, size_t skew, int thp)
{
    const size_t huge = 2u << 20;
    void *p = NULL;
    bytes = (bytes + skew + huge - 1) / huge * huge;
    if (posix_memalign(&p, huge, bytes)) { fprintf(stderr, "out of memory\n"); MPI_Abort(MPI_COMM_WORLD, 1); }
    madvise(p, bytes, thp ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    memset(p, 0, bytes);
    return (char *)p + skew;
}

static int is_split(enum op op)      /* bytes counts all ranks' pieces */
{
    return op != ALLREDUCE && op != BROADCAST && op != REDUCE && op != SENDRECV && op != BARRIER;
}

/* Small whole numbers: every sum of them is exact in float32. */
static float element(int r, size_t i)
{
    return (float)((i * 3 + (size_t)r * 17 + 1) % 97);
}

static float element_sum(size_t i)
{
    float s = 0;
    for (int r = 0; r < nranks; r++) s += element(r, i);
    return s;
}

/* n: elements of the whole vector for the unsplit ops, of one piece otherwise */
static void call(enum op op, size_t n)
{
    const int c = (int)n, root = 0;
    MPI_Comm w = MPI_COMM_WORLD;
    switch (op) {
    case ALLREDUCE:
        MPI_Allreduce(in_place ? MPI_IN_PLACE : sbuf, rbuf, c, MPI_FLOAT, MPI_SUM, w);
        break;
    case BROADCAST:
        MPI_Bcast(rbuf, c, MPI_FLOAT, root, w);
        break;
    case ALLGATHER:
        MPI_Allgather(in_place ? MPI_IN_PLACE : sbuf, c, MPI_FLOAT, rbuf, c, MPI_FLOAT, w);
        break;
    case REDUCE:
        if (in_place && rank == root) MPI_Reduce(MPI_IN_PLACE, rbuf, c, MPI_FLOAT, MPI_SUM, root, w);
        else MPI_Reduce(in_place ? rbuf : sbuf, rbuf, c, MPI_FLOAT, MPI_SUM, root, w);
        break;
    case REDUCE_SCATTER:
        MPI_Reduce_scatter_block(in_place ? MPI_IN_PLACE : sbuf, rbuf, c, MPI_FLOAT, MPI_SUM, w);
        break;
    case REDUCE_SCATTER_V:
        for (int r = 0; r < nranks; r++) counts[r] = c;
        MPI_Reduce_scatter(in_place ? MPI_IN_PLACE : sbuf, rbuf, counts, MPI_FLOAT, MPI_SUM, w);
        break;
    case SCATTER:
        MPI_Scatter(sbuf, c, MPI_FLOAT, in_place && rank == root ? MPI_IN_PLACE : rbuf, c, MPI_FLOAT, root, w);
        break;
    case GATHER:
        MPI_Gather(in_place && rank == root ? MPI_IN_PLACE : sbuf, c, MPI_FLOAT, rbuf, c, MPI_FLOAT, root, w);
        break;
    case ALLTOALL:
        MPI_Alltoall(in_place ? MPI_IN_PLACE : sbuf, c, MPI_FLOAT, rbuf, c, MPI_FLOAT, w);
        break;
    case ALLTOALLV:
        for (int r = 0; r < nranks; r++) { counts[r] = c; starts[r] = r * c; }
        MPI_Alltoallv(sbuf, counts, starts, MPI_FLOAT, rbuf, counts, starts, MPI_FLOAT, w);
        break;
    case SENDRECV:
        MPI_Sendrecv(sbuf, c, MPI_FLOAT, (rank + 1) % nranks, 0, rbuf, c, MPI_FLOAT, (rank + nranks - 1) % nranks, 0,
                     w, MPI_STATUS_IGNORE);
        break;
    case BARRIER:
        MPI_Barrier(w);
        break;
    default: break;
    }
}

static void fill(enum op op, size_t n)
{
    const size_t all = is_split(op) ? n * nranks : n;
    for (size_t i = 0; i < all; i++) { sbuf[i] = element(rank, i); rbuf[i] = -1; }
    if (op == BROADCAST && rank == 0)
        for (size_t i = 0; i < n; i++) rbuf[i] = element(0, i);
    if (!in_place) return;
    switch (op) {
    case ALLREDUCE: case REDUCE:
        for (size_t i = 0; i < n; i++) rbuf[i] = element(rank, i);
        break;
    case REDUCE_SCATTER: case REDUCE_SCATTER_V: case ALLTOALL:
        for (size_t i = 0; i < all; i++) rbuf[i] = element(rank, i);
        break;
    case ALLGATHER: case GATHER:
        for (size_t i = 0; i < n; i++) { rbuf[rank * n + i] = element(rank, i); sbuf[i] = element(rank, i); }
        break;
    default: break;
    }
}

static long verify(enum op op, size_t n)
{
    long bad = 0;
    switch (op) {
    case ALLREDUCE:
        for (size_t i = 0; i < n; i++) bad += rbuf[i] != element_sum(i);
        break;
    case REDUCE:
        if (rank == 0) for (size_t i = 0; i < n; i++) bad += rbuf[i] != element_sum(i);
        break;
    case BROADCAST:
        for (size_t i = 0; i < n; i++) bad += rbuf[i] != element(0, i);
        break;
    case ALLGATHER: case GATHER:
        if (op == GATHER && rank) break;
        for (int r = 0; r < nranks; r++)
            for (size_t i = 0; i < n; i++) bad += rbuf[r * n + i] != element(r, i);
        break;
    case REDUCE_SCATTER: case REDUCE_SCATTER_V:
        for (size_t i = 0; i < n; i++) bad += rbuf[i] != element_sum(rank * n + i);
        break;
    case SCATTER:
        if (in_place && rank == 0) break;
        for (size_t i = 0; i < n; i++) bad += rbuf[i] != element(0, rank * n + i);
        break;
    case SENDRECV:
        for (size_t i = 0; i < n; i++) bad += rbuf[i] != element((rank + nranks - 1) % nranks, i);
        break;
    case ALLTOALL: case ALLTOALLV:
        for (int r = 0; r < nranks; r++)
            for (size_t i = 0; i < n; i++) bad += rbuf[r * n + i] != element(r, rank * n + i);
        break;
    default: break;
    }
    MPI_Allreduce(MPI_IN_PLACE, &bad, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    return bad;
}

static double loop_us(enum op op, size_t n, int iters)   /* slowest rank, per call */
{
    MPI_Barrier(MPI_COMM_WORLD);
    double t = 0;
    if (written) {
        for (int i = 0; i < iters; i++) {
            for (size_t k = 0; k < n; k++) sbuf[k] = (float)(1 + (i & 1));
            const double began = now_us();
            call(op, n);
            t += now_us() - began;
        }
    } else {
        const double began = now_us();
        for (int i = 0; i < iters; i++) call(op, n);
        t = now_us() - began;
    }
    t /= iters;
    MPI_Allreduce(MPI_IN_PLACE, &t, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return t;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void say(const char *peer, const char *op, size_t bytes, double value)   /* the ranks' largest */
{
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0) printf("%s,%s,%d,%zu,%.3f,0,0,0,%.3f,%.3f,1,default\n", peer, op, nranks, bytes, value, value, value);
}

static double resident_kib(void)
{
    char line[256];
    double kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f)) sscanf(line, "VmRSS: %lf", &kib);
    if (f) fclose(f);
    return kib;
}

/* The vectors are touched before the first reading, which is subtracted from all. */
static void memory(const char *peer, size_t lo, size_t hi, int factor, const double before)
{
    const double vectors = resident_kib() - before;
    sleep(5);
    say(peer, "memory", 0, resident_kib() - vectors);
    for (size_t s = lo;; s = (s * factor < hi) ? s * factor : hi) {
        call(ALLREDUCE, s / sizeof(float));
        say(peer, "memory", s, resident_kib() - vectors);
        if (s >= hi) break;
    }
}

static void usage(void)
{
    if (rank == 0)
        fprintf(stderr,
            "mpi_bench -op NAME|all -min BYTES -max BYTES -factor F -iters N -warmup N -repeats R\n"
            "          [-inplace 0|1] [-thp 0|1] [-target_ms MS] [-written 0|1] [-peer LABEL] [-header 0|1]\n"
            "  -iters 0 (the default) picks a count so that a loop takes about target_ms\n");
    MPI_Finalize();
    exit(2);
}

int main(int argc, char **argv)
{
    double began = now_us();
    MPI_Init(&argc, &argv);
    began = now_us() - began;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);

    const char *want = "allreduce", *peer = "mpi";
    size_t lo = 8, hi = 64u << 20;
    int factor = 4, iters_arg = 0, warmup = 5, repeats = 5, thp = 0, header = 1;
    double target_ms = 30;
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc) usage();
        const char *k = argv[i], *v = argv[i + 1];
        if (!strcmp(k, "-op")) want = v;
        else if (!strcmp(k, "-min")) lo = strtoull(v, 0, 0);
        else if (!strcmp(k, "-max")) hi = strtoull(v, 0, 0);
        else if (!strcmp(k, "-factor")) factor = atoi(v);
        else if (!strcmp(k, "-iters")) iters_arg = atoi(v);
        else if (!strcmp(k, "-warmup")) warmup = atoi(v);
        else if (!strcmp(k, "-repeats")) repeats = atoi(v);
        else if (!strcmp(k, "-inplace")) in_place = atoi(v);
        else if (!strcmp(k, "-written")) written = atoi(v);
        else if (!strcmp(k, "-thp")) thp = atoi(v);
        else if (!strcmp(k, "-target_ms")) target_ms = atof(v);
        else if (!strcmp(k, "-peer")) peer = v;
        else if (!strcmp(k, "-header")) header = atoi(v);
        else usage();
    }
    if (factor < 2 || repeats < 1 || warmup < 0 || lo < 4 || hi < lo) usage();

    const double before = resident_kib();
    const size_t room = hi + 64 * (size_t)nranks;
    sbuf = get_mem(room, 0, thp);
    rbuf = get_mem(room, 3 * 4096 + 512, thp);
    counts = calloc(nranks, sizeof *counts);
    starts = calloc(nranks, sizeof *starts);
    double *t = calloc(repeats, sizeof *t);

    if (rank == 0 && header)
        printf("peer,op,nranks,bytes,time_us,algbw_GBps,busbw_GBps,wrong,min_us,max_us,iters,algo\n");

    if (!strcmp(want, "start")) say(peer, want, 0, began);
    if (!strcmp(want, "memory")) memory(peer, lo, hi, factor, before);
    for (int op = 0; op < NOPS; op++) {
        if (strcmp(want, "all") && strcmp(want, op_name[op])) continue;
        size_t done = 0;
        for (size_t s = lo;; s = (s * factor < hi) ? s * factor : hi) {
            const size_t per = sizeof(float) * (is_split(op) ? nranks : 1);
            size_t n = s / per ? s / per : 1;
            const size_t bytes = op == BARRIER ? 0 : n * per;
            if (bytes != done || op == BARRIER) {
                done = bytes;
                fill(op, n);        /* not zeros: memory may move those faster than other data */
                MPI_Barrier(MPI_COMM_WORLD);
                loop_us(op, n, 1);
                double est = loop_us(op, n, 1);
                for (int i = 0; i < 2; i++) {
                    const double again = loop_us(op, n, 1);
                    if (again < est) est = again;
                }
                int iters = iters_arg, warm = warmup;
                if (!iters) {
                    /* an estimate good enough to size the loops */
                    int k = est > 0 ? (int)(2000 / est) : 100;
                    if (k > 500) k = 500;
                    if (k > 1) est = loop_us(op, n, k);
                    double want_iters = target_ms * 1e3 / (est > 0.01 ? est : 0.01);
                    iters = want_iters < 4 ? 4 : want_iters > 200000 ? 200000 : (int)want_iters;
                    MPI_Bcast(&iters, 1, MPI_INT, 0, MPI_COMM_WORLD);
                    if (warm > iters) warm = iters;
                }
                if (warm) loop_us(op, n, warm);
                for (int r = 0; r < repeats; r++) t[r] = loop_us(op, n, iters);
                qsort(t, repeats, sizeof *t, by_value);
                const double us = repeats & 1 ? t[repeats / 2] : (t[repeats / 2 - 1] + t[repeats / 2]) / 2;

                fill(op, n);
                MPI_Barrier(MPI_COMM_WORLD);
                call(op, n);
                const long wrong = verify(op, n);

                double f = 1;
                if (op == ALLREDUCE) f = 2.0 * (nranks - 1) / nranks;
                else if (is_split(op)) f = (double)(nranks - 1) / nranks;
                const double alg = bytes / us * 1e-3;
                if (rank == 0) {
                    printf("%s,%s,%d,%zu,%.3f,%.4f,%.4f,%ld,%.3f,%.3f,%d,%s\n", peer, op_name[op], nranks,
                           bytes, us, alg, alg * f, wrong, t[0], t[repeats - 1], iters,
                           in_place ? "inplace" : "default");
                    fflush(stdout);
                }
            }
            if (s >= hi || op == BARRIER) break;
        }
    }
    MPI_Finalize();
    return 0;
}
