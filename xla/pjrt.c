//go:build xla && cgo && linux

#include "pjrt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ROOM is what follows each argument: zeros, which are the defaults of fields that newer plugins have there.
#define ROOM 128
#define ARGS(type, a) \
	union { struct type x; char room[sizeof(struct type) + ROOM]; } a##_ = {0}; \
	struct type *a = &a##_.x; \
	a->size = sizeof a##_

static char *copy(const char *s, size_t n) {
	char *c = malloc(n + 1);
	if (c) {
		memcpy(c, s, n);
		c[n] = 0;
	}
	return c;
}

// failed makes a text of an error, and frees the error.
static char *failed(gp_api *api, void *e) {
	if (!e) return NULL;
	ARGS(gp_get, message);
	ARGS(gp_get, code);
	message->object = code->object = e;
	api->f[GPJRT_Error_Message](message);
	api->f[GPJRT_Error_GetCode](code);
	char *s = malloc(message->n + 40);
	if (s) sprintf(s, "%d: %.*s", (int)(intptr_t)code->value, (int)message->n, (const char *)message->value);
	ARGS(gp_get, gone);
	gone->object = e;
	api->f[GPJRT_Error_Destroy](gone);
	return s;
}

static char *call(gp_api *api, int function, void *object, void **value, size_t *n) {
	ARGS(gp_get, a);
	a->object = object;
	char *e = failed(api, api->f[function](a));
	if (value) *value = a->value;
	if (n) *n = a->n;
	return e;
}

// then is e, or else the later one.
static char *then(char *e, char *later) {
	if (!e) return later;
	free(later);
	return e;
}

char *gp_start(uintptr_t get, gp_api **api) {
	*api = ((gp_api * (*)(void)) get)();
	if (!*api) return strdup("13: GetPjrtApi returned no table");
	const int most = GPJRT_Executable_GetCompiledMemoryStats; // the last place
	if ((*api)->version.major != GPJRT_MAJOR || (*api)->size < offsetof(gp_api, f) + sizeof(void *) * (most + 1)) {
		char text[160];
		snprintf(text, sizeof text, "12: its PJRT is %d.%d with %zu functions; 0.70 with %d or newer is needed", (*api)->version.major, (*api)->version.minor,
			((*api)->size - offsetof(gp_api, f)) / sizeof(void *), most + 1);
		return strdup(text);
	}
	return call(*api, GPJRT_Plugin_Initialize, NULL, NULL, NULL);
}

static struct gp_stream_extension *streams(gp_api *api) {
	for (struct gp_extension *x = api->ext; x; x = x->next)
		if (x->type == GPJRT_EXTENSION_STREAM && x->size >= sizeof(struct gp_stream_extension)) return (struct gp_stream_extension *)x;
	return NULL;
}

int gp_has_streams(gp_api *api) { return streams(api) != NULL; }

char *gp_client(gp_api *api, const gp_option *o, size_t n, void **client, void **device, size_t *devices, int *hardware) {
	ARGS(gp_create, a);
	a->options = o;
	a->n = n;
	char *e = failed(api, api->f[GPJRT_Client_Create](a));
	if (e) return e;
	void *list;
	if (!(e = call(api, GPJRT_Client_AddressableDevices, a->client, &list, devices)) && !*devices) e = strdup("5: the client has no device");
	if (!e) {
		ARGS(gp_id, id);
		id->device = *device = ((void **)list)[0];
		e = failed(api, api->f[GPJRT_Device_LocalHardwareId](id));
		*hardware = id->id;
	}
	if (e) free(call(api, GPJRT_Client_Destroy, a->client, NULL, NULL));
	*client = a->client;
	return e;
}

char *gp_text_of(gp_api *api, int function, void *object, char **text, size_t *n) {
	void *s = NULL;
	char *e = call(api, function, object, &s, n);
	*text = s;
	return e;
}

char *gp_kind(gp_api *api, void *device, char **text, size_t *n) {
	void *d;
	char *e = call(api, GPJRT_Device_GetDescription, device, &d, NULL);
	return e ? e : gp_text_of(api, GPJRT_DeviceDescription_Kind, d, text, n);
}

char *gp_destroy(gp_api *api, int function, void *object) { return call(api, function, object, NULL, NULL); }

static struct gp_program program(const char *s, size_t n) {
	return (struct gp_program){.size = sizeof(struct gp_program), .code = s, .code_size = n, .format = "mlir", .format_size = 4};
}

