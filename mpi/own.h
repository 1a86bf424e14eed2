// Reductions of our own. 16-bit floats, which MPI has not: in float32, then to nearest even; the bits
// are those of ccl's CPU engine (internal/reduce), NaNs and signed zeros included. And what a library
// gets wrong, for all libraries:
//
//	SIGNED     MPICH 4.0.2 compares unsigned integers as if they were signed, MPICH 5.0.2 does not
//	SATURATES  Open MPI 4.1.4 and 5.0.11 saturate sums of 8- and 16-bit integers where they use AVX
#include <stdint.h>
#include <string.h>

static inline uint32_t bits_of(float f) { uint32_t u; memcpy(&u, &f, sizeof u); return u; }
static inline float float_of(uint32_t u) { float f; memcpy(&f, &u, sizeof f); return f; }

static inline float from_bf16(uint16_t h) { return float_of((uint32_t)h << 16); }
static inline uint16_t to_bf16(float f) {
	const uint32_t u = bits_of(f);
	return f != f ? (u >> 16) | 0x40 : (u + 0x7fff + (u >> 16 & 1)) >> 16;
}

static inline float from_f16(uint16_t h) {
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, u = (uint32_t)(h & 0x7fff) << 13;
	if (u < 0x7c00 << 13) u = bits_of(float_of(u) * 0x1p112f); // moves the exponent's bias, for denormals too
	else if (u == 0x7c00 << 13) u = 0x7f800000;
	else u |= 0x7fc00000;
	return float_of(sign | u);
}
static inline uint16_t to_f16(float f) {
	uint32_t u = bits_of(f);
	const uint16_t sign = u >> 16 & 0x8000;
	u &= 0x7fffffff;
	if (u > 0x7f800000) return sign | 0x7e00 | (u >> 13 & 0x3ff);
	if (u >= 0x47800000) return sign | 0x7c00; // 2^16
	if (u >= 0x38800000) return sign | (u - (112u << 23) + 0xfff + (u >> 13 & 1)) >> 13; // 2^-14: normal
	return sign | (uint16_t)(bits_of(float_of(u) + 0.5f) - bits_of(0.5f)); // a unit in the last place of 0.5 is that of a denormal
}

// order orders all but NaNs, from -Inf to -0, +0 and +Inf.
static inline int16_t order(uint16_t h) { return (int16_t)h ^ ((int16_t)h >> 15 & 0x7fff); }

// either is the first NaN of x and y or, without any, x if first, else y.
static inline uint16_t either(uint16_t x, uint16_t y, uint16_t inf, int first) {
	if ((x & 0x7fff) > inf) return x | inf >> 1;
	if ((y & 0x7fff) > inf) return y | inf >> 1;
	return first ? x : y;
}

#define OWN(type, name, expression) \
	static void own_##name(const void *in, void *inout, int n) { \
		const type *a = in; \
		type *b = inout; \
		for (int i = 0; i < n; i++) { \
			const type x = a[i], y = b[i]; \
			b[i] = expression; \
		} \
	}
OWN(uint16_t, f16_sum, to_f16(from_f16(x) + from_f16(y)))
OWN(uint16_t, f16_prod, to_f16(from_f16(x) * from_f16(y)))
OWN(uint16_t, f16_min, either(x, y, 0x7c00, order(x) < order(y)))
OWN(uint16_t, f16_max, either(x, y, 0x7c00, order(x) > order(y)))
OWN(uint16_t, bf16_sum, to_bf16(from_bf16(x) + from_bf16(y)))
OWN(uint16_t, bf16_prod, to_bf16(from_bf16(x) * from_bf16(y)))
OWN(uint16_t, bf16_min, either(x, y, 0x7f80, order(x) < order(y)))
OWN(uint16_t, bf16_max, either(x, y, 0x7f80, order(x) > order(y)))
OWN(uint8_t, u8_sum, x + y)
OWN(uint16_t, u16_sum, x + y)
#define ORDER(bits) \
	OWN(uint##bits##_t, u##bits##_min, x < y ? x : y) \
	OWN(uint##bits##_t, u##bits##_max, x > y ? x : y)
ORDER(8)
ORDER(16)
ORDER(32)
ORDER(64)
#undef ORDER
#undef OWN

// placed is a key and where it is. The greater key wins, and of equal ones the lower place.
typedef struct { uint64_t key; int64_t place; } placed;
static void own_placed(const void *in, void *inout, int n) {
	const placed *a = in;
	placed *b = inout;
	for (int i = 0; i < n; i++)
		if (a[i].key > b[i].key || (a[i].key == b[i].key && a[i].place < b[i].place)) b[i] = a[i];
}
