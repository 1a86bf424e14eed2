// What raw_cgo.go calls: each function is one call of a plugin, or several that belong together. One that returns char *
// returns NULL, or the text of an error that the caller frees, which begins with PJRT's code: "8: Out of memory".
#include "../include/gpjrt.h"

typedef struct gp_api gp_api;
typedef struct gp_option gp_option;
typedef struct { void *executable; size_t results; int64_t stats[11]; } gp_program_made;

char *gp_start(uintptr_t get, gp_api **api);
int gp_has_streams(gp_api *api);
char *gp_client(gp_api *api, const gp_option *o, size_t n, void **client, void **device, size_t *devices, int *hardware);
char *gp_text_of(gp_api *api, int function, void *object, char **text, size_t *n);
char *gp_kind(gp_api *api, void *device, char **text, size_t *n);
char *gp_destroy(gp_api *api, int function, void *object);
char *gp_compile_text(gp_api *api, void *client, const char *text, size_t n, const char *options, size_t num_options, gp_program_made *made);
char *gp_compile_target(gp_api *api, const char *platform, const char *target, size_t target_size, const char *text, size_t n, const char *options,
	size_t num_options, int64_t *stats);
char *gp_save_program(gp_api *api, void *executable, char **bytes, size_t *n);
char *gp_load_program(gp_api *api, void *client, const char *bytes, size_t n, gp_program_made *made);
char *gp_put_host(gp_api *api, void *client, void *device, const void *data, int type, const int64_t *dims, size_t n, void **buffer);
char *gp_view_of(gp_api *api, void *client, void *device, uintptr_t address, int type, const int64_t *dims, size_t n, void **buffer, void **mark);
extern int64_t gp_marks_set;
char *gp_get_to(gp_api *api, void *buffer, void *dst, size_t bytes, size_t num_dims);
char *gp_shape(gp_api *api, void *buffer, int *type, int64_t *dims, size_t most, size_t *n);
char *gp_address(gp_api *api, void *buffer, uintptr_t *address);
char *gp_await(gp_api *api, void *buffer);
char *gp_await_on(gp_api *api, void *buffer, intptr_t stream);
char *gp_execute(gp_api *api, void *executable, void *device, void *const *args, size_t n, const int64_t *keep, size_t num_keep, void **results);
char *gp_memory_of(gp_api *api, void *device, int64_t *in_use, int64_t *peak, int64_t *limit);
