// The kernels of train/device and of the tests of gpu, for the host.
#include "kernel.h"

#pragma GCC diagnostic ignored "-Wunused-function" // an intrinsic that no kernel uses

#include "../../../train/device/kernels.cu"
#undef AT
#undef OVER
#include "../../../gpu/testdata/kernels.cu"
