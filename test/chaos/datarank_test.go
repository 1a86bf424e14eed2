//go:build fault && linux

package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

// TestDataRank is not a test of its own: it is what the processes of a data case run. A rank says one line:
//
//	fine R           all calls were right
//	failed R: ...    a call has failed; no data were wrong
//	LIE R: ...       a call without an error has wrong data
//	guard R: ...     what lies beside a slice has changed
//	late R: ...      something was written after the call had failed
//	broken R: ...    something else that must not be
func TestDataRank(t *testing.T) {
	seed, err := strconv.ParseUint(os.Getenv("CHAOS_DATA"), 10, 64)
	if err != nil {
		return // run by TestR6Data, in processes of its own
	}
	var builds []string
	for name := range strings.SplitSeq(os.Getenv("CHAOS_BUILDS"), ",") {
		if name != "" {
			builds = append(builds, name)
		}
	}
	d := newDataCase(seed, builds)
	ctx, stop := context.WithTimeout(context.Background(), bound())
	defer stop()
	b, err := boot.Env(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	os.Setenv("GOCCL_SHM_READ", d.read[b.Rank()])
	r := &dataRank{dataCase: d, out: os.Stdout, me: b.Rank()}
	r.c, err = ccl.NewComm(ctx, b, &ccl.Options{Check: ccl.Check(d.check), Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		defer r.c.Close()
		if r.arenas, err = arenasOf(ctx, r.c); err == nil {
			if err = ccl.Barrier(ctx, r.c); err == nil { // a rank that gives up waits not long for those that begin late
				err = r.live(ctx)
			}
		}
	}
	r.end(err)
}

// dataRank is a rank of a data case.
type dataRank struct {
	*dataCase
	out    io.Writer
	c      *ccl.Comm
	me     int
	arenas [memorySorts][2]*arena
	shared *rand.Rand // the same on all ranks
	own    *rand.Rand // this one's
	call   int
}

// dataError is data that are wrong, or that nobody may write.
type dataError struct{ what, why string }

func (e dataError) Error() string { return e.what + ": " + e.why }

// end says how the calls have ended. If one has failed, this rank's slices are its own again, and nobody writes there.
func (r *dataRank) end(err error) {
	var wrong dataError
	var failure *ccl.Error
	switch {
	case err == nil:
		fmt.Fprintln(r.out, "fine", r.me)
		return
	case errors.As(err, &wrong):
		fmt.Fprintf(r.out, "%s %d: call %d: %s\n", wrong.what, r.me, r.call, wrong.why)
		return
	case !errors.As(err, &failure):
		fmt.Fprintf(r.out, "broken %d: call %d: %v\n", r.me, r.call, err)
		return
	}
	if r.stop != "" && r.arenas[memorySorts-1][1] != nil { // it has them all
		for _, two := range r.arenas {
			for _, a := range two {
				a.fill(scribble)
			}
		}
		time.Sleep(900 * time.Millisecond) // the stopped rank goes on
		for _, two := range r.arenas {
			for _, a := range two {
				if !a.all(scribble) {
					fmt.Fprintf(r.out, "late %d: call %d: memory of sort %d was written to after %v\n", r.me, r.call, a.sort, err)
					return
				}
			}
		}
	}
	fmt.Fprintf(r.out, "failed %d: call %d: %s\n", r.me, r.call, strings.ReplaceAll(err.Error(), "\n", "; "))
}

// live makes the calls.
func (r *dataRank) live(ctx context.Context) error {
	r.shared, r.own = rand.New(rand.NewPCG(r.seed, 1)), rand.New(rand.NewPCG(r.seed, uint64(2+r.me)))
	for r.call = range r.calls {
		inner, stop := ctx, context.CancelFunc(func() {})
		if r.stop != "" && r.me == r.gives {
			inner, stop = context.WithTimeout(ctx, 250*time.Millisecond)
		}
		var err error
		switch r.shared.IntN(7) {
		case 0:
			err = r.group(inner)
		case 1, 2:
			err = runData(inner, r, 1, func(b []byte) []uint8 { return b })
		default:
			err = runData(inner, r, 4, int32s)
		}
		stop()
		if err != nil {
			return err
		}
	}
	return ccl.Barrier(ctx, r.c)
}

// value is element i of the vector of rank q in this call.
func (r *dataRank) value(q, i int) int { return (r.call*131 + q*37 + i*7 + i>>9) % 251 }

func (r *dataRank) sum(i int) (s int) {
	for q := range r.n {
		s += r.value(q, i)
	}
	return s
}

// dataCall is a call as one rank makes it: how many elements it gives and gets, what they are, and where its own part of the larger
// vector lies, -1 if it cannot be in place.
type dataCall struct {
	name     string
	src, dst int
	give     func(i int) int
	want     func(i int) int
	part     int
}

var dataKinds = []string{"AllReduce", "AllReduce", "AllReduce", "Reduce", "ReduceScatter", "Broadcast", "Broadcast", "AllGather", "Gather",
	"Scatter", "AllToAll", "AllToAllV", "SendRecv", "SendRecv", "Send"}

// to is how many elements of an AllToAllV go from rank a to rank b.
func to(count, a, b int) int { return count * (1 + (a*3+b)%4) / 4 }

// dataCallOf is the call of a kind on count elements.
func (r *dataRank) dataCallOf(name string, count, root int) (d dataCall, dc, sc []int) {
	n, me := r.n, r.me
	own := func(i int) int { return r.value(me, i) }
	atRoot := func(k int) int {
		if me != root {
			return 0
		}
		return k
	}
	block := func(i int) int { return r.value(i/count, i%count) }
	switch name {
	case "AllReduce":
		d = dataCall{name, count, count, own, r.sum, 0}
	case "Reduce":
		d = dataCall{name, count, atRoot(count), own, r.sum, 0}
	case "ReduceScatter":
		d = dataCall{name, n * count, count, own, func(i int) int { return r.sum(me*count + i) }, me * count}
	case "Broadcast":
		d = dataCall{name, count, count, func(i int) int { return r.value(root, i) * atRoot(1) }, func(i int) int { return r.value(root, i) }, 0}
	case "AllGather":
		d = dataCall{name, count, n * count, own, block, me * count}
	case "Gather":
		d = dataCall{name, count, atRoot(n * count), own, block, me * count}
	case "Scatter":
		d = dataCall{name, atRoot(n * count), count, own, func(i int) int { return r.value(root, me*count+i) }, me * count}
	case "AllToAll":
		d = dataCall{name, n * count, n * count, own, func(i int) int { return r.value(i/count, me*count+i%count) }, 0}
	case "AllToAllV":
		var from, off []int // whose each element of the result is, and which of that rank's
		for q := range n {
			dc, sc = append(dc, to(count, q, me)), append(sc, to(count, me, q))
			at := 0
			for p := range me {
				at += to(count, q, p)
			}
			for i := range to(count, q, me) {
				from, off = append(from, q), append(off, at+i)
			}
		}
		total := 0
		for _, x := range sc {
			total += x
		}
		d = dataCall{name, total, len(from), own, func(i int) int { return r.value(from[i], off[i]) }, -1}
	case "SendRecv":
		last := (me + n - 1) % n
		d = dataCall{name, count, count, own, func(i int) int { return r.value(last, i) }, 0}
	case "Send":
		d = dataCall{name, atRoot(count), 0, own, func(i int) int { return r.value(root, i) }, -1}
		if me == (root+1)%n {
			d.dst = count
		}
	}
	return d, dc, sc
}

// runData makes one call, on slices of this rank's own choice.
func runData[T uint8 | int32](ctx context.Context, r *dataRank, elem int, view func([]byte) []T) error {
	name, root, count := dataKinds[r.shared.IntN(len(dataKinds))], r.shared.IntN(r.n), 0
	most := 2 << 20 / elem / r.n
	switch r.shared.IntN(4) {
	case 0:
		count = 1 + r.shared.IntN(2000)
	case 1:
		count = 1 + r.shared.IntN(40_000)
	case 2:
		count = 1 + r.shared.IntN(most/4)
	default:
		count = 1 + r.shared.IntN(most)
	}
	d, dc, sc := r.dataCallOf(name, count, root)
	pick := func(i int) *arena {
		a := r.arenas[r.own.IntN(int(memorySorts))][i]
		if r.own.IntN(6) == 0 {
			a.renew()
		}
		return a
	}
	inPlace := d.part >= 0 && d.src > 0 && d.dst > 0 && r.own.IntN(3) == 0 || name == "Broadcast"
	of, from := pick(0), pick(1)
	dst := view(of.place(r.own, max(d.dst, d.src*is(inPlace))*elem, elem))
	var src []T
	switch {
	case !inPlace:
		src = view(from.place(r.own, d.src*elem, elem))
	case d.src > d.dst:
		src, dst = dst, dst[d.part:d.part+d.dst]
	default:
		src = dst[d.part : d.part+d.src]
	}
	for i := range src {
		src[i] = T(d.give(i))
	}
	if err := issue(ctx, r, name, root, dst, src, dc, sc); err != nil {
		return err
	}
	what := fmt.Sprintf("%s of %d elements of %d bytes, root %d, in place %v, memory of sorts %d and %d", name, count, elem, root, inPlace, of.sort, from.sort)
	for i, x := range dst {
		if i < d.dst && x != T(d.want(i)) {
			return dataError{"LIE", fmt.Sprintf("%s: element %d is %v, not %v", what, i, x, T(d.want(i)))}
		}
	}
	if !of.intact() || !inPlace && !from.intact() {
		return dataError{"guard", what}
	}
	return nil
}

func is(b bool) int {
	if b {
		return 1
	}
	return 0
}

// issue makes the call.
func issue[T uint8 | int32](ctx context.Context, r *dataRank, name string, root int, dst, src []T, dc, sc []int) error {
	c, n := r.c, r.n
	switch name {
	case "AllReduce":
		return ccl.AllReduce(ctx, c, dst, src, ccl.Sum)
	case "Reduce":
		return ccl.Reduce(ctx, c, dst, src, ccl.Sum, root)
	case "ReduceScatter":
		return ccl.ReduceScatter(ctx, c, dst, src, ccl.Sum)
	case "Broadcast":
		return ccl.Broadcast(ctx, c, dst, root)
	case "AllGather":
		return ccl.AllGather(ctx, c, dst, src)
	case "Gather":
		return ccl.Gather(ctx, c, dst, src, root)
	case "Scatter":
		return ccl.Scatter(ctx, c, dst, src, root)
	case "AllToAll":
		return ccl.AllToAll(ctx, c, dst, src)
	case "AllToAllV":
		return ccl.AllToAllV(ctx, c, dst, dc, src, sc)
	case "SendRecv":
		return ccl.SendRecv(ctx, c, dst, (r.me+n-1)%n, src, (r.me+1)%n)
	}
	switch r.me {
	case root:
		return ccl.Send(ctx, c, src, (root+1)%n)
	case (root + 1) % n:
		return ccl.Recv(ctx, c, dst, root)
	}
	return nil
}

// group makes a Group of small collectives, the same on all ranks, and messages, at places of each rank's own.
func (r *dataRank) group(ctx context.Context) error {
	type part struct {
		issue func(q ccl.Queue)
		got   []int32
		want  func(i int) int
	}
	var collectives, messages []part
	name := ""
	for k := range 1 + r.shared.IntN(4) {
		if k == 0 || r.shared.IntN(2) == 0 {
			name = []string{"AllReduce", "AllGather", "Broadcast"}[r.shared.IntN(3)]
		}
		d, _, _ := r.dataCallOf(name, 1+r.shared.IntN(300), r.shared.IntN(r.n))
		p := part{got: make([]int32, d.dst), want: d.want}
		src := make([]int32, d.src)
		for i := range src {
			src[i] = int32(d.give(i))
		}
		switch name {
		case "AllReduce":
			p.issue = func(q ccl.Queue) { q.AllReduce(ccl.BufOf(p.got), ccl.BufOf(src), ccl.Sum) }
		case "AllGather":
			p.issue = func(q ccl.Queue) { q.AllGather(ccl.BufOf(p.got), ccl.BufOf(src)) }
		default:
			root := r.shared.IntN(r.n)
			p.want = func(i int) int { return r.value(root, i) }
			for i := range p.got {
				p.got[i] = int32(p.want(i) * is(r.me == root))
			}
			p.issue = func(q ccl.Queue) { q.Broadcast(ccl.BufOf(p.got), root) }
		}
		collectives = append(collectives, p)
	}
	for range r.shared.IntN(4) {
		from := r.shared.IntN(r.n)
		to, count := (from+1+r.shared.IntN(r.n-1))%r.n, 1+r.shared.IntN(60_000)
		p := part{want: func(i int) int { return r.value(from, i) }}
		switch r.me {
		case from:
			src := make([]int32, count)
			for i := range src {
				src[i] = int32(p.want(i))
			}
			p.issue = func(q ccl.Queue) { q.Send(ccl.BufOf(src), to) }
		case to:
			p.got = make([]int32, count)
			p.issue = func(q ccl.Queue) { q.Recv(ccl.BufOf(p.got), from) }
		default:
			continue
		}
		messages = append(messages, p)
	}
	var all []part
	for a, b := collectives, messages; len(a)+len(b) > 0; {
		if len(b) > 0 && r.own.IntN(len(a)+len(b)) < len(b) {
			all, b = append(all, b[0]), b[1:]
		} else {
			all, a = append(all, a[0]), a[1:]
		}
	}
	work := r.c.On(nil).Group(func(q ccl.Queue) error {
		for _, p := range all {
			p.issue(q)
		}
		return nil
	})
	if err := work.Wait(ctx); err != nil {
		if ctx.Err() != nil { // the Wait alone has ended: the calls go on, with their slices
			r.c.Abort(errors.New("a rank gives up"))
			err = work.Wait(context.Background())
		}
		if err != nil {
			return err
		}
	}
	for k, p := range all {
		for i, x := range p.got {
			if x != int32(p.want(i)) {
				return dataError{"LIE", fmt.Sprintf("group, call %d of %d: element %d is %d, not %d", k, len(all), i, x, p.want(i))}
			}
		}
	}
	return nil
}
