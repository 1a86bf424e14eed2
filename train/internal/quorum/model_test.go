package quorum

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// book is a store in memory. It fails once it has answered so many requests.
type book struct {
	numbers map[string]int64
	values  map[string][]byte
	answers int
}

var errDark = errors.New("the store is dark")

func (b *book) answer() error {
	if b.answers--; b.answers < 0 {
		return errDark
	}
	return nil
}

func (b *book) Set(_ context.Context, key string, value []byte) error {
	if err := b.answer(); err != nil {
		return err
	}
	b.values[key] = value
	return nil
}

func (b *book) Get(_ context.Context, key string) ([]byte, error) {
	if err := b.answer(); err != nil {
		return nil, err
	}
	if v, ok := b.values[key]; ok {
		return v, nil
	}
	return nil, errDark // it would wait
}

func (b *book) Add(_ context.Context, key string, n int64) (int64, error) {
	if err := b.answer(); err != nil {
		return 0, err
	}
	if b.numbers[key] > math.MaxInt64-n {
		return 0, errors.New("the sum is no int64")
	}
	b.numbers[key] += n
	return b.numbers[key], nil
}

// world is a job, seen from above: its ranks, which are in sides, each with a Comm of its own, and the store.
type world struct {
	ranks  []Rank
	sides  [][]int  // by Comm, places in ranks
	broken []bool   // by side: a call on its Comm has failed on some rank
	asks   []uint   // by side: bits of the ranks that have heard that not all agree
	said   [][]Said // by side: what the ranks told each other last
	knows  []uint   // by side: bits of the ranks that know who is in it
	ended  bool     // a rank has ended
	left   []int    // ranks that have been given up, and say so in the store
	names  int64    // the last name of an epoch
	parent map[int64]int64
	last   int64 // the epoch that made the last round
	store  *book
}

// newWorld is a job of n ranks, which are of the epoch 5, beside guests.
func newWorld(n, guests int) *world {
	w := &world{names: 5, last: 5, parent: map[int64]int64{}, broken: []bool{false}, asks: []uint{0}, knows: []uint{0},
		said: make([][]Said, 1), sides: [][]int{nil}, store: &book{map[string]int64{}, map[string][]byte{}, 0}}
	for i := range n + guests {
		r := New(int64(i + 1))
		if i < n {
			r = in(n, r.id)
		}
		w.ranks, w.sides[0] = append(w.ranks, r), append(w.sides[0], i)
	}
	return w
}

func (w *world) clone() *world {
	c := *w
	c.ranks = slices.Clone(w.ranks)
	copied := func(e *epoch) *epoch {
		if e == nil {
			return nil
		}
		return &epoch{e.name, e.ids, slices.Clone(e.ended), e.out}
	}
	for i := range c.ranks {
		r := &c.ranks[i]
		r.base, r.tried = copied(r.base), slices.Clone(r.tried)
		for k := range r.tried {
			r.tried[k] = copied(r.tried[k])
		}
	}
	c.sides, c.broken, c.asks = slices.Clone(w.sides), slices.Clone(w.broken), slices.Clone(w.asks)
	c.knows, c.left, c.said = slices.Clone(w.knows), slices.Clone(w.left), slices.Clone(w.said)
	c.parent, c.store = maps.Clone(w.parent), &book{maps.Clone(w.store.numbers), maps.Clone(w.store.values), 0}
	return &c
}

// String tells states apart. Names of claims, which are random, are numbered as they come.
func (w *world) String() string {
	var b strings.Builder
	known := map[int64]int{}
	name := func(n int64) string {
		if n < 1<<20 {
			return fmt.Sprint(n)
		}
		if known[n] == 0 {
			known[n] = len(known) + 1
		}
		return fmt.Sprint("c", known[n])
	}
	for _, r := range w.ranks {
		for _, e := range r.epochs() {
			fmt.Fprint(&b, name(e.name), e.ids, e.ended, e.out, " ")
		}
		fmt.Fprint(&b, r.base != nil, ";")
	}
	fmt.Fprint(&b, w.sides, w.broken, w.asks, w.knows, w.left, w.names, name(w.last))
	for i, all := range w.said {
		for _, o := range all {
			if w.asks[i] != 0 {
				fmt.Fprint(&b, name(o.Epoch), o.Sure, " ")
			}
		}
	}
	for _, k := range slices.Sorted(maps.Keys(w.store.numbers)) {
		if n := w.store.numbers[k]; strings.HasSuffix(k, "next") && n > 0 {
			fmt.Fprint(&b, k, name(math.MaxInt64-n))
		} else if n > 0 {
			var e int64
			fmt.Sscanf(k, "goccl/elastic/%x", &e)
			fmt.Fprint(&b, name(e), k[len("goccl/elastic/0123456789abcdef"):], min(n%unsure, 1), min(n/unsure, 1))
		}
	}
	return b.String()
}

