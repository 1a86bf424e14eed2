//go:build ignore

// A PJRT plugin as small as tests need it: MAJOR and FUNCTIONS say what it claims to be. With STREAM it has a device "cuda"
// 3, the Stream extension, one buffer, and a record of what was called on it, which it gives out as the memory in use: a digit for
// each call, 1 if the host waits, 2 and the stream's number if a stream waits, 3 if the address was asked for.
#include "../../include/gpjrt.h"
#include <stdlib.h>
#include <string.h>

#ifndef MAJOR
#define MAJOR 0
#endif
#ifndef FUNCTIONS
#define FUNCTIONS 120
#endif

static struct { struct gp_api api; void *(*f[FUNCTIONS])(void *); } table;

#ifdef STREAM
static int64_t said;
static float memory[4] = {1, 2, 3, 4};
static void *devices[1] = {&devices};

static void *initialize(void *a) { return (void)a, NULL; }
static void *create(void *a) { return ((struct gp_create *)a)->client = &table, NULL; }
static void *name(void *a) { struct gp_get *g = a; return g->value = "cuda", g->n = 4, NULL; }
static void *list(void *a) { struct gp_get *g = a; return g->value = devices, g->n = 1, NULL; }
static void *describe(void *a) { struct gp_get *g = a; return g->value = g->object, NULL; }
static void *kind(void *a) { struct gp_get *g = a; return g->value = "a test's", g->n = 8, NULL; }
static void *hardware(void *a) { return ((struct gp_id *)a)->id = 3, NULL; }
static void *put(void *a) {
	struct gp_put *p = a;
	memcpy(memory, p->data, sizeof memory);
	return p->buffer = memory, p->done = NULL, NULL;
}
static void *ready(void *a) { return said = 10 * said + 1, ((struct gp_get *)a)->value = memory, NULL; }
static void *address(void *a) { return said = 10 * said + 3, ((struct gp_get *)a)->value = memory, NULL; }
static void *tell(void *a) { return ((struct gp_memory *)a)->in_use = said, NULL; }
static void *nothing(void *a) { return (void)a, NULL; }
static void *stream_of(void *a) { return (void)a, NULL; }
static void *wait(struct gp_stream_wait *a) { return said = 100 * said + 20 + a->stream, NULL; }
static struct gp_stream_extension stream = {{sizeof stream, GPJRT_EXTENSION_STREAM, NULL}, stream_of, wait};
static struct gp_extension other = {sizeof other, 1, &stream.base};
#endif

struct gp_api *GetPjrtApi(void) {
	table.api.size = offsetof(struct gp_api, f) + FUNCTIONS * sizeof(void *);
	table.api.version.major = MAJOR;
	table.api.version.minor = 69;
#ifdef STREAM
	table.api.ext = &other;
	for (int i = 0; i < FUNCTIONS; i++) table.f[i] = nothing;
	table.f[GPJRT_Plugin_Initialize] = initialize;
	table.f[GPJRT_Client_Create] = create;
	table.f[GPJRT_Client_PlatformName] = table.f[GPJRT_Client_PlatformVersion] = name;
	table.f[GPJRT_Client_AddressableDevices] = list;
	table.f[GPJRT_Device_GetDescription] = describe;
	table.f[GPJRT_DeviceDescription_Kind] = kind;
	table.f[GPJRT_Device_LocalHardwareId] = hardware;
	table.f[GPJRT_Client_BufferFromHostBuffer] = put;
	table.f[GPJRT_Device_MemoryStats] = tell;
	table.f[GPJRT_Buffer_ReadyEvent] = ready;
	table.f[GPJRT_Buffer_UnsafePointer] = address;
#endif
	return &table.api;
}
