// Reductions, always in rank order, so that every rank gets the same bits.
#include "ccl.h"
#include "reduce.h"

static float of_half(uint16_t h) { _Float16 f; memcpy(&f, &h, 2); return f; }
static uint16_t to_half(float f) { _Float16 g = f; uint16_t h; memcpy(&h, &g, 2); return h; }
static float of_bfloat(uint16_t h) { uint32_t u = (uint32_t)h << 16; float f; memcpy(&f, &u, 4); return f; }
static uint16_t to_bfloat(float f) {
	uint32_t u;
	memcpy(&u, &f, 4);
	return f != f ? 0x7fc0 : (u + 0x7fff + (u >> 16 & 1)) >> 16;
}

// 8-bit floats: 4 or 5 bits of exponent. e4m3 has no infinities, and one NaN.
static float of_f8(uint8_t b, int mantissa) {
	int bias = mantissa == 3 ? 7 : 15, e = (b & 0x7f) >> mantissa, m = b & ((1 << mantissa) - 1);
	float f = __builtin_ldexpf(e ? m + (1 << mantissa) : m, (e ? e : 1) - bias - mantissa);
	if (mantissa == 3 && (b & 0x7f) == 0x7f)
		f = __builtin_nanf("");
	if (mantissa == 2 && e == 31)
		f = m ? __builtin_nanf("") : __builtin_inff();
	return b & 0x80 ? -f : f;
}
static uint8_t to_f8(float f, int mantissa) { // the nearest; of two, the even one
	uint8_t best = 0, most = mantissa == 3 ? 0x7e : 0x7b, sign = __builtin_signbit(f) ? 0x80 : 0;
	float a = __builtin_fabsf(f), error = __builtin_inff();
	if (f != f)
		return 0x7f;
	if (a > of_f8(most, mantissa)) // an infinity too (satfinite of cuda_fp8.h)
		return most | sign;
	for (int b = 0; b <= most; b++) {
		float d = __builtin_fabsf(of_f8(b, mantissa) - a);
		if (d < error || (d == error && !(b & 1)))
			best = b, error = d;
	}
	return best | sign;
}
static float of_e4m3(uint8_t b) { return of_f8(b, 3); }
static float of_e5m2(uint8_t b) { return of_f8(b, 2); }
static uint8_t to_e4m3(float f) { return to_f8(f, 3); }
static uint8_t to_e5m2(float f) { return to_f8(f, 2); }

// Of a number and a NaN, MAX and MIN take the number (fmaxf and the like, src/device/reduce_kernel.h).
#define ELSE(a) __builtin_isnan((double)(a))
#define COMBINE(a, b) \
	(op == GCCL_PROD ? (a) * (b) : op == GCCL_MAX ? ((b) > (a) || ELSE(a) ? (b) : (a)) : op == GCCL_MIN ? ((b) < (a) || ELSE(a) ? (b) : (a)) : (a) + (b))
// The element is rounded after each step, as a rank stores it.
#define LOOP(T, A, OF, TO) \
	for (size_t i = 0; i < n; i++) { \
		A v = OF(((const T *)in)[i]); \
		for (int r = 1; r < ranks; r++) { \
			A w = OF(((const T *)(in + r * stride))[i]); \
			v = OF((T)TO((A)COMBINE(v, w))); \
		} \
		((T *)out)[i] = TO((A)(op == GCCL_AVG ? v / (A)ranks : v)); \
	} \
	break

const int type_size[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1 };

void reduce(char *out, const char *in, size_t stride, int ranks, size_t n, int type, int op) {
	switch (type) {
	case GCCL_INT8: LOOP(int8_t, int8_t, , );
	case GCCL_UINT8: LOOP(uint8_t, uint8_t, , );
	case GCCL_INT32: LOOP(int32_t, int32_t, , );
	case GCCL_UINT32: LOOP(uint32_t, uint32_t, , );
	case GCCL_INT64: LOOP(int64_t, int64_t, , );
	case GCCL_UINT64: LOOP(uint64_t, uint64_t, , );
	case GCCL_FLOAT16: LOOP(uint16_t, float, of_half, to_half);
	case GCCL_BFLOAT16: LOOP(uint16_t, float, of_bfloat, to_bfloat);
	case GCCL_FLOAT32: LOOP(float, float, , );
	case GCCL_FLOAT64: LOOP(double, double, , );
	case GCCL_FLOAT8E4M3: LOOP(uint8_t, float, of_e4m3, to_e4m3);
	case GCCL_FLOAT8E5M2: LOOP(uint8_t, float, of_e5m2, to_e5m2);
	}
}

double element(const void *p, int type) {
	switch (type) {
	case GCCL_FLOAT16: return of_half(*(const uint16_t *)p);
	case GCCL_BFLOAT16: return of_bfloat(*(const uint16_t *)p);
	case GCCL_FLOAT32: return *(const float *)p;
	case GCCL_FLOAT64: return *(const double *)p;
	}
	return 0;
}

void multiply(char *p, size_t n, int type, double factor) {
	for (size_t i = 0; i < n; i++)
		switch (type) {
		case GCCL_FLOAT16: ((uint16_t *)p)[i] = to_half(of_half(((uint16_t *)p)[i]) * (float)factor); break;
		case GCCL_BFLOAT16: ((uint16_t *)p)[i] = to_bfloat(of_bfloat(((uint16_t *)p)[i]) * (float)factor); break;
		case GCCL_FLOAT32: ((float *)p)[i] *= (float)factor; break;
		case GCCL_FLOAT64: ((double *)p)[i] *= factor; break;
		}
}