// meet has side i meet. The ranks in met hear all records, and then, if those are all ranks, the ranks
// in heard that all agree.
func (w *world) meet(i int, met, heard func(rank int) bool) error {
	side := w.sides[i]
	var ids []int64
	var said []Said
	for _, k := range side {
		r := &w.ranks[k]
		ids, said = append(ids, r.id), append(said, Said{r.id, r.Epoch(), r.Sure()})
	}
	w.said[i] = said
	all := true
	var base *epoch
	for _, k := range side {
		if !met(k) {
			all = false
			continue
		}
		w.knows[i] |= 1 << k
		r := &w.ranks[k]
		if r.Hear(said); base == nil && r.base != nil {
			base = r.base
		}
	}
	for _, k := range side {
		if met(k) && base != nil {
			w.ranks[k].Learn(base.name, base.ids)
		}
	}
	w.names++
	next, may, from := w.names, true, w.ranks[side[0]].Epoch()
	for _, k := range side {
		r := &w.ranks[k]
		if !met(k) {
			continue
		}
		mine := r.May(ids)
		if mine {
			r.Try(next, ids)
		}
		may = may && mine && r.Epoch() == from
	}
	if w.asks[i] = 0; !all {
		w.broken[i] = true
		return nil
	}
	if may {
		w.parent[next] = from
	}
	adopted := 0
	for _, k := range side {
		r := &w.ranks[k]
		switch tried := !r.Sure() && r.tried[len(r.tried)-1].name == next; {
		case !heard(k):
			w.broken[i] = true
		case may:
			adopted++
			for _, e := range r.Adopt(next, ids) {
				w.store.answers = 1
				if err := Tell(context.Background(), w.store, e); err != nil {
					return err
				}
			}
		default:
			if tried {
				r.Drop()
			}
			w.asks[i] |= 1 << k
		}
	}
	if adopted < len(side) {
		return nil
	}
	for e := next; e != w.last; e = w.parent[e] {
		if e == 0 {
			return fmt.Errorf("ranks %d go on in epoch %d, which does not come after %d", ids, next, w.last)
		}
	}
	w.last = next
	return nil
}

// ask has rank k of side i ask the store, which answers so many requests.
func (w *world) ask(i, k, answers int) (others bool) {
	r := &w.ranks[k]
	from, tried := r.Epoch(), len(r.tried)
	w.store.answers = answers
	others, _ = r.Ask(context.Background(), w.store, w.said[i], k == w.sides[i][0])
	if w.comes(r.Epoch(), from); r.Epoch() != from || len(r.tried) != tried {
		w.asks[i] &^= 1 << k // they meet again
	}
	return others
}

// comes notes that an epoch comes after another one.
func (w *world) comes(to, from int64) {
	if to != from && w.parent[to] == 0 {
		w.parent[to] = from
	}
}

// leave has rank k, which has been given up, say so.
func (w *world) leave(k int) {
	r := &w.ranks[k]
	from := r.Epoch()
	w.store.answers = 1000
	_ = r.Leave(context.Background(), w.store) // it does so again if it does not know more
	w.comes(r.Epoch(), from)
}

// give has rank k give its side i up: it is cut off, or has heard that others go on.
func (w *world) give(i, k int) {
	w.sides[i] = slices.DeleteFunc(slices.Clone(w.sides[i]), func(o int) bool { return o == k })
	w.broken[i] = true
	w.left = append(w.left, k)
}

// end ends rank k of side i, for certain: those of the side that know it hear so.
func (w *world) end(i, k int) {
	w.sides[i] = slices.DeleteFunc(slices.Clone(w.sides[i]), func(o int) bool { return o == k })
	w.broken[i], w.ended = true, true
	for _, o := range w.sides[i] {
		if w.knows[i]>>o&1 == 1 {
			w.ranks[o].Ended(w.ranks[k].id)
		}
	}
	w.knows[i] = 0 // what is lost after that is not certain
}

// split breaks side i into those with a bit in set, and the others.
func (w *world) split(i int, set uint) {
	var a, b []int
	for n, k := range w.sides[i] {
		if set>>n&1 == 1 {
			a = append(a, k)
		} else {
			b = append(b, k)
		}
	}
	w.sides[i], w.broken[i], w.asks[i], w.knows[i], w.said[i] = a, false, 0, 0, nil
	if len(b) > 0 {
		w.sides, w.broken = append(w.sides, b), append(w.broken, false)
		w.asks, w.knows, w.said = append(w.asks, 0), append(w.knows, 0), append(w.said, nil)
	}
}

func everyone(int) bool { return true }

// goesOn has all sides that there are come to an end, with nothing that is lost any more: one of them goes on,
// whichever of a side's ranks the store answers first.
func (w *world) goesOn() error {
	if err := w.goesOnIn(false); err != nil {
		return err
	}
	return w.goesOnIn(true)
}

