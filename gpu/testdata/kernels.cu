// Kernels for the tests of modules. test/fake runs them, and kernels.ptx is for a GPU (make kernels).

#ifdef __CUDACC_RTC__ // else test/fake/lib/kernel.h
#define KERNEL4(name, A, a, B, b, C, c, D, d) extern "C" __global__ void name(A a, B b, C c, D d)
#define KERNEL5(name, A, a, B, b, C, c, D, d, E, e) extern "C" __global__ void name(A a, B b, C c, D d, E e)
#endif

KERNEL4(saxpy, float *, y, const float *, x, float, a, unsigned, n) {
	unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
	if (at < n) y[at] = __fadd_rn(__fmul_rn(a, x[at]), y[at]);
}

// place leaves in each element where its thread stands in a grid of three dimensions, and what it was given of each size.
KERNEL5(place, unsigned long long *, out, signed char, b, unsigned short, h, float, f, double, d) {
	unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z * blockDim.z + threadIdx.z;
	unsigned wide = gridDim.x * blockDim.x, high = gridDim.y * blockDim.y;
	out[(z * high + y) * wide + x] = x + 100 * y + 10000 * z + 1000000 * (unsigned long long)(b + h + f + d);
}
