package gpt

func (n *Net[T]) act() *act[T] {
	if k := len(n.acts.free); k > 0 {
		a := n.acts.free[k-1]
		n.acts.free = n.acts.free[:k-1]
		return a
	}
	w, parts := n.Width, n.split.Size()
	f := func(k int) []T { return make([]T, k) }
	att := n.n * n.Heads / parts * n.Context
	if n.att != nil { // which keeps its own
		att = 0
	}
	mlp := n.n * 4 * w / parts
	if !n.Sparse.mlp() {
		mlp = 0
	}
	return &act[T]{ln1: f(n.n * w), xh1: f(n.s * w), rs1: f(n.s), qkv: f(n.n * 3 * w / parts), y: f(n.n * w / parts),
		att: f(att), ln2: f(n.n * w), xh2: f(n.s * w), rs2: f(n.s),
		h: f(mlp), s: f(mlp), g: f(mlp)}
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

// block computes x += attention(norm(x)), x += mlp(norm(x)).
func (n *Net[T]) block(u int, p [][]T, micro int, x []T) error {
	a := n.act()
	n.acts.of[micro] = append(n.acts.of[micro], a)
	w, parts := n.Width, n.split.Size()
	heads, d := n.Heads/parts, w/parts
	if err := n.enter(a.ln1, a.xh1, a.rs1, x, p[0]); err != nil {
		return err
	}
	clear(a.qkv)
	n.K.Mul(false, false, n.n, 3*d, w, a.ln1, p[1], a.qkv)
	if n.att != nil {
		var err error
		if a.kept, err = n.att.Forward(a.qkv, a.y); err != nil {
			return err
		}
	} else {
		n.Attend(a.qkv, a.y, a.att, heads)
	}
	partial := n.scratch("partial", n.n*w, true)
	n.K.Mul(false, false, n.n, w, d, a.y, p[2], partial)
	if err := n.leave(x, partial); err != nil {
		return err
	}
	if err := n.enter(a.ln2, a.xh2, a.rs2, x, p[3]); err != nil {
		return err
	}
	clear(partial)
	var mlp func()
	if n.Sparse.mlp() {
		mlp = func() {
			clear(a.h)
			n.K.Mul(false, false, n.n, 4*d, w, a.ln2, p[4], a.h)
			n.K.Gelu(a.g, a.s, a.h)
			n.K.Mul(false, false, n.n, w, 4*d, a.g, p[5], partial)
		}
	}
	if n.Sparse.Experts == 0 {
		mlp()
		return n.leave(x, partial)
	}
	y, err := n.scratch("experts", n.n*w, false), error(nil)
	if a.routed, err = n.Experts.Forward(u-1, p[n.Sparse.after():], a.ln2, y, mlp); err != nil {
		return err
	}
	n.K.Add(partial, y)
	return n.leave(x, partial)
}

// blockBack is the gradient of the last block of the micro batch that has not had it.
func (n *Net[T]) blockBack(p, g [][]T, micro int, dx []T) error {
	as := n.acts.of[micro]
	a := as[len(as)-1]
	n.acts.of[micro] = as[:len(as)-1]
	w, parts := n.Width, n.split.Size()
	heads, d := n.Heads/parts, w/parts
	full, err := n.split.LeaveGrad(n.scratch("dfull", n.n*w, false), dx)
	if err != nil {
		return err
	}
	df := n.scratch("df", n.n*w, true)
	var mlp func()
	if n.Sparse.mlp() {
		mlp = func() {
			n.K.Mul(true, false, 4*d, w, n.n, a.g, full, g[5])
			dh := n.scratch("dh", n.n*4*d, true)
			n.K.Mul(false, true, n.n, 4*d, w, full, p[5], dh)
			n.K.GeluBack(dh, a.h, a.s)
			n.K.Mul(true, false, w, 4*d, n.n, a.ln2, dh, g[4])
			n.K.Mul(false, true, n.n, w, 4*d, dh, p[4], df)
		}
	}
	if k := n.Sparse.after(); n.Sparse.Experts == 0 {
		mlp()
	} else {
		dx := n.scratch("experts", n.n*w, false)
		if err := n.Experts.Backward(a.routed, p[k:], g[k:], a.ln2, full, dx, mlp); err != nil {
			return err
		}
		n.K.Add(df, dx)
		a.routed = nil
	}
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
	if n.att != nil {
		if err := n.att.Backward(a.kept, a.qkv, dy, dqkv); err != nil {
			return err
		}
	} else {
		n.AttendBack(a.qkv, a.att, dy, dqkv, heads)
	}
	n.K.Mul(true, false, w, 3*d, n.n, a.ln1, dqkv, g[1])
	clear(df)
	n.K.Mul(false, true, n.n, w, 3*d, dqkv, p[1], df)
	n.acts.free = append(n.acts.free, a)
	return n.enterBack(a.xh1, a.rs1, dx, g[0], df, p[0])
}
