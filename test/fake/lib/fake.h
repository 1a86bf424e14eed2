// A library that is NCCL, RCCL, the CUDA runtime and the HIP runtime on host memory, for tests where
// there is no GPU: device.c, stream.c and memory.c are the runtimes, comm.c, shrink.c and collective.c the two libraries.
// It is one file, since streams are shared by all four. See README.md for what it does and its knobs.
#ifndef FAKE_H
#define FAKE_H

#include "../../../include/gccl.h"
#include "../../../include/gdev.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	ILLEGAL_STATE = 401, CAPTURE_UNSUPPORTED = 900, CAPTURE_INVALIDATED = 901, CAPTURE_UNJOINED = 904, CAPTURED_EVENT = 907,
	NO_SUCH_THING = -1,
};

// work is what a stream runs, once, or again and again where a graph keeps it.
typedef struct work work;
struct work {
	unsigned long (*begin)(work *); // when it joins a stream's queue; may be NULL
	void (*run)(work *, unsigned long tag);
	void (*drop)(work *);
	atomic_int refs;
};

// knob.c
long knob(const char *name, long otherwise); // of the variable FAKE_<name>
const char *knob_text(const char *name);
int knob_fail(const char *function); // FAKE_FAIL=function:nth:code,..
double now(void);
void born(int kind), died(int kind); // goccl_fake_live counts
void violation(const char *what);    // goccl_fake_violations counts
enum { BLOCK, STREAM, EVENT, GRAPH, COMM, JOB, MODULE, LIVE_KINDS };

// device.c
int current_device(void);
void use_device(int device);  // and make its context
int thread_has_context(void); // a device was chosen on this thread
int thread_asks_hip(void);    // its device was last chosen, or asked for, by HIP's name
int compute_capability(void);
int devices(void);
int physical(int device); // which of the machine's devices it is
int device_error(const char *function); // an injected one, or no device
int keep_error(int error);

// stream.c: mu guards all of the runtimes
extern pthread_mutex_t mu;
extern pthread_cond_t changed;
int enqueue(void *stream, work *w, int wait); // takes over one reference
int stream_device(void *stream);              // NO_SUCH_THING
int stream_captures(void *stream); // 1 or 0
void break_streams(int error); // of all streams, for good
void drain(int device); // mu is held: wait for all that is queued on its streams
void work_free(work *w);

// memory.c
int map_memory(void **out, size_t n);      // by the driver's calls for virtual memory: cudaFree does not take it
int unmap_memory(void *p);
int is_mapped(const void *p, size_t n);   // p was made by map_memory
void *reach(const void *p, size_t n); // where the library may touch n bytes of p, or NULL

#endif
