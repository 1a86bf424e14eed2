// The part of PJRT's C API with which package xla compiles and runs programs. A plugin exports one function, GetPjrtApi,
// which returns a table; a function is known by its place there, which never changes. Every argument is a struct that
// begins with its size. Newer versions lengthen structs at their ends, and a plugin refuses sizes that are too small for it
// alone: so package xla has zeros follow each struct, which a newer plugin reads as its defaults, and counts them in the size.
// No vendor's header is needed; test/vendor/pjrt holds this table against pjrt_c_api.h.
#ifndef GPJRT_H
#define GPJRT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// X(name, place): PJRT_<name> of the table, counted from 0. All are required.
#define GPJRT_FUNCS(X) \
	X(Error_Destroy, 0) \
	X(Error_Message, 1) \
	X(Error_GetCode, 2) \
	X(Plugin_Initialize, 3) \
	X(Event_Destroy, 5) \
	X(Event_Await, 8) \
	X(Client_Create, 10) \
	X(Client_Destroy, 11) \
	X(Client_PlatformName, 12) \
	X(Client_PlatformVersion, 14) \
	X(Client_AddressableDevices, 16) \
	X(Client_Compile, 20) \
	X(Client_BufferFromHostBuffer, 22) \
	X(DeviceDescription_Kind, 26) \
	X(Device_GetDescription, 29) \
	X(Device_LocalHardwareId, 31) \
	X(Device_MemoryStats, 34) \
	X(Executable_Destroy, 40) \
	X(Executable_NumOutputs, 44) \
	X(Executable_Serialize, 49) \
	X(LoadedExecutable_Destroy, 50) \
	X(LoadedExecutable_GetExecutable, 51) \
	X(LoadedExecutable_Execute, 55) \
	X(Executable_DeserializeAndLoad, 56) \
	X(Buffer_Destroy, 58) \
	X(Buffer_ElementType, 59) \
	X(Buffer_Dimensions, 60) \
	X(Buffer_ToHostBuffer, 70) \
	X(Buffer_ReadyEvent, 72) \
	X(Buffer_UnsafePointer, 73) \
	X(TopologyDescription_Create, 82) \
	X(TopologyDescription_Destroy, 83) \
	X(Compile, 89) \
	X(Client_CreateViewOfDeviceBuffer, 93) \
	X(Executable_GetCompiledMemoryStats, 96)

#define GPJRT_PLACE(name, place) GPJRT_##name = place,
enum { GPJRT_FUNCS(GPJRT_PLACE) };

enum { GPJRT_MAJOR = 0 };                     // of the version
enum { GPJRT_EXTENSION_STREAM = 3 };          // the type of the extension that makes a stream wait for a buffer
enum { GPJRT_COPIED_DURING_CALL = 0 };        // what becomes of the host's data in BufferFromHostBuffer
enum { GPJRT_TILED = 0 };                     // a layout given minor to major
enum { GPJRT_STRING, GPJRT_INT64, GPJRT_INT64S, GPJRT_FLOAT, GPJRT_BOOL }; // types of options
enum { GPJRT_RESOURCE_EXHAUSTED = 8 };        // the code of an error
enum {
	GPJRT_PRED = 1, GPJRT_S8 = 2, GPJRT_S16 = 3, GPJRT_S32 = 4, GPJRT_S64 = 5, GPJRT_U8 = 6, GPJRT_U16 = 7, GPJRT_U32 = 8, GPJRT_U64 = 9,
	GPJRT_F16 = 10, GPJRT_F32 = 11, GPJRT_F64 = 12, GPJRT_BF16 = 13, GPJRT_F8E5M2 = 16, GPJRT_F8E4M3FN = 17,
};

#define GPJRT_HEAD size_t size; struct gp_extension *ext
struct gp_extension { size_t size; int type; struct gp_extension *next; };
struct gp_api {
	GPJRT_HEAD;
	struct { GPJRT_HEAD; int major, minor; } version;
	void *(*f[])(void *);
};
// Most functions have an object go in and one or two values come out.
struct gp_get { GPJRT_HEAD; void *object; void *value; size_t n; };
struct gp_type { GPJRT_HEAD; void *buffer; int type; };
struct gp_dims { GPJRT_HEAD; void *buffer; const int64_t *dims; size_t n; };
struct gp_id { GPJRT_HEAD; void *device; int id; };
struct gp_option {
	GPJRT_HEAD;
	const char *name;
	size_t name_size;
	int type;
	union { const char *s; int64_t i; const int64_t *is; float f; bool b; };
	size_t n; // of the string or the array; else 1
};
struct gp_create { GPJRT_HEAD; const struct gp_option *options; size_t n; void *callbacks[4]; void *client; void *more[2]; };
struct gp_program { GPJRT_HEAD; const char *code; size_t code_size; const char *format; size_t format_size; };
struct gp_compile { GPJRT_HEAD; void *client; const struct gp_program *program; const char *options; size_t options_size; void *executable; };
struct gp_put {
	GPJRT_HEAD;
	void *client;
	const void *data;
	int type;
	const int64_t *dims;
	size_t num_dims;
	const int64_t *strides;
	size_t num_strides;
	int semantics;
	void *device, *memory, *layout, *done, *buffer;
};
struct gp_view {
	GPJRT_HEAD;
	void *client, *address;
	const int64_t *dims;
	size_t num_dims;
	int type;
	void *layout, *device;
	void (*deleted)(void *, void *);
	void *arg;
	intptr_t stream;
	void *buffer, *memory;
};
struct gp_layout {
	GPJRT_HEAD;
	struct { GPJRT_HEAD; const int64_t *minor_to_major; size_t n; const int64_t *tiles; const size_t *tile_sizes; size_t num_tiles; } tiled;
	int type;
};
struct gp_get_host { GPJRT_HEAD; void *buffer; struct gp_layout *layout; void *dst; size_t n; void *event; };
struct gp_run_options {
	GPJRT_HEAD;
	void **callbacks[2];
	size_t num_callbacks[2];
	int launch;
	const int64_t *keep; // the arguments that are not donated
	size_t num_keep;
	void *context;
	const char *location;
	size_t num_tasks;
	void *tasks[2];
};
struct gp_run {
	GPJRT_HEAD;
	void *executable;
	struct gp_run_options *options;
	void *const *const *args;
	size_t num_devices, num_args;
	void **const *results;
	void **done;
	void *device;
};
struct gp_stats { GPJRT_HEAD; void *executable; int64_t code, args, results, alias, temp, host[5], peak; };
struct gp_amount { int64_t bytes; bool set; };
struct gp_memory { GPJRT_HEAD; void *device; int64_t in_use; struct gp_amount peak, allocs, largest, limit, rest[6]; };
struct gp_save { GPJRT_HEAD; void *executable; const char *bytes; size_t n; void *owner; void (*drop)(void *); };
struct gp_load { GPJRT_HEAD; void *client; const char *bytes; size_t n; void *executable; const char *options; size_t options_size; };
struct gp_topology { GPJRT_HEAD; const char *name; size_t name_size; const struct gp_option *options; size_t n; void *topology; };
struct gp_compile_for {
	GPJRT_HEAD;
	void *topology;
	const struct gp_program *program;
	const char *options;
	size_t options_size;
	void *client, *executable;
};
// The Stream extension follows its struct gp_extension with these. Its argument has no pointer to extensions.
struct gp_stream_wait { size_t size; intptr_t stream; void *buffer; };
struct gp_stream_extension { struct gp_extension base; void *(*get_stream)(void *); void *(*wait)(struct gp_stream_wait *); };

#endif
