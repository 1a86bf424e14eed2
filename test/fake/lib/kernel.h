// What a file of kernels in CUDA C++ needs to be C: each kernel becomes a function that one thread of a grid runs, and an
// entry in the list that module.c looks in. Floats are rounded after every operation, which build.sh sees to.
#ifndef FAKE_KERNEL_H
#define FAKE_KERNEL_H

#include <math.h>
#include <stdint.h>
#include <string.h>

typedef uint16_t u16;
typedef uint32_t u32;
typedef unsigned long long u64;

enum { MAX_PARAMS = 16 };

// kernel is a kernel that this library can run. A size is that of a parameter, and negative of an address.
typedef struct kernel kernel;
struct kernel {
	const char *name;
	void (*run)(void **args); // as the thread that threadIdx and blockIdx say
	int params, sizes[MAX_PARAMS];
	kernel *next;
};
void add_kernel(kernel *k);

struct index { unsigned x, y, z; };
extern __thread struct index threadIdx, blockIdx, blockDim, gridDim;

#define DEVICE static inline
#define UNROLL
#define SIZE(T) ((int)sizeof(T) * (__builtin_classify_type((T)0) == 5 ? -1 : 1)) // 5: a pointer
#define ENTRY(name, n, ...) \
	static void name##_run(void **p_); \
	static kernel name##_kernel = { #name, name##_run, n, { __VA_ARGS__ }, NULL }; \
	__attribute__((constructor)) static void name##_add(void) { add_kernel(&name##_kernel); }
#define AS_(T, i) (*(T *)p_[i])
#define KERNEL2(name, A, a, B, b) \
	ENTRY(name, 2, SIZE(A), SIZE(B)) static void name(A a, B b); \
	static void name##_run(void **p_) { name(AS_(A, 0), AS_(B, 1)); } static void name(A a, B b)
#define KERNEL3(name, A, a, B, b, C, c) \
	ENTRY(name, 3, SIZE(A), SIZE(B), SIZE(C)) static void name(A a, B b, C c); \
	static void name##_run(void **p_) { name(AS_(A, 0), AS_(B, 1), AS_(C, 2)); } static void name(A a, B b, C c)
#define KERNEL4(name, A, a, B, b, C, c, D, d) \
	ENTRY(name, 4, SIZE(A), SIZE(B), SIZE(C), SIZE(D)) static void name(A a, B b, C c, D d); \
	static void name##_run(void **p_) { name(AS_(A, 0), AS_(B, 1), AS_(C, 2), AS_(D, 3)); } static void name(A a, B b, C c, D d)
#define KERNEL5(name, A, a, B, b, C, c, D, d, E, e) \
	ENTRY(name, 5, SIZE(A), SIZE(B), SIZE(C), SIZE(D), SIZE(E)) static void name(A a, B b, C c, D d, E e); \
	static void name##_run(void **p_) { name(AS_(A, 0), AS_(B, 1), AS_(C, 2), AS_(D, 3), AS_(E, 4)); } \
	static void name(A a, B b, C c, D d, E e)
#define KERNEL6(name, A, a, B, b, C, c, D, d, E, e, F, f) \
	ENTRY(name, 6, SIZE(A), SIZE(B), SIZE(C), SIZE(D), SIZE(E), SIZE(F)) static void name(A a, B b, C c, D d, E e, F f); \
	static void name##_run(void **p_) { name(AS_(A, 0), AS_(B, 1), AS_(C, 2), AS_(D, 3), AS_(E, 4), AS_(F, 5)); } \
	static void name(A a, B b, C c, D d, E e, F f)
#define KERNEL13(name, A, a, B, b, C, c, D, d, E, e, F, f, G, g, H, h, I, i, J, j, K, k, L, l, M, m) \
	ENTRY(name, 13, SIZE(A), SIZE(B), SIZE(C), SIZE(D), SIZE(E), SIZE(F), SIZE(G), SIZE(H), SIZE(I), SIZE(J), SIZE(K), SIZE(L), SIZE(M)) \
	static void name(A a, B b, C c, D d, E e, F f, G g, H h, I i, J j, K k, L l, M m); \
	static void name##_run(void **p_) { \
		name(AS_(A, 0), AS_(B, 1), AS_(C, 2), AS_(D, 3), AS_(E, 4), AS_(F, 5), AS_(G, 6), AS_(H, 7), AS_(I, 8), AS_(J, 9), AS_(K, 10), \
			AS_(L, 11), AS_(M, 12)); \
	} \
	static void name(A a, B b, C c, D d, E e, F f, G g, H h, I i, J j, K k, L l, M m)

static inline u32 __float_as_uint(float f) { u32 u; memcpy(&u, &f, 4); return u; }
static inline float __uint_as_float(u32 u) { float f; memcpy(&f, &u, 4); return f; }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fsub_rn(float a, float b) { return a - b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline float __fsqrt_rn(float a) { return sqrtf(a); }
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline double __dsub_rn(double a, double b) { return a - b; }
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline double __ddiv_rn(double a, double b) { return a / b; }
static inline double __dsqrt_rn(double a) { return sqrt(a); }

#endif
