package mat

import "sync"

// The blocks of Mul: depth is how many rows of B a pass multiplies, so that a kernel's rows of A stay in the first cache;
// wide how many of its columns, which stay in the second.
const (
	depth = 256
	wide  = 1024
	// stripes is how many times a kernel's rows of a transposed A are packed at once: of AVX-512, three whole cache lines.
	stripes = 4
)

// panel is memory to pack B in, and rows of a transposed A.
type panel struct {
	b []float32
	a [stripes][maxRows * depth]float32
}

var panels = sync.Pool{New: func() any { return new(panel) }}

// Mul adds op(a) op(b) to c, which has m rows and n columns, after Goto and van de Geijn (2008): B is packed by panels of
// columns, and a register kernel reads A where it lies, unless it is transposed: then what the kernel reads one after the
// other is a whole row of a apart, often in one set of the cache, so that it is packed as well. op(a) has k columns; with ta, a is stored as k rows of m; with
// tb, b is stored as n rows of k. The slices may be longer.
func Mul(ta, tb bool, m, n, k int, a, b, c []float32) {
	if m == 0 || n == 0 || k == 0 {
		return
	}
	a, b, c = a[:m*k], b[:k*n], c[:m*n]
	rows, columns := tile()
	p := panels.Get().(*panel)
	if size := min(k, depth) * (min(n, wide) + columns); len(p.b) < size {
		p.b = make([]float32, size)
	}
	for j0 := 0; j0 < n; j0 += wide {
		nb := min(wide, n-j0)
		for k0 := 0; k0 < k; k0 += depth {
			kb := min(depth, k-k0)
			for j := 0; j < nb; j += columns {
				pack(tb, n, k, k0, kb, j0+j, min(columns, nb-j), columns, b, p.b[j*kb:])
			}
			at, si, sk := k0, k, 1
			if ta {
				at, si, sk = k0*m, 1, m
			}
			i := 0
			for ; i+rows <= m; i += rows {
				if ta && nb > columns {
					s := i / rows % stripes
					if s == 0 {
						p.packRows(min(stripes, (m-i)/rows), rows, kb, m, a[at+i:])
					}
					stripe(rows, nb, n, kb, p.a[s][:], 1, rows, p.b, c[i*n+j0:])
					continue
				}
				stripe(rows, nb, n, kb, a[at+i*si:], si, sk, p.b, c[i*n+j0:])
			}
			if i < m {
				rest(m-i, nb, n, kb, a[at+i*si:], si, sk, p.b, c[i*n+j0:])
			}
		}
	}
	panels.Put(p)
}

// MulOn is Mul on that many cores, which share the rows of c. The bits are those of Mul.
func MulOn(cores int, ta, tb bool, m, n, k int, a, b, c []float32) {
	rows, _ := tile()
	all := (m + rows - 1) / rows
	cores = min(cores, all)
	if cores < 2 || m*n*k < 1<<20 || ta {
		Mul(ta, tb, m, n, k, a, b, c)
		return
	}
	var wg sync.WaitGroup
	for i := range cores {
		lo, hi := min(i*all/cores*rows, m), min((i+1)*all/cores*rows, m)
		wg.Go(func() { Mul(false, tb, hi-lo, n, k, a[lo*k:hi*k], b, c[lo*n:hi*n]) })
	}
	wg.Wait()
}

// pack lays kb rows and w columns of op(b), from (k0, j0) on, side by side: rows of columns elements, filled with zeros.
func pack(tb bool, n, k, k0, kb, j0, w, columns int, b, p []float32) {
	p = p[:kb*columns]
	if !tb {
		for i := range kb {
			at := (k0+i)*n + j0
			d := p[i*columns : (i+1)*columns]
			clear(d[copy(d, b[at:at+w]):])
		}
		return
	}
	if w < columns {
		clear(p)
	}
	j := 0
	for ; j+8 <= w; j += 8 { // eight rows of b at once, so that a cache line of p is not written by one element at a time
		var in [8][]float32
		for q := range in {
			at := (j0+j+q)*k + k0
			in[q] = b[at : at+kb]
		}
		r0, r1, r2, r3, r4, r5, r6, r7 := in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7]
		r1, r2, r3, r4, r5, r6, r7 = r1[:len(r0)], r2[:len(r0)], r3[:len(r0)], r4[:len(r0)], r5[:len(r0)], r6[:len(r0)], r7[:len(r0)]
		for i, v := range r0 {
			d := (*[8]float32)(p[i*columns+j:])
			d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7] = v, r1[i], r2[i], r3[i], r4[i], r5[i], r6[i], r7[i]
		}
	}
	for ; j < w; j++ {
		at := (j0+j)*k + k0
		for i, v := range b[at : at+kb] {
			p[i*columns+j] = v
		}
	}
}

// packRows lays the first rows elements of kb rows of a, which have m, side by side; and the next so many, of all stripes.
func (p *panel) packRows(have, rows, kb, m int, a []float32) {
	for q := range kb {
		from := a[q*m:]
		for s := range have {
			if rows == 12 { // of AVX-512: copied without a call
				*(*[12]float32)(p.a[s][q*12:]) = *(*[12]float32)(from[s*12:])
			} else {
				copy(p.a[s][q*rows:(q+1)*rows], from[s*rows:])
			}
		}
	}
}

// stripe multiplies as many rows as the kernel takes with the packed columns in p, nb of them, and adds that to c, whose
// rows have n. Only have of the rows are wanted.
func stripe(have, nb, n, kb int, a []float32, si, sk int, p, c []float32) {
	rows, columns := tile()
	for j := 0; j < nb; j += columns {
		if have == rows && j+columns <= nb {
			mul(kb, a, si, sk, p[j*kb:], c[j:], n)
			continue
		}
		var out [maxRows * maxColumns]float32
		mul(kb, a, si, sk, p[j*kb:], out[:], columns)
		w := min(columns, nb-j)
		for r := range have {
			for q, v := range out[r*columns : r*columns+w] {
				c[r*n+j+q] += v
			}
		}
	}
}

// rest is stripe for the last rows, fewer than the kernel takes: the others are zeros.
func rest(have, nb, n, kb int, a []float32, si, sk int, p, c []float32) {
	var last [maxRows * depth]float32
	for r := range have {
		for q := range kb {
			last[r*kb+q] = a[r*si+q*sk]
		}
	}
	stripe(have, nb, n, kb, last[:], kb, 1, p, c)
}
