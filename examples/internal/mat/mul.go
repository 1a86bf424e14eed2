package mat

import "sync"

// The blocks of Mul: depth is how many rows of B a pass multiplies, so that a kernel's rows of A
// stay in the first cache; wide how many of its columns, which stay in the second.
const (
	depth = 256
	wide  = 1024
	// stripes is how many times a kernel's rows of a transposed A are packed at once: of AVX-512, three whole cache lines.
	stripes = 4
	// crowded is what the stride of A, in bytes, is a multiple of if the rows that a kernel reads
	// share one set of the first cache, which has fewer ways than that.
	crowded = 4096
	// part is room for the rows of one stripe.
	part = maxRows * (depth + step)
)

// panel is memory to pack B in, and rows of A.
type panel struct {
	b []float32
	a [stripes * part]float32
}

var panels = sync.Pool{New: func() any { return new(panel) }}

// Mul adds op(a) op(b) to c, which has m rows and n columns, after Goto and van de Geijn (2008). B
// is packed by panels of columns. A register kernel reads A where it lies, unless what it reads
// together would share a set of the first cache: then rows of A are packed as well. op(a) has k
// columns; with ta, a is stored as k rows of m; with tb, b is stored as n rows of k. The slices may
// be longer.
func Mul(ta, tb bool, m, n, k int, a, b, c []float32) {
	if m == 0 || n == 0 || k == 0 {
		return
	}
	a, b, c = a[:m*k], b[:k*n], c[:m*n]
	_, _, columns := tile()
	p := panels.Get().(*panel)
	if size := min(k, depth) * (min(n, wide) + columns); len(p.b) < size {
		p.b = make([]float32, size)
	}
	for j0 := 0; j0 < n; j0 += wide {
		nb := min(wide, n-j0)
		for k0 := 0; k0 < k; k0 += depth {
			kb := min(depth, k-k0)
			for j := 0; j < nb; j += columns {
				w := min(columns, nb-j)
				if tb {
					packColumns(kb, w, columns, k, p.b[j*kb:], b[(j0+j)*k+k0:])
				} else {
					packB(kb, w, columns, n, p.b[j*kb:], b[k0*n+j0+j:])
				}
			}
			if ta {
				p.transposed(m, nb, n, kb, a[k0*m:], c[j0:])
			} else {
				p.straight(m, nb, n, kb, k, a[k0:], c[j0:])
			}
		}
	}
	panels.Put(p)
}

// straight multiplies m rows of a, kb of the k columns that it has, with the nb packed columns, into c of n columns.
func (p *panel) straight(m, nb, n, kb, k int, a, c []float32) {
	rows, few, columns := tile()
	beside := 4*k%crowded == 0 && nb > columns
	for i := 0; i < m; {
		r := rows
		if m-i < rows {
			r = few
		}
		have := min(r, m-i)
		at, si := a[i*k:], k
		if have < r || beside {
			at, si = p.a[:part], kb+step
			for q := range r {
				to := at[q*si : q*si+kb]
				if q < have {
					copy(to, a[(i+q)*k:])
				} else {
					clear(to)
				}
			}
		}
		stripe(r, have, nb, n, kb, at, si, 1, p.b, c[i*n:])
		i += have
	}
}

// transposed is straight for an a that has kb rows of m.
func (p *panel) transposed(m, nb, n, kb int, a, c []float32) {
	rows, few, columns := tile()
	for i, s, packed := 0, 0, 0; i < m; {
		if m-i < rows { // the end
			have := min(few, m-i)
			at := p.a[:kb*few]
			for q := range kb {
				clear(at[q*few+copy(at[q*few:q*few+few], a[q*m+i:q*m+i+have]) : q*few+few])
			}
			stripe(few, have, nb, n, kb, at, 1, few, p.b, c[i*n:])
			i += have
			continue
		}
		at, sk := a[i:], m
		if nb > columns {
			if s++; s >= packed {
				s, packed = 0, min(stripes, (m-i)/rows)
				packRows(kb, m, packed, part, p.a[:], at)
			}
			at, sk = p.a[s*part:(s+1)*part], rows
		}
		stripe(rows, rows, nb, n, kb, at, 1, sk, p.b, c[i*n:])
		i += rows
	}
}

// packB lays w columns of kb rows of b, whose rows are stride long, side by side: rows of columns
// elements, filled with zeros.
func packB(kb, w, columns, stride int, p, b []float32) {
	if w == columns {
		pack(kb, stride, p[:kb*columns], b[:(kb-1)*stride+columns])
		return
	}
	for i := range kb {
		d := p[i*columns : (i+1)*columns]
		clear(d[copy(d, b[i*stride:i*stride+w]):])
	}
}

// packColumns is packB for a b that is transposed: w rows of kb elements.
func packColumns(kb, w, columns, stride int, p, b []float32) {
	const block = 8 // packT transposes blocks of 8 x 8
	if w < columns {
		clear(p[:kb*columns])
	}
	whole := kb &^ (block - 1)
	for j := 0; j < w; j += block {
		done := 0
		if whole > 0 && j+block <= w {
			packT(whole, stride, p[j:(whole-1)*columns+j+block], b[j*stride:(j+block-1)*stride+whole])
			done = whole
		}
		for q := j; q < min(j+block, w); q++ {
			for i := done; i < kb; i++ {
				p[i*columns+q] = b[q*stride+i]
			}
		}
	}
}

// stripe multiplies r rows, as many as a kernel takes, with the packed columns in p, nb of them,
// and adds that to c, whose rows have n. Only have of the rows are wanted.
func stripe(r, have, nb, n, kb int, a []float32, si, sk int, p, c []float32) {
	_, _, columns := tile()
	for j := 0; j < nb; j += columns {
		if have == r && j+columns <= nb {
			mul(r, kb, a, si, sk, p[j*kb:], c[j:], n)
			continue
		}
		var out [maxRows * maxColumns]float32
		mul(r, kb, a, si, sk, p[j*kb:], out[:], columns)
		w := min(columns, nb-j)
		for i := range have {
			for q, v := range out[i*columns : i*columns+w] {
				c[i*n+j+q] += v
			}
		}
	}
}