static char *stats_of(gp_api *api, void *executable, int64_t *stats) {
	ARGS(gp_stats, s);
	s->executable = executable;
	char *e = failed(api, api->f[GPJRT_Executable_GetCompiledMemoryStats](s));
	memcpy(stats, &s->code, 11 * sizeof *stats);
	return e;
}

static char *made_of(gp_api *api, void *loaded, gp_program_made *made) {
	void *x, *n;
	char *e = call(api, GPJRT_LoadedExecutable_GetExecutable, loaded, &x, NULL);
	if (!e) {
		e = call(api, GPJRT_Executable_NumOutputs, x, &n, NULL);
		e = then(e, stats_of(api, x, made->stats));
		e = then(e, call(api, GPJRT_Executable_Destroy, x, NULL, NULL));
	}
	if (e) {
		free(call(api, GPJRT_LoadedExecutable_Destroy, loaded, NULL, NULL));
		return e;
	}
	made->executable = loaded;
	made->results = (size_t)n;
	return NULL;
}

char *gp_compile_text(gp_api *api, void *client, const char *text, size_t n, const char *options, size_t num_options, gp_program_made *made) {
	struct gp_program p = program(text, n);
	ARGS(gp_compile, a);
	a->client = client;
	a->program = &p;
	a->options = options;
	a->options_size = num_options;
	char *e = failed(api, api->f[GPJRT_Client_Compile](a));
	return e ? e : made_of(api, a->executable, made);
}

char *gp_compile_target(gp_api *api, const char *platform, const char *target, size_t target_size, const char *text, size_t n, const char *options,
	size_t num_options, int64_t *stats) {
	gp_option o[2] = {
		{.size = sizeof *o, .name = "target_config", .name_size = 13, .type = GPJRT_STRING, .s = target, .n = target_size},
		{.size = sizeof *o, .name = "topology", .name_size = 8, .type = GPJRT_STRING, .s = "1x1x1", .n = 5},
	};
	ARGS(gp_topology, t);
	t->name = platform;
	t->name_size = strlen(platform);
	t->options = o;
	t->n = 2;
	char *e = failed(api, api->f[GPJRT_TopologyDescription_Create](t));
	if (e) return e;
	struct gp_program p = program(text, n);
	ARGS(gp_compile_for, a);
	a->topology = t->topology;
	a->program = &p;
	a->options = options;
	a->options_size = num_options;
	if (!(e = failed(api, api->f[GPJRT_Compile](a)))) {
		e = stats_of(api, a->executable, stats);
		e = then(e, call(api, GPJRT_Executable_Destroy, a->executable, NULL, NULL));
	}
	return then(e, call(api, GPJRT_TopologyDescription_Destroy, t->topology, NULL, NULL));
}

char *gp_save_program(gp_api *api, void *executable, char **bytes, size_t *n) {
	void *x;
	char *e = call(api, GPJRT_LoadedExecutable_GetExecutable, executable, &x, NULL);
	if (e) return e;
	ARGS(gp_save, a);
	a->executable = x;
	if (!(e = failed(api, api->f[GPJRT_Executable_Serialize](a)))) {
		if (!(*bytes = copy(a->bytes, *n = a->n))) e = strdup("8: no memory for the program's bytes");
		a->drop(a->owner);
	}
	return then(e, call(api, GPJRT_Executable_Destroy, x, NULL, NULL));
}

char *gp_load_program(gp_api *api, void *client, const char *bytes, size_t n, gp_program_made *made) {
	ARGS(gp_load, a);
	a->client = client;
	a->bytes = bytes;
	a->n = n;
	char *e = failed(api, api->f[GPJRT_Executable_DeserializeAndLoad](a));
	return e ? e : made_of(api, a->executable, made);
}

char *gp_put_host(gp_api *api, void *client, void *device, const void *data, int type, const int64_t *dims, size_t n, void **buffer) {
	ARGS(gp_put, a);
	a->client = client;
	a->data = data;
	a->type = type;
	a->dims = dims;
	a->num_dims = n;
	a->device = device;
	a->semantics = GPJRT_COPIED_DURING_CALL;
	char *e = failed(api, api->f[GPJRT_Client_BufferFromHostBuffer](a));
	if (e) return e;
	*buffer = a->buffer;
	if (a->done) free(call(api, GPJRT_Event_Destroy, a->done, NULL, NULL)); // the data are copied already
	return NULL;
}

int64_t gp_marks_set;

