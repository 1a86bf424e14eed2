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

// seen is how many keys the weights of token t are computed for: those that it sees, and masked ones up to a multiple of
// what vector registers hold.
func (n *Net[T]) seen(t int) int { return min((t+16)&^15, n.Context) }

// take copies n columns of rows with that stride from column off.
func take[T Float](dst, src []T, rows, stride, off, n int) {
	for t := range rows {
		copy(dst[t*n:t*n+n], src[t*stride+off:])
	}
}

// put is the inverse of take.
func put[T Float](dst, src []T, rows, stride, off, n int) {
	for t := range rows {
		copy(dst[t*stride+off:], src[t*n:t*n+n])
	}
}

// Attend sets y, [tokens][width of heads], to the attention of some heads over whole sequences: queries, keys and values
// lie side by side in qkv, [tokens]. att, [sequences][heads][Context][Context], keeps the weights for AttendBack.
func (n *Net[T]) Attend(qkv, y, att []T, heads int) {
	ctx, hs := n.Context, n.Width/n.Heads
	d := heads * hs
	clear(att)
	scale := T(1 / math.Sqrt(float64(hs)))
	b := n.heads("heads", 4)
	q, k, v, o := b[0], b[1], b[2], b[3]
	for r := range len(y) / d / ctx {
		z := qkv[r*ctx*3*d:]
		for h := range heads {
			take(q, z, ctx, 3*d, h*hs, hs)
			take(k, z, ctx, 3*d, d+h*hs, hs)
			take(v, z, ctx, 3*d, 2*d+h*hs, hs)
			s := att[(r*heads+h)*ctx*ctx:][:ctx*ctx]
			n.K.Mul(false, true, ctx, ctx, hs, q, k, s)
			for t := range ctx { // a token sees itself and those before
				row := s[t*ctx : t*ctx+ctx]
				seen := n.seen(t)
				for u := t + 1; u < seen; u++ {
					row[u] = T(math.Inf(-1))
				}
				n.K.Softmax(row[:seen], scale)
				clear(row[seen:])
			}
			clear(o)
			n.K.Mul(false, false, ctx, hs, ctx, s, v, o)
			put(y[r*ctx*d:], o, ctx, d, h*hs, hs)
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
	ds := n.scratch("ds", ctx*ctx, false)
	for r := range len(dy) / d / ctx {
		z, dz := qkv[r*ctx*3*d:], dqkv[r*ctx*3*d:]
		for h := range heads {
			take(q, z, ctx, 3*d, h*hs, hs)
			take(k, z, ctx, 3*d, d+h*hs, hs)
			take(v, z, ctx, 3*d, 2*d+h*hs, hs)
			take(do, dy[r*ctx*d:], ctx, d, h*hs, hs)
			s := att[(r*heads+h)*ctx*ctx:][:ctx*ctx]
			clear(ds)
			clear(dq)
			clear(dk)
			clear(dv)
			n.K.Mul(false, true, ctx, ctx, hs, do, v, ds)
			n.K.Mul(true, false, ctx, hs, ctx, s, do, dv)
			for t := range ctx {
				seen := n.seen(t)
				n.K.SoftmaxBack(ds[t*ctx:t*ctx+seen], s[t*ctx:t*ctx+seen], scale)
				clear(ds[t*ctx+seen : t*ctx+ctx])
			}
			n.K.Mul(false, false, ctx, hs, ctx, ds, k, dq)
			n.K.Mul(true, false, ctx, hs, ctx, ds, q, dk)
			put(dz, dq, ctx, 3*d, h*hs, hs)
			put(dz, dk, ctx, 3*d, d+h*hs, hs)
			put(dz, dv, ctx, 3*d, 2*d+h*hs, hs)
		}
	}
}
