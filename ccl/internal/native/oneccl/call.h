// The steps of a plan as C carries them out: see call.c.
#ifndef GOCCL_ONECCL_CALL_H
#define GOCCL_ONECCL_CALL_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "goneccl.h"
#include "gxpu.h"

typedef uintptr_t U; // addresses of all kinds: no Go pointers

typedef struct {
	int32_t what, type, op, peer;
	U count, dst, src, dc, sc;
} goneccl_step;

const char *goneccl_bind(U so); // the first required name that is missing, or null
int goneccl_version(int *v);
int goneccl_has_scatter(void);
int goneccl_has_all_to_all_v(void);
void goneccl_env(const char *name, const char *value); // setenv of what is not set

// These return the library's result, and write what it says of one that is not 0.
int goneccl_id(void *id, char *text, size_t room);
int goneccl_init(int device, size_t size, const void *id, int rank, U *comm, int *where, char *text, size_t room);
int goneccl_destroy(U comm, char *text, size_t room);
int goneccl_run(U comm, U queue, const gxpu *x, const goneccl_step *steps, int n, const U *counts, int *at, char *text, size_t room);

#endif
