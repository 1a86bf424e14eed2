package gpt

import "math"

func (n *Net[T]) act() *act[T] {
	if k := len(n.free); k > 0 {
		a := n.free[k-1]
		n.free = n.free[:k-1]
		return a
	}
	w, parts := n.Width, n.split.Size()
	f := func(k int) []T { return make([]T, k) }
	return &act[T]{ln1: f(n.n * w), xh1: f(n.s * w), rs1: f(n.s), qkv: f(n.n * 3 * w / parts), y: f(n.n * w / parts),
		att: f(n.n * n.Heads / parts * n.Context), ln2: f(n.n * w), xh2: f(n.s * w), rs2: f(n.s),
		h: f(n.n * 4 * w / parts), s: f(n.n * 4 * w / parts), g: f(n.n * 4 * w / parts)}
}

// enter normalizes this rank's tokens, and makes full the result for all of them.
func (n *Net[T]) enter(full, xh, rs, x, w []T) error {
	part := full
	if n.split.Sequence() {
		part = n.scratch("part", n.Len(), false)
	}
	n.K.Norm(part, xh, rs, x, w)
	got, err := n.split.Enter(full, part)
	if err == nil && &got[0] != &full[0] {
		copy(full, got)
	}
	return err
}

// leave adds the sum of the ranks' partial results to x.
func (n *Net[T]) leave(x, partial []T) error {
	y, err := n.split.Leave(n.scratch("leave", n.Len(), false), partial)
	if err == nil {
		n.K.Add(x, y)
	}
	return err
}

// enterBack adds to dx and dw what comes of dfull, the gradient of what enter made.
func (n *Net[T]) enterBack(xh, rs, dx, dw, dfull, w []T) error {
	part, err := n.split.EnterGrad(n.scratch("part", n.Len(), false), dfull)
	if err == nil {
		n.K.NormBack(xh, rs, dx, dw, part, w)
	}
	return err
}

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

// block computes x += attention(norm(x)), x += mlp(norm(x)).
func (n *Net[T]) block(p [][]T, micro int, x []T) error {
	a := n.act()
	n.acts[micro] = append(n.acts[micro], a)
	w, parts, ctx := n.Width, n.split.Size(), n.Context
	heads, d, hs := n.Heads/parts, w/parts, w/n.Heads
	if err := n.enter(a.ln1, a.xh1, a.rs1, x, p[0]); err != nil {
		return err
	}
	clear(a.qkv)
	n.K.Mul(false, false, n.n, 3*d, w, a.ln1, p[1], a.qkv)
	clear(a.att)
	scale := T(1 / math.Sqrt(float64(hs)))
	b := n.heads("heads", 4)
	q, k, v, o := b[0], b[1], b[2], b[3]
	for r := range n.n / ctx {
		z := a.qkv[r*ctx*3*d:]
		for h := range heads {
			take(q, z, ctx, 3*d, h*hs, hs)
			take(k, z, ctx, 3*d, d+h*hs, hs)
			take(v, z, ctx, 3*d, 2*d+h*hs, hs)
			s := a.att[(r*heads+h)*ctx*ctx:][:ctx*ctx]
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
			put(a.y[r*ctx*d:], o, ctx, d, h*hs, hs)
		}
	}
	partial := n.scratch("partial", n.n*w, true)
	n.K.Mul(false, false, n.n, w, d, a.y, p[2], partial)
	if err := n.leave(x, partial); err != nil {
		return err
	}
	if err := n.enter(a.ln2, a.xh2, a.rs2, x, p[3]); err != nil {
		return err
	}
	clear(a.h)
	n.K.Mul(false, false, n.n, 4*d, w, a.ln2, p[4], a.h)
	n.K.Gelu(a.g, a.s, a.h)
	clear(partial)
	n.K.Mul(false, false, n.n, w, 4*d, a.g, p[5], partial)
	return n.leave(x, partial)
}

// blockBack is the gradient of the last block of the micro batch that has not had it.
func (n *Net[T]) blockBack(p, g [][]T, micro int, dx []T) error {
	as := n.acts[micro]
	a := as[len(as)-1]
	n.acts[micro] = as[:len(as)-1]
	w, parts, ctx := n.Width, n.split.Size(), n.Context
	heads, d, hs := n.Heads/parts, w/parts, w/n.Heads
	full, err := n.split.LeaveGrad(n.scratch("dfull", n.n*w, false), dx)
	if err != nil {
		return err
	}
	n.K.Mul(true, false, 4*d, w, n.n, a.g, full, g[5])
	dh := n.scratch("dh", n.n*4*d, true)
	n.K.Mul(false, true, n.n, 4*d, w, full, p[5], dh)
	n.K.GeluBack(dh, a.h, a.s)
	n.K.Mul(true, false, w, 4*d, n.n, a.ln2, dh, g[4])
	df := n.scratch("df", n.n*w, true)
	n.K.Mul(false, true, n.n, w, 4*d, dh, p[4], df)
	if err := n.enterBack(a.xh2, a.rs2, dx, g[3], df, p[3]); err != nil {
		return err
	}
	if full, err = n.split.LeaveGrad(n.scratch("dfull", n.n*w, false), dx); err != nil {
		return err
	}
	n.K.Mul(true, false, d, w, n.n, a.y, full, g[2])
	dy := n.scratch("dy", n.n*d, true)
	n.K.Mul(false, true, n.n, d, w, full, p[2], dy)
	dqkv := n.scratch("dqkv", n.n*3*d, false)
	scale := T(1 / math.Sqrt(float64(hs)))
	b := n.heads("heads back", 7)
	q, k, v, do, dq, dk, dv := b[0], b[1], b[2], b[3], b[4], b[5], b[6]
	ds := n.scratch("ds", ctx*ctx, false)
	for r := range n.n / ctx {
		z, dz := a.qkv[r*ctx*3*d:], dqkv[r*ctx*3*d:]
		for h := range heads {
			take(q, z, ctx, 3*d, h*hs, hs)
			take(k, z, ctx, 3*d, d+h*hs, hs)
			take(v, z, ctx, 3*d, 2*d+h*hs, hs)
			take(do, dy[r*ctx*d:], ctx, d, h*hs, hs)
			s := a.att[(r*heads+h)*ctx*ctx:][:ctx*ctx]
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
	n.K.Mul(true, false, w, 3*d, n.n, a.ln1, dqkv, g[1])
	clear(df)
	n.K.Mul(false, true, n.n, w, 3*d, dqkv, p[1], df)
	n.free = append(n.free, a)
	return n.enterBack(a.xh1, a.rs1, dx, g[0], df, p[0])
}
