// Package measure is goccl's own program among those that are measured, and how it is run: as the ranks of a job,
// on one host or as on several, timed loop by loop. Commands that use it call [Main] first.
package measure

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl"
)

// measure is goccl's own program among the peers': the same command line, the same definitions of time
// and size, the same CSV as mpi_bench.c.
func measure(args []string) error {
	fs := flag.NewFlagSet("measure", flag.ContinueOnError)
	var m measurement
	fs.StringVar(&m.peer, "peer", "goccl", "label")
	op := fs.String("op", "allreduce", "the operation, or all; start, or memory")
	fs.IntVar(&m.min, "min", 8, "smallest size")
	fs.IntVar(&m.max, "max", 64<<20, "largest size")
	fs.IntVar(&m.factor, "factor", 4, "between sizes")
	fs.IntVar(&m.repeats, "repeats", 5, "loops, of which the median counts")
	fs.Float64Var(&m.target, "target_ms", 30, "time of a loop")
	fs.IntVar(&m.inPlace, "inplace", 0, "1: in place")
	fs.IntVar(&m.counts, "counts", 0, "1: the sizes are those of as many float32, whatever the type")
	fs.IntVar(&m.written, "written", 0, "1: each rank writes its vector before each call; the calls alone are timed")
	fs.StringVar(&m.mem, "mem", "slice", "slice, or make: MakeSlice")
	fs.BoolVar(&m.queue, "queue", false, "through a Queue")
	typ := fs.String("type", "float32", "float32, bfloat16 or float16")
	backend := fs.String("backend", "", "the engine, in place of the CPU's: its launcher has bound the ranks")
	threads := fs.Int("t", 0, "ranks as goroutines of one process, in place of a job")
	if err := fs.Parse(args); err != nil {
		return err
	}
	ops := []string{*op}
	if *op == "all" {
		ops = Operations
	}
	run := measureType[float32]
	switch *typ {
	case "bfloat16":
		run = measureType[ccl.BFloat16]
	case "float16":
		run = measureType[ccl.Float16]
	}
	if *threads > 0 {
		return inOneProcess(*threads, func(c *ccl.Comm) error { return run(&m, c, ops) })
	}
	began := time.Now()
	c, err := ccl.Join(context.Background(), &ccl.Options{Backend: *backend})
	if err != nil {
		return err
	}
	defer c.Close()
	switch took := time.Since(began); *op {
	case "start":
		return m.start(context.Background(), c, took)
	case "memory":
		return m.memory(context.Background(), c)
	}
	if *backend == "" {
		Bind(c.Rank(), c.Size()) // all are on this machine, also where it stands for several hosts
	}
	return run(&m, c, ops)
}

// Operations are what can be measured, as -op spells it.
var Operations = []string{"allreduce", "broadcast", "allgather", "reduce", "reduce_scatter", "scatter", "gather",
	"alltoall", "sendrecv", "barrier", "alltoallv", "pingpong"}

type measurement struct {
	peer                               string
	min, max, factor, repeats, inPlace int
	written, counts                    int
	target                             float64
	mem                                string
	queue                              bool
}

// element is what rank r has at i: small whole numbers, never all zero, whose sums are exact.
func element(r, i int) float32 { return float32((i*3 + r*17 + 1) % 97) }

func measureType[T ccl.Number](m *measurement, c *ccl.Comm, ops []string) error {
	ctx := context.Background()
	size := ccl.TypeOf[T]().Size()
	per := size
	if m.counts == 1 {
		per = 4
	}
	of := func(x float32) T {
		switch any(*new(T)).(type) {
		case ccl.BFloat16:
			return T(ccl.ToBFloat16(x))
		case ccl.Float16:
			return T(ccl.ToFloat16(x))
		}
		return T(x)
	}
	// Vectors that begin at the same place of their pages would be slowed down by their addresses.
	const skew = 3*4096 + 512
	room := m.max/size + 64*c.Size() + skew/size
	memory := func() ([]T, error) {
		if m.mem == "make" {
			return ccl.MakeSlice[T](ctx, c, room)
		}
		return make([]T, room), nil
	}
	in, err := memory()
	if err != nil {
		return err
	}
	out, err := memory()
	if err != nil {
		return err
	}
	out = out[skew/size:]
	for i := range out {
		in[i] = of(element(c.Rank(), i))
		out[i] = in[i]
	}
	// The Go runtime's own watchman looks every 20 us at first, and every 10 ms after some milliseconds without an event.
	for warm := time.Now(); c.Size() > 1; {
		t := []float64{float64(time.Since(warm))}
		if err := ccl.AllReduce(ctx, c, t, t, ccl.Min); err != nil {
			return err
		} else if t[0] > 20e6 {
			break
		}
	}
	for _, op := range ops {
		for s, last := m.min, -1; ; s = min(s*m.factor, m.max) {
			n := s / per // elements of the whole vector, or of one piece
			if split := op != "allreduce" && op != "broadcast" && op != "reduce" && op != "sendrecv" && op != "pingpong"; split {
				n = max(n/c.Size(), 1) * c.Size()
			}
			n = max(n, 1)
			if n != last {
				last = n
				call, bytes := callOf(ctx, m, c, op, in, out, n, per)
				if call == nil {
					return fmt.Errorf("there is no operation %q", op)
				}
				var write func(i int)
				if m.written == 1 {
					values := [2]T{of(1), of(2)}
					write = func(i int) {
						for k := range in[:n] {
							in[k] = values[i&1]
						}
					}
				}
				if err := m.loops(ctx, c, op, bytes, call, write); err != nil {
					return err
				}
			}
			if s >= m.max || op == "barrier" {
				break
			}
		}
	}
	return nil
}

