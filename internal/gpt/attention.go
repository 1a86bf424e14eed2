package gpt

import "math"

// heads are the buffers of one head of one sequence: its columns of queries, keys and values, and more.
func (n *Net[T]) heads(name string, k int) [][]T {
	size := n.Context * n.Width / n.Heads
	mem := n.scratch(name, k*size, false)
	var b [][]T
	for i := range k {
		b = append(b, mem[i*size:(i+1)*size])
	}
	return b
}

// seen is how many keys the weights of token t are computed for: those that it sees, and masked
// ones up to a multiple of what vector registers hold.
func (n *Net[T]) seen(t int) int { return min((t+16)&^15, n.Context) }

// Take copies n columns of rows with that stride from column off.
func Take[T Float](dst, src []T, rows, stride, off, n int) {
	for t := range rows {
		copy(dst[t*n:t*n+n], src[t*stride+off:])
	}
}

// Put is the inverse of Take.
func Put[T Float](dst, src []T, rows, stride, off, n int) {
	for t := range rows {
		copy(dst[t*stride+off:], src[t*n:t*n+n])
	}
}

// band is how many queries Attend takes at once: their scores are computed for the keys up to the last of them, and not
// for those that none of them sees.
const band = 48

// Attend sets y, [tokens][width of heads], to the attention of some heads over whole sequences:
// queries, keys and values lie side by side in qkv, [tokens]. att,
// [sequences][heads][Context][Context], keeps the weights for AttendBack: those of the queries from
// lo to hi begin at lo*Context, in rows of hi.
func (n *Net[T]) Attend(qkv, y, att []T, heads int) {
	ctx, hs := n.Context, n.Width/n.Heads
	d := heads * hs
	scale := T(1 / math.Sqrt(float64(hs)))
	b := n.heads("heads", 4)
	q, k, v, o := b[0], b[1], b[2], b[3]
	for r := range len(y) / d / ctx {
		z := qkv[r*ctx*3*d:]
		for h := range heads {
			Take(q, z, ctx, 3*d, h*hs, hs)
			Take(k, z, ctx, 3*d, d+h*hs, hs)
			Take(v, z, ctx, 3*d, 2*d+h*hs, hs)
			all := att[(r*heads+h)*ctx*ctx:][:ctx*ctx]
			clear(o)
			for lo := 0; lo < ctx; lo += band {
				hi := min(lo+band, ctx)
				s := all[lo*ctx:][:(hi-lo)*hi]
				clear(s)
				n.K.Mul(false, true, hi-lo, hi, hs, q[lo*hs:hi*hs], k[:hi*hs], s)
				for t := lo; t < hi; t++ { // a token sees itself and those before
					row := s[(t-lo)*hi:][:hi]
					seen := n.seen(t)
					for u := t + 1; u < seen; u++ {
						row[u] = T(math.Inf(-1))
					}
					n.K.Softmax(row[:seen], scale)
					clear(row[seen:])
				}
				n.K.Mul(false, false, hi-lo, hs, hi, s, v[:hi*hs], o[lo*hs:hi*hs])
			}
			Put(y[r*ctx*d:], o, ctx, d, h*hs, hs)
		}
	}
}

// AttendBack sets dqkv to the gradient of qkv, given that of y.
func (n *Net[T]) AttendBack(qkv, att, dy, dqkv []T, heads int) {
	ctx, hs := n.Context, n.Width/n.Heads
	d := heads * hs
	scale := T(1 / math.Sqrt(float64(hs)))
	b := n.heads("heads back", 7)
	q, k, v, do, dq, dk, dv := b[0], b[1], b[2], b[3], b[4], b[5], b[6]
	grad := n.scratch("ds", min(band, ctx)*ctx, false)
	for r := range len(dy) / d / ctx {
		z, dz := qkv[r*ctx*3*d:], dqkv[r*ctx*3*d:]
		for h := range heads {
			Take(q, z, ctx, 3*d, h*hs, hs)
			Take(k, z, ctx, 3*d, d+h*hs, hs)
			Take(v, z, ctx, 3*d, 2*d+h*hs, hs)
			Take(do, dy[r*ctx*d:], ctx, d, h*hs, hs)
			all := att[(r*heads+h)*ctx*ctx:][:ctx*ctx]
			clear(dq)
			clear(dk)
			clear(dv)
			for lo := 0; lo < ctx; lo += band {
				hi := min(lo+band, ctx)
				s, ds := all[lo*ctx:][:(hi-lo)*hi], grad[:(hi-lo)*hi]
				clear(ds)
				n.K.Mul(false, true, hi-lo, hi, hs, do[lo*hs:hi*hs], v[:hi*hs], ds)
				n.K.Mul(true, false, hi, hs, hi-lo, s, do[lo*hs:hi*hs], dv[:hi*hs])
				for t := lo; t < hi; t++ {
					seen, at := n.seen(t), (t-lo)*hi
					n.K.SoftmaxBack(ds[at:at+seen], s[at:at+seen], scale)
					clear(ds[at+seen : at+hi])
				}
				n.K.Mul(false, false, hi-lo, hs, hi, ds, k[:hi*hs], dq[lo*hs:hi*hs])
				n.K.Mul(true, false, hi, hs, hi-lo, ds, q[lo*hs:hi*hs], dk[:hi*hs])
			}
			Put(dz, dq, ctx, 3*d, h*hs, hs)
			Put(dz, dk, ctx, 3*d, d+h*hs, hs)
			Put(dz, dv, ctx, 3*d, 2*d+h*hs, hs)
		}
	}
}
