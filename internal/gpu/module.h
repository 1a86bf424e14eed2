// Modules and kernels: functions of the CUDA driver's, whatever the runtime is.
#include "../../include/gcu.h"
#include "../../include/gdev.h"

#include <stdint.h>

// A kernel has at most GPU_PARAMS parameters.
enum { GPU_PARAMS = 64 };

// gcu_fill_modules looks up the functions in an open library. It returns the name of one that is not there, or NULL. It is
// called once.
const char *gcu_fill_modules(uintptr_t library);

// gcu_load compiles an image for a device. log gets what the compiler says of an error.
int gcu_load(const gdev *t, int dev, const void *image, uintptr_t *module, char *log, size_t room);
int gcu_unload(const gdev *t, int dev, uintptr_t module);

// gcu_function finds a kernel, and the sizes of its parameters: *params is -1 where the driver does not tell.
int gcu_function(const gdev *t, int dev, uintptr_t module, const char *name, uintptr_t *function, int *params, unsigned sizes[GPU_PARAMS]);

// gcu_launch starts a kernel. Each value is in the first bytes of a word.
int gcu_launch(const gdev *t, int dev, uintptr_t stream, uintptr_t function, const unsigned dims[6], unsigned shared, const unsigned long long *values, int n);