// callOf is one call of op on vectors of n elements in all, and their bytes, of which an element counts as per.
func callOf[T ccl.Number](ctx context.Context, m *measurement, c *ccl.Comm, op string, in, out []T, n,
	per int) (func() error, int) {
	k, r := n/c.Size(), c.Rank()
	src, dst := in[:n], out[:n]
	if m.inPlace == 1 {
		src = dst
	}
	bytes := n * per
	switch op {
	case "allreduce":
		if m.queue {
			q := c.On(nil)
			return func() error { return q.AllReduce(ccl.BufOf(dst), ccl.BufOf(src), ccl.Sum).Wait(ctx) }, bytes
		}
		return func() error { return ccl.AllReduce(ctx, c, dst, src, ccl.Sum) }, bytes
	case "broadcast":
		return func() error { return ccl.Broadcast(ctx, c, dst, 0) }, bytes
	case "reduce":
		return func() error { return ccl.Reduce(ctx, c, dst, in[:n], ccl.Sum, 0) }, bytes
	case "allgather":
		return func() error { return ccl.AllGather(ctx, c, dst, in[:k]) }, bytes
	case "reduce_scatter":
		return func() error { return ccl.ReduceScatter(ctx, c, out[:k], in[:n], ccl.Sum) }, bytes
	case "scatter":
		return func() error { return ccl.Scatter(ctx, c, out[:k], in[:n], 0) }, bytes
	case "gather":
		return func() error { return ccl.Gather(ctx, c, dst, in[:k], 0) }, bytes
	case "alltoall":
		return func() error { return ccl.AllToAll(ctx, c, dst, in[:n]) }, bytes
	case "alltoallv":
		counts := slices.Repeat([]int{k}, c.Size())
		return func() error { return ccl.AllToAllV(ctx, c, dst, counts, in[:n], counts) }, bytes
	case "sendrecv":
		to, from := (r+1)%c.Size(), (r+c.Size()-1)%c.Size()
		return func() error { return ccl.SendRecv(ctx, c, dst, from, in[:n], to) }, bytes
	case "barrier":
		return func() error { return ccl.Barrier(ctx, c) }, 0
	case "pingpong": // there and back, between each two ranks
		peer := r ^ 1
		if peer == c.Size() {
			return func() error { return nil }, bytes
		}
		first, then := func() error { return ccl.Send(ctx, c, in[:n], peer) },
			func() error { return ccl.Recv(ctx, c, dst, peer) }
		if r > peer {
			first, then = then, first
		}
		return func() error {
			if err := first(); err != nil {
				return err
			}
			return then()
		}, bytes
	}
	return nil, 0
}

// timed is how long n calls take.
func timed(n int, call func() error, write func(i int)) (took time.Duration, err error) {
	if write == nil {
		began := time.Now()
		for range n {
			if err := call(); err != nil {
				return 0, err
			}
		}
		return time.Since(began), nil
	}
	for i := range n {
		write(i)
		began := time.Now()
		if err := call(); err != nil {
			return 0, err
		}
		took += time.Since(began)
	}
	return took, nil
}

// loops times call and prints a row: of several loops the median, of the ranks the slowest. write,
// if not nil, comes before each call, and its time does not count.
func (m *measurement) loops(ctx context.Context, c *ccl.Comm, op string, bytes int, call func() error,
	write func(i int)) error {
	loop := func(n int) (float64, error) {
		if err := ccl.Barrier(ctx, c); err != nil {
			return 0, err
		}
		took, err := timed(n, call, write)
		if err != nil {
			return 0, err
		}
		t := []float64{float64(took.Nanoseconds()) / 1e3 / float64(n)}
		err = ccl.AllReduce(ctx, c, t, t, ccl.Max)
		return t[0], err
	}
	estimate := 0.0
	for i, n := 0, 1; i < 4; i++ { // the first calls pay for what is made on first use
		var err error
		if estimate, err = loop(n); err != nil {
			return err
		}
		n = min(500, max(1, int(2000/max(estimate, 0.01))))
	}
	n := min(200_000, max(4, int(m.target*1e3/max(estimate, 0.01))))
	if _, err := loop(min(n, 5)); err != nil {
		return err
	}
	var t []float64
	for range m.repeats {
		x, err := loop(n)
		if err != nil {
			return err
		}
		t = append(t, x)
	}
	slices.Sort(t)
	us := (t[(len(t)-1)/2] + t[len(t)/2]) / 2
	if c.Rank() == 0 {
		fmt.Fprintf(os.Stdout, "%s,%s,%d,%d,%.3f,%.4f,%.4f,0,%.3f,%.3f,%d,\n", m.peer, op, c.Size(), bytes, us,
			float64(bytes)/us*1e-3, 0.0, t[0], t[len(t)-1], n)
	}
	return nil
}
