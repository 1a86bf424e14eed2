// What oneCCL's CPU archive (oneccl-devel, lib/ccl/cpu/lib/libccl.a) expects of Intel's compiler run time and of
// ittnotify: with this file, plain g++ links the archive into the libccl.so.1 that the CPU plugin looks for.
#include <string.h>

void *_intel_fast_memcpy(void *d, const void *s, size_t n) { return memcpy(d, s, n); }
void *_intel_fast_memset(void *d, int c, size_t n) { return memset(d, c, n); }
void *_intel_fast_memmove(void *d, const void *s, size_t n) { return memmove(d, s, n); }
int _intel_fast_memcmp(const void *a, const void *b, size_t n) { return memcmp(a, b, n); }

// ittnotify's hooks, which stay null: no profiler is here.
void *__itt_event_end_ptr__3_0, *__itt_event_create_ptr__3_0, *__itt_event_start_ptr__3_0, *__itt_domain_create_ptr__3_0,
	*__itt_metadata_add_ptr__3_0, *__itt_string_handle_create_ptr__3_0, *__itt_task_begin_ptr__3_0,
	*__itt_task_end_ptr__3_0, *__itt_thread_set_name_ptr__3_0;