// goesOnIn is goesOn where the store answers the first rank of each side last, or first.
func (w *world) goesOnIn(firstLast bool) error {
	if w.ended { // those that do not know so wait for it
		return nil
	}
	w = w.clone()
	before := w.last
	for range 12 {
		for i := range w.sides {
			if len(w.sides[i]) == 0 {
				continue
			}
			w.broken[i] = false
			if err := w.meet(i, everyone, everyone); err != nil {
				return err
			}
			if w.last != before {
				return nil
			}
			others, order := false, slices.Clone(w.sides[i])
			if firstLast {
				slices.Reverse(order)
			}
			for _, k := range order {
				others = w.ask(i, k, 1000) || others
			}
			if others {
				for _, k := range slices.Clone(w.sides[i]) {
					w.give(i, k)
				}
			}
		}
		for _, k := range w.left {
			w.leave(k)
		}
	}
	return fmt.Errorf("nobody goes on from %v", w)
}

// All states of small jobs, each of which has a few meetings that break off anywhere, falls apart in
// any way, and asks a store that answers or not: no two sides ever go on, and once nothing is lost any
// more one does.
func TestAllStates(t *testing.T) {
	for _, tc := range []struct {
		n, guests, meetings int
		ends                bool
	}{
		{1, 2, 2, true}, {2, 1, 2, true}, {3, 0, 3, false}, {3, 0, 2, true}, {2, 2, 1, false},
		{3, 1, 1, false}, {4, 0, 1, true},
	} {
		t.Run(fmt.Sprint(tc), func(t *testing.T) {
			seen := map[string]bool{}
			var visit func(w *world)
			visit = func(w *world) {
				if s := w.String(); t.Failed() || seen[s] {
					return
				} else {
					seen[s] = true
				}
				if err := w.goesOn(); err != nil {
					t.Fatal(err)
				}
				next := func(f func(w *world) error) {
					c := w.clone()
					if err := f(c); err != nil {
						t.Fatalf("%v, from %v", err, w)
					}
					visit(c)
				}
				for i, side := range w.sides {
					for set := uint(1); set < 1<<len(side); set += 2 { // the first rank is in the first side
						if w.broken[i] || set != 1<<len(side)-1 {
							next(func(w *world) error { w.split(i, set); return nil })
						}
					}
					for _, k := range side {
						if len(side) > 1 && !w.ranks[k].Votes() { // else it is a side of its own
							next(func(w *world) error { w.give(i, k); return nil })
						}
						if w.asks[i]>>k&1 == 1 {
							next(func(w *world) error { w.ask(i, k, 1000); return nil })
						}
						if tc.ends && !w.ended {
							next(func(w *world) error { w.end(i, k); return nil })
						}
					}
					if len(side) == 0 || w.broken[i] || w.names >= int64(5+tc.meetings) {
						continue
					}
					for set := range uint(1) << len(side) {
						some := func(k int) bool { return set>>slices.Index(side, k)&1 == 1 }
						next(func(w *world) error { return w.meet(i, some, everyone) })
						next(func(w *world) error { return w.meet(i, everyone, some) })
					}
				}
				for _, k := range w.left {
					next(func(w *world) error {
						w.leave(k)
						return nil
					})
				}
			}
			visit(newWorld(tc.n, tc.guests))
			t.Log(len(seen), "states")
		})
	}
}

// Larger jobs, at random. The store may fall silent in the middle of an answer.
func TestManyStates(t *testing.T) {
	for seed := range uint64(10000) {
		x := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(1+x.IntN(4), x.IntN(8))
		for step := range 40 {
			i := x.IntN(len(w.sides))
			side := w.sides[i]
			if len(side) == 0 {
				continue
			}
			k := side[x.IntN(len(side))]
			set := x.Uint32() | x.Uint32()
			some := func(k int) bool { return set>>k&1 == 1 }
			var err error
			switch x.IntN(7) {
			case 0, 1:
				if !w.broken[i] {
					err = w.meet(i, everyone, some)
				}
			case 2:
				if !w.broken[i] {
					err = w.meet(i, some, everyone)
				}
			case 3:
				w.split(i, x.UintN(1<<len(side)))
			case 4:
				if w.asks[i]>>k&1 == 1 {
					w.ask(i, k, x.IntN(40))
				}
			case 5:
				if len(side) > 1 && !w.ranks[k].Votes() {
					w.give(i, k)
				}
			case 6:
				if seed%2 == 0 && x.IntN(4) == 0 {
					w.end(i, k)
				}
			}
			require.NoError(t, err, "seed %d, step %d", seed, step)
		}
		require.NoError(t, w.goesOn(), "seed %d", seed)
	}
}
