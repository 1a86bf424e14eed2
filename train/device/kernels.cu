// The kernels of package device. The text is CUDA C++ for NVRTC, which makes kernels.ptx of it (make kernels), and C for test/fake,
// which runs the same kernels on the host: so the tests of each line need no GPU. Rounding is written out (__fadd_rn and so
// on), since a fused multiply-add has other bits than package optim.

#ifdef __CUDACC_RTC__ // else test/fake/lib/kernel.h
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
#define DEVICE static __device__ __forceinline__
#define UNROLL _Pragma("unroll")
#define KERNEL(name) extern "C" __global__ void __launch_bounds__(THREADS) name
#define KERNEL2(name, A, a, B, b) KERNEL(name)(A a, B b)
#define KERNEL3(name, A, a, B, b, C, c) KERNEL(name)(A a, B b, C c)
#define KERNEL4(name, A, a, B, b, C, c, D, d) KERNEL(name)(A a, B b, C c, D d)
#define KERNEL5(name, A, a, B, b, C, c, D, d, E, e) KERNEL(name)(A a, B b, C c, D d, E e)
#define KERNEL6(name, A, a, B, b, C, c, D, d, E, e, F, f) KERNEL(name)(A a, B b, C c, D d, E e, F f)
#define KERNEL13(name, A, a, B, b, C, c, D, d, E, e, F, f, G, g, H, h, I, i, J, j, K, k, L, l, M, m) \
	KERNEL(name)(A a, B b, C c, D d, E e, F f, G g, H h, I i, J j, K k, L l, M m)
#endif

// A block has THREADS threads, and each of them EACH elements, THREADS apart: neighbours read neighbours, and a thread has
// EACH reads under way at a time, whatever the alignment is. Device.launch knows both numbers.
enum { THREADS = 256, EACH = 8 };

// AT is the k-th element of this thread; OVER runs what follows for those that there are.
#define AT ((u64)blockIdx.x * (THREADS * EACH) + (u64)k * THREADS + threadIdx.x)
#define OVER(n) UNROLL for (int k = 0; k < EACH; k++) if (AT < (n))

