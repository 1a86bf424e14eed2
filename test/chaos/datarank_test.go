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
	"github.com/goccl/goccl/internal/calltest"
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
	calltest.Call
	src, dst, part int
	give           func(i int) int
	want           []int
}

var dataKinds = []ccl.Kind{ccl.KindAllReduce, ccl.KindAllReduce, ccl.KindAllReduce, ccl.KindReduce, ccl.KindReduceScatter, ccl.KindBroadcast,
	ccl.KindBroadcast, ccl.KindAllGather, ccl.KindGather, ccl.KindScatter, ccl.KindAllToAll, ccl.KindAllToAllV, ccl.KindSendRecv, ccl.KindSendRecv, ccl.KindSend}

// dataCallOf is the call of a kind on count elements. Send is of the root to the next rank.
func (r *dataRank) dataCallOf(kind ccl.Kind, count, root int) (d dataCall) {
	d.Call = calltest.Call{Kind: kind, Root: root, Count: count}
	for a := range r.n {
		d.Matrix = append(d.Matrix, make([]int, r.n))
		for b := range r.n {
			d.Matrix[a][b] = count * (1 + (a*3+b)%4) / 4
		}
	}
	d.src, d.dst, d.part = d.Lengths(r.n, r.me)
	d.give = func(i int) int { return r.value(r.me, i) }
	switch kind {
	case ccl.KindBroadcast:
		d.src = count
		d.give = func(i int) int { return r.value(root, i) * is(r.me == root) }
	case ccl.KindAllToAllV:
		d.part = -1
	case ccl.KindSend:
		d.src, d.dst, d.part = count*is(r.me == root), count*is(r.me == (root+1)%r.n), -1
	}
	if d.dst == 0 {
		return d
	}
	d.want = calltest.Want(&d.Call, r.n, r.me, func(from, at, count int) (v []int) {
		for i := range count {
			v = append(v, r.value(from, at+i))
		}
		return v
	}, func(at, count int) (v []int) {
		for i := range count {
			v = append(v, r.sum(at+i))
		}
		return v
	})
	return d
}

// runData makes one call, on slices of this rank's own choice.
func runData[T uint8 | int32](ctx context.Context, r *dataRank, elem int, view func([]byte) []T) error {
	kind, root, count := dataKinds[r.shared.IntN(len(dataKinds))], r.shared.IntN(r.n), 0
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
	d := r.dataCallOf(kind, count, root)
	pick := func(i int) *arena {
		a := r.arenas[r.own.IntN(int(memorySorts))][i]
		if r.own.IntN(6) == 0 {
			a.renew()
		}
		return a
	}
	inPlace := d.part >= 0 && d.src > 0 && d.dst > 0 && r.own.IntN(3) == 0 || kind == ccl.KindBroadcast
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
	if err := issue(ctx, r, &d.Call, dst, src); err != nil {
		return err
	}
	what := fmt.Sprintf("%v of %d elements of %d bytes, root %d, in place %v, memory of sorts %d and %d", kind, count, elem, root, inPlace, of.sort, from.sort)
	for i, x := range dst {
		if i < d.dst && x != T(d.want[i]) {
			return dataError{"LIE", fmt.Sprintf("%s: element %d is %v, not %v", what, i, x, T(d.want[i]))}
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
func issue[T uint8 | int32](ctx context.Context, r *dataRank, k *calltest.Call, dst, src []T) error {
	next := (k.Root + 1) % r.n
	switch {
	case k.Kind != ccl.KindSend:
		return calltest.Make(ctx, r.c, k, dst, src)
	case r.me == k.Root:
		return ccl.Send(ctx, r.c, src, next)
	case r.me == next:
		return ccl.Recv(ctx, r.c, dst, k.Root)
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
	var kind ccl.Kind
	for k := range 1 + r.shared.IntN(4) {
		if k == 0 || r.shared.IntN(2) == 0 {
			kind = []ccl.Kind{ccl.KindAllReduce, ccl.KindAllGather, ccl.KindBroadcast}[r.shared.IntN(3)]
		}
		d := r.dataCallOf(kind, 1+r.shared.IntN(300), r.shared.IntN(r.n))
		p := part{got: make([]int32, d.dst), want: func(i int) int { return d.want[i] }}
		src := make([]int32, d.src)
		for i := range src {
			src[i] = int32(d.give(i))
		}
		if kind == ccl.KindBroadcast {
			copy(p.got, src)
		}
		p.issue = func(q ccl.Queue) { calltest.Issue(q, &d.Call, r.n, r.me, ccl.BufOf(p.got), ccl.BufOf(src)) }
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