// deleted is called on any thread, once nothing reads a view's memory. The mark may be gone when it is set.
static void deleted(void *address, void *mark) {
	(void)address;
	__atomic_store_n((int32_t *)mark, 1, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&gp_marks_set, 1, __ATOMIC_SEQ_CST);
}

char *gp_view_of(gp_api *api, void *client, void *device, uintptr_t address, int type, const int64_t *dims, size_t n, void **buffer,
	void **mark) {
	if (!(*mark = calloc(1, sizeof(int32_t)))) return strdup("8: no memory for a view's mark");
	ARGS(gp_view, a);
	a->client = client;
	a->device = device;
	a->address = (void *)address;
	a->type = type;
	a->dims = dims;
	a->num_dims = n;
	a->deleted = deleted;
	a->arg = *mark;
	char *e = failed(api, api->f[GPJRT_Client_CreateViewOfDeviceBuffer](a));
	*buffer = a->buffer;
	return e; // whether a plugin that fails calls deleted is not said: the mark is left
}

static char *await(gp_api *api, void *event) {
	char *e = call(api, GPJRT_Event_Await, event, NULL, NULL);
	return then(e, call(api, GPJRT_Event_Destroy, event, NULL, NULL));
}

#define MOST_DIMS 32

char *gp_get_to(gp_api *api, void *buffer, void *dst, size_t bytes, size_t num_dims) {
	int64_t order[MOST_DIMS]; // row after row, however the device has it
	for (size_t i = 0; i < num_dims && i < MOST_DIMS; i++) order[i] = (int64_t)(num_dims - 1 - i);
	struct gp_layout l = {.size = sizeof l, .type = GPJRT_TILED, .tiled = {.size = sizeof l.tiled, .minor_to_major = order, .n = num_dims}};
	ARGS(gp_get_host, a);
	a->buffer = buffer;
	a->layout = &l;
	a->dst = dst;
	a->n = bytes;
	char *e = failed(api, api->f[GPJRT_Buffer_ToHostBuffer](a));
	return e ? e : await(api, a->event);
}

char *gp_shape(gp_api *api, void *buffer, int *type, int64_t *dims, size_t most, size_t *n) {
	ARGS(gp_type, t);
	t->buffer = buffer;
	char *e = failed(api, api->f[GPJRT_Buffer_ElementType](t));
	if (e) return e;
	ARGS(gp_dims, d);
	d->buffer = buffer;
	if ((e = failed(api, api->f[GPJRT_Buffer_Dimensions](d)))) return e;
	if (d->n > most) return strdup("12: more dimensions than package xla has room for");
	*type = t->type;
	*n = d->n;
	memcpy(dims, d->dims, d->n * sizeof *dims);
	return NULL;
}

char *gp_address(gp_api *api, void *buffer, uintptr_t *address) {
	void *p = NULL;
	char *e = call(api, GPJRT_Buffer_UnsafePointer, buffer, &p, NULL);
	*address = (uintptr_t)p;
	return e;
}

char *gp_await(gp_api *api, void *buffer) {
	void *event;
	char *e = call(api, GPJRT_Buffer_ReadyEvent, buffer, &event, NULL);
	return e ? e : await(api, event);
}

char *gp_await_on(gp_api *api, void *buffer, intptr_t stream) {
	struct gp_stream_extension *x = streams(api);
	if (!x) return gp_await(api, buffer);
	ARGS(gp_stream_wait, a);
	a->stream = stream;
	a->buffer = buffer;
	return failed(api, x->wait(a));
}

char *gp_execute(gp_api *api, void *executable, void *device, void *const *args, size_t n, const int64_t *keep, size_t num_keep, void **results) {
	ARGS(gp_run_options, o);
	o->keep = keep;
	o->num_keep = num_keep;
	ARGS(gp_run, a);
	a->executable = executable;
	a->options = o;
	a->args = &args;
	a->num_devices = 1;
	a->num_args = n;
	a->results = &results;
	a->device = device;
	return failed(api, api->f[GPJRT_LoadedExecutable_Execute](a));
}

char *gp_memory_of(gp_api *api, void *device, int64_t *in_use, int64_t *peak, int64_t *limit) {
	ARGS(gp_memory, m);
	m->device = device;
	char *e = failed(api, api->f[GPJRT_Device_MemoryStats](m));
	*in_use = m->in_use;
	*peak = m->peak.set ? m->peak.bytes : 0;
	*limit = m->limit.set ? m->limit.bytes : 0;
	return e;
}