// wide is a bfloat16 as a float, and narrow the nearest bfloat16, as internal/reduce rounds: a NaN stays one.
DEVICE float wide(u16 h) { return __uint_as_float((u32)h << 16); }
DEVICE u16 narrow(float f) {
	u32 u = __float_as_uint(f);
	if (f != f) return (u16)(u >> 16 | 0x40);
	return (u16)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

// Zeros and copies, by the size of an element; float64 are two words.
#define ZERO(name, T) \
	KERNEL2(name, T *, dst, u64, n) { OVER(n) dst[AT] = 0; }
ZERO(zero_16, u16)
ZERO(zero_32, u32)

#define CONVERT(name, D, S, AS) \
	KERNEL3(name, D *, dst, const S *, src, u64, n) { \
		S x[EACH]; \
		OVER(n) x[k] = src[AT]; \
		OVER(n) dst[AT] = AS(x[k]); \
	}
#define SAME(x) (x)
#define NARROW64(x) narrow((float)(x)) // by way of float32
#define WIDE64(x) ((double)wide(x))
CONVERT(copy_16, u16, u16, SAME)
CONVERT(copy_32, u32, u32, SAME)
CONVERT(f32_of_bf16, float, u16, wide)
CONVERT(bf16_of_f32, u16, float, narrow)
CONVERT(f32_of_f64, float, double, (float))
CONVERT(f64_of_f32, double, float, (double))
CONVERT(f64_of_bf16, double, u16, WIDE64)
CONVERT(bf16_of_f64, u16, double, NARROW64)

// Element by element. Of bfloat16 the arithmetic is that of float32, rounded once.
#define ADD(name, T, F, FROM, TO, PLUS) \
	KERNEL3(name, T *, dst, const T *, src, u64, n) { \
		T x[EACH], y[EACH]; \
		OVER(n) x[k] = dst[AT], y[k] = src[AT]; \
		OVER(n) dst[AT] = TO(PLUS(FROM(x[k]), FROM(y[k]))); \
	}
#define BY(name, T, F, FROM, TO, OP) \
	KERNEL3(name, T *, dst, F, by, u64, n) { \
		T x[EACH]; \
		OVER(n) x[k] = dst[AT]; \
		OVER(n) dst[AT] = TO(OP(FROM(x[k]), by)); \
	}
ADD(add_f32, float, float, SAME, SAME, __fadd_rn)
ADD(add_f64, double, double, SAME, SAME, __dadd_rn)
BY(scale_f32, float, float, SAME, SAME, __fmul_rn)
BY(scale_f64, double, double, SAME, SAME, __dmul_rn)
BY(divide_f32, float, float, SAME, SAME, __fdiv_rn)
BY(divide_f64, double, double, SAME, SAME, __ddiv_rn)

// Of bfloat16 a thread takes two in a word, where all its block's are there and begin at words: half as many loads and stores.
#define WHOLE(n) (((u64)blockIdx.x + 1) * (THREADS * EACH) <= (n))
#define ALIGNED(p) (((u64)(p) & 3) == 0)
#define PAIR ((u64)blockIdx.x * (THREADS * EACH / 2) + (u64)k * THREADS + threadIdx.x)
#define PAIRS UNROLL for (int k = 0; k < EACH / 2; k++)
DEVICE float low(u32 w) { return __uint_as_float(w << 16); }
DEVICE float high(u32 w) { return __uint_as_float(w & 0xffff0000); }
DEVICE u32 pair(float a, float b) { return narrow(a) | (u32)narrow(b) << 16; }
KERNEL3(add_bf16, u16 *, dst, const u16 *, src, u64, n) {
	if (WHOLE(n) && ALIGNED(dst) && ALIGNED(src)) {
		u32 *d = (u32 *)dst, x[EACH / 2], y[EACH / 2];
		const u32 *s = (const u32 *)src;
		PAIRS x[k] = d[PAIR], y[k] = s[PAIR];
		PAIRS d[PAIR] = pair(__fadd_rn(low(x[k]), low(y[k])), __fadd_rn(high(x[k]), high(y[k])));
		return;
	}
	u16 x[EACH], y[EACH];
	OVER(n) x[k] = dst[AT], y[k] = src[AT];
	OVER(n) dst[AT] = narrow(__fadd_rn(wide(x[k]), wide(y[k])));
}
#define BY_BF16(name, OP) \
	KERNEL3(name, u16 *, dst, float, by, u64, n) { \
		if (WHOLE(n) && ALIGNED(dst)) { \
			u32 *d = (u32 *)dst, x[EACH / 2]; \
			PAIRS x[k] = d[PAIR]; \
			PAIRS d[PAIR] = pair(OP(low(x[k]), by), OP(high(x[k]), by)); \
			return; \
		} \
		u16 x[EACH]; \
		OVER(n) x[k] = dst[AT]; \
		OVER(n) dst[AT] = narrow(OP(wide(x[k]), by)); \
	}
BY_BF16(scale_bf16, __fmul_rn)
BY_BF16(divide_bf16, __fdiv_rn)

// The sum of squares, in an order that follows from n alone: the same bits on every device. Of LANES threads thread t adds up
// elements t, t+LANES, .. in four sums, the element of the j-th LANES to sum j%4, and leaves (s0+s1)+(s2+s3) in part[t]. fold then
// adds up the parts. Device.SumSquares launches them.
enum { LANES = 1 << 17, AHEAD = 16 }; // a thread has AHEAD reads under way; what is not there is a zero, which changes no sum
#define PLUS_SQUARE(sum, x) do { double v = (double)(x); sum = __dadd_rn(sum, __dmul_rn(v, v)); } while (0)
#define LANE(T, FROM) \
	u64 t = (u64)blockIdx.x * THREADS + threadIdx.x; \
	double s[4] = {0, 0, 0, 0}; \
	if (t >= LANES || t >= n) return; \
	for (u64 at = t; at < n; at += (u64)AHEAD * LANES) { \
		T y[AHEAD]; \
		if (at + (u64)(AHEAD - 1) * LANES < n) { \
			UNROLL for (int j = 0; j < AHEAD; j++) y[j] = x[at + (u64)j * LANES]; \
		} else { \
			UNROLL for (int j = 0; j < AHEAD; j++) y[j] = at + (u64)j * LANES < n ? x[at + (u64)j * LANES] : (T)0; \
		} \
		UNROLL for (int j = 0; j < AHEAD; j++) PLUS_SQUARE(s[j % 4], FROM(y[j])); \
	} \
	part[t] = __dadd_rn(__dadd_rn(s[0], s[1]), __dadd_rn(s[2], s[3]));
#define SQUARES(name, T, FROM) KERNEL3(name, double *, part, const T *, x, u64, n) { LANE(T, FROM) }
SQUARES(squares_f32, float, SAME)
SQUARES(squares_f64, double, SAME)

// Of bfloat16 a thread has two neighbouring lanes, whose elements are in one word where x begins at words, and twice AHEAD words under
// way: while it adds up some the next ones come. So half of the threads have four times as many bytes under way each, which the
// conversion to float64 and the additions need, or memory would wait for them. The sums are the same, and in the same order.
DEVICE void two_lanes(u32 *y, const u16 *x, u64 at, u64 n) {
	const u32 *w = (const u32 *)x;
	if (at + (u64)(AHEAD - 1) * LANES + 1 < n) {
		UNROLL for (int j = 0; j < AHEAD; j++) y[j] = w[(at + (u64)j * LANES) / 2];
		return;
	}
	UNROLL for (int j = 0; j < AHEAD; j++) {
		u64 k = at + (u64)j * LANES;
		y[j] = k + 1 < n ? w[k / 2] : k < n ? x[k] : 0;
	}
}
KERNEL3(squares_bf16, double *, part, const u16 *, x, u64, n) {
	if (!ALIGNED(x)) {
		LANE(u16, wide)
		return;
	}
	u64 t = 2 * ((u64)blockIdx.x * THREADS + threadIdx.x);
	double s[4] = {0, 0, 0, 0}, r[4] = {0, 0, 0, 0};
	if (t >= LANES || t >= n) return;
	u32 y[AHEAD], next[AHEAD];
	two_lanes(y, x, t, n);
	for (u64 at = t; at < n; at += (u64)AHEAD * LANES) {
		two_lanes(next, x, at + (u64)AHEAD * LANES, n);
		UNROLL for (int j = 0; j < AHEAD; j++) {
			PLUS_SQUARE(s[j % 4], low(y[j]));
			PLUS_SQUARE(r[j % 4], high(y[j]));
		}
		UNROLL for (int j = 0; j < AHEAD; j++) y[j] = next[j];
	}
	part[t] = __dadd_rn(__dadd_rn(s[0], s[1]), __dadd_rn(s[2], s[3]));
	if (t + 1 < LANES && t + 1 < n) part[t + 1] = __dadd_rn(__dadd_rn(r[0], r[1]), __dadd_rn(r[2], r[3]));
}

// fold leaves the sum of in[t], in[t+width], .. in out[t], for each t below width, which is at most n.
KERNEL4(fold, double *, out, const double *, in, u32, n, u32, width) {
	u32 t = blockIdx.x * THREADS + threadIdx.x;
	double s = 0;
	if (t >= width) return;
	for (u32 at = t; at < n; at += AHEAD * width) {
		double x[AHEAD];
		UNROLL for (int j = 0; j < AHEAD; j++) x[j] = at + j * width < n ? in[at + j * width] : 0;
		UNROLL for (int j = 0; j < AHEAD; j++) s = __dadd_rn(s, x[j]);
	}
	out[t] = s;
}

// AdamW in the order and with the roundings of optim.Apply, whose factors it is given.
#define ADAMW(name, T, ADD, SUB, MUL, DIV, SQRT) \
	KERNEL13(name, T *, p, const T *, g, T *, m, T *, v, u64, n, T, b1, T, a1, T, b2, T, a2, T, rate, T, root, T, keep, T, eps) { \
		T pk[EACH], gk[EACH], mk[EACH], vk[EACH]; \
		OVER(n) pk[k] = p[AT], gk[k] = g[AT], mk[k] = m[AT], vk[k] = v[AT]; \
		OVER(n) { \
			T mi = ADD(MUL(b1, mk[k]), MUL(a1, gk[k])); \
			T vi = ADD(MUL(b2, vk[k]), MUL(MUL(a2, gk[k]), gk[k])); \
			T d = ADD(MUL(SQRT(vi), root), eps); \
			m[AT] = mi, v[AT] = vi; \
			p[AT] = SUB(MUL(pk[k], keep), DIV(MUL(rate, mi), d)); \
		} \
	}
ADAMW(adamw_f32, float, __fadd_rn, __fsub_rn, __fmul_rn, __fdiv_rn, __fsqrt_rn)
ADAMW(adamw_f64, double, __dadd_rn, __dsub_rn, __dmul_rn, __ddiv_rn, __dsqrt_rn)

// decay is e to the x for x of at most 0, to within 2 units in the last place, 0 below -87: by Cephes' expf, in one order of
// operations, so that it has the same bits everywhere.
DEVICE float decay(float x) {
	if (x != x) return x;
	if (x < -87.0f) return 0;
	float n = __fsub_rn(__fadd_rn(__fmul_rn(x, 1.44269504f), 12582912.0f), 12582912.0f); // the nearest whole number
	float r = __fsub_rn(__fsub_rn(x, __fmul_rn(n, 0.693359375f)), __fmul_rn(n, -2.12194440e-4f));
	float y = 1.9875691500e-4f;
	y = __fadd_rn(__fmul_rn(y, r), 1.3981999507e-3f);
	y = __fadd_rn(__fmul_rn(y, r), 8.3334519073e-3f);
	y = __fadd_rn(__fmul_rn(y, r), 4.1665795894e-2f);
	y = __fadd_rn(__fmul_rn(y, r), 1.6666665459e-1f);
	y = __fadd_rn(__fmul_rn(y, r), 5.0000001201e-1f);
	y = __fadd_rn(__fadd_rn(__fmul_rn(__fmul_rn(y, r), r), r), 1);
	return __fmul_rn(y, __uint_as_float((u32)((int)n + 127) << 23));
}

// weight is what a row counts, whose greatest score is max, where the greatest of both blocks is most. -Inf is all masked.
DEVICE float weight(float max, float most) { return max == most ? 1 : decay(__fsub_rn(max, most)); }
DEVICE float greater(float a, float b) { return a > b ? a : b; }

// Merging two blocks of attention, as sp.Softmax.Add does it with one that is computed: first the greatest scores and the sums of the
// weights of their rows, which leaves what both blocks count in weights, [rows][2], then the values, [n / dim][dim].
KERNEL6(merge_rows, float *, max, float *, sum, const float *, other_max, const float *, other_sum, float *, weights, u64, rows) {
	OVER(rows) {
		float a = max[AT], b = other_max[AT], most = greater(a, b), wa = weight(a, most), wb = weight(b, most);
		sum[AT] = __fadd_rn(__fmul_rn(sum[AT], wa), __fmul_rn(other_sum[AT], wb));
		max[AT] = most;
		weights[2 * AT] = wa, weights[2 * AT + 1] = wb;
	}
}
KERNEL5(merge_values, float *, out, const float *, other, const u64 *, weights, u64, n, u32, dim) {
	float x[EACH], y[EACH], a[EACH], b[EACH];
	OVER(n) {
		u64 row = n >> 32 ? AT / dim : (u32)AT / dim; // a division of 32 bits is a third as long
		u64 w = weights[row]; // both in one read
		x[k] = out[AT], y[k] = other[AT], a[k] = __uint_as_float((u32)w), b[k] = __uint_as_float((u32)(w >> 32));
	}
	OVER(n) out[AT] = __fadd_rn(__fmul_rn(x[k], a[k]), __fmul_rn(y[k], b[k]));
}
