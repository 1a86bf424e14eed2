package ccl_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/ccl/ccltest/simnet"
)

// The harness of this package's tests: the ways in which ranks can talk, and two ways to be a rank. A test whose ranks only
// talk by their Comms runs inWorlds, as processes too. One whose ranks share variables, meet, or fail on purpose runs
// everywhere: its ranks are goroutines, and no Comm is closed before all have returned.

// long is a deadline that no test is meant to reach.
const long = 30 * time.Second

// way is a way in which n ranks can talk.
type way struct {
	name string
	host func(r, n int) string        // of rank r, if the ranks can be goroutines of one process; nil if not
	opts func(n int) []ccltest.Option // for ranks that may be processes
}

var worlds = []way{
	{"memory", func(int, int) string { return "a" }, func(int) []ccltest.Option { return nil }},
	{"shared memory", nil, func(n int) []ccltest.Option { return []ccltest.Option{ccltest.Processes(n)} }},
	{"TCP", func(r, _ int) string { return fmt.Sprint("host", r) }, func(n int) []ccltest.Option { return []ccltest.Option{ccltest.Hosts(n)} }},
	{"mixed", func(r, n int) string { return fmt.Sprint("host", r/((n+1)/2)) }, func(n int) []ccltest.Option {
		// Hosts of one rank and of several, processes of one and of several.
		if n == 1 {
			return nil
		}
		if n%2 == 1 {
			return []ccltest.Option{ccltest.Processes((n + 1) / 2), ccltest.RoundRobin((n + 1) / 2)}
		}
		return []ccltest.Option{ccltest.Processes(n), ccltest.Hosts(max(2, (n+2)/3))}
	}},
}

// places are the worlds of one process.
var places = slices.DeleteFunc(slices.Clone(worlds), func(w way) bool { return w.host == nil })

// hosts are those of n ranks of one process.
func (w way) hosts(n int) (hosts []string) {
	for r := range n {
		hosts = append(hosts, w.host(r, n))
	}
	return hosts
}

// inWorlds runs f as n ranks that talk in every way, in a test each.
func inWorlds(t *testing.T, n int, f func(t testing.TB, c *ccl.Comm), opts ...ccltest.Option) {
	for _, w := range worlds {
		t.Run(fmt.Sprintf("%s/%d", w.name, n), func(t *testing.T) {
			ccltest.Run(t, n, f, append(w.opts(n), opts...)...)
		})
	}
}

// everywhere runs f as n ranks that are goroutines of this process, with Options o, in each of places: on hosts of
// several ranks in virtual time, over a network in memory.
func everywhere(t *testing.T, n int, o *ccl.Options, f func(ctx context.Context, t *testing.T, c *ccl.Comm)) {
	for _, p := range places {
		t.Run(p.name, func(t *testing.T) {
			run := world
			if p.name == "mixed" {
				run = virtually
			}
			run(t, n, p.hosts(n), func(int) *ccl.Options { return o }, f)
		})
	}
}

// inTime is everywhere for what waits for a limit: all of it is in virtual time.
func inTime(t *testing.T, n int, o *ccl.Options, f func(ctx context.Context, t *testing.T, c *ccl.Comm)) {
	for _, p := range places {
		t.Run(p.name, func(t *testing.T) { virtually(t, n, p.hosts(n), func(int) *ccl.Options { return o }, f) })
	}
}

// virtually is world in virtual time, over a network in memory. Ranks without hosts are on one.
func virtually(t *testing.T, n int, hosts []string, o func(rank int) *ccl.Options, f func(ctx context.Context, t *testing.T, c *ccl.Comm)) {
	inBubble(t, n, hosts, func(t *testing.T, at func(ctx context.Context, r int) context.Context) {
		worldAt(t, n, hosts, at, o, f)
	})
}

// inBubble runs f in virtual time. at is the context of a rank, which dials and listens by a network in memory.
func inBubble(t *testing.T, n int, hosts []string, f func(t *testing.T, at func(ctx context.Context, r int) context.Context)) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(1, n, simnet.Link{Delay: 50 * time.Microsecond, Jitter: 20 * time.Microsecond, Rate: 1e9,
			Window: 4 << 20}) // as much as a kernel takes
		f(t, func(ctx context.Context, r int) context.Context {
			host := 0
			if hosts != nil {
				host = slices.Index(hosts, hosts[r])
			}
			return net.Host(host).Context(ctx)
		})
		time.Sleep(time.Minute) // what outlives a Close for a while
	})
}

// inVirtualTime is f in virtual time.
func inVirtualTime(f func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) { synctest.Test(t, f) }
}

// together runs a test with all ranks on one host.
func together(t *testing.T, n int, f func(ctx context.Context, t *testing.T, c *ccl.Comm)) {
	world(t, n, nil, nil, f)
}

// world runs f as each of n ranks, which are goroutines, and closes their Comms when
// all have returned: none of them can be the cause of another's failure. Nothing may
// be left running.
func world(t *testing.T, n int, hosts []string, o func(rank int) *ccl.Options, f func(ctx context.Context, t *testing.T, c *ccl.Comm)) {
	t.Helper()
	worldAt(t, n, hosts, nil, o, f)
}

// worldAt is world, in which at makes the context of a rank from that of all, unless it is nil.
func worldAt(t *testing.T, n int, hosts []string, at func(ctx context.Context, r int) context.Context,
	o func(rank int) *ccl.Options, f func(ctx context.Context, t *testing.T, c *ccl.Comm)) {
	t.Helper()
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	comms := make([]*ccl.Comm, n)
	all := &crowd{size: n, full: make(chan struct{})}
	ctx = context.WithValue(ctx, crowdKey{}, all)
	var wg sync.WaitGroup
	for r, b := range boot.Local(n, hosts...) {
		wg.Go(func() {
			var opt *ccl.Options
			if o != nil {
				opt = o(r)
			}
			ctx := ctx
			if at != nil {
				ctx = at(ctx, r)
			}
			c, err := ccl.NewComm(ctx, b, opt)
			if assert.NoError(t, err) {
				comms[r] = c
				f(ctx, t, c)
			}
		})
	}
	wg.Wait()
	for _, c := range comms {
		if c != nil {
			c.Close()
		}
	}
	until(t, "goroutines are left", func() bool { return runtime.NumGoroutine() <= before })
	if t.Failed() { // a rank has required something
		t.FailNow()
	}
}

// newComms are what NewComm returns on each of n ranks, which are goroutines on these hosts. o makes their options, nil for the default.
func newComms(n int, hosts []string, o func(rank int) *ccl.Options) ([]*ccl.Comm, []error) {
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	comms, errs := make([]*ccl.Comm, n), make([]error, n)
	var all sync.WaitGroup
	for r, b := range boot.Local(n, hosts...) {
		all.Go(func() {
			var opt *ccl.Options
			if o != nil {
				opt = o(r)
			}
			comms[r], errs[r] = ccl.NewComm(ctx, b, opt)
		})
	}
	all.Wait()
	return comms, errs
}

// crowd is a meeting of goroutines, of which a Comm knows nothing.
type crowd struct {
	mu         sync.Mutex
	size, came int
	full       chan struct{}
}

type crowdKey struct{}

// meet returns when every rank of the test's world has called it: none of them is
// in an earlier call any more.
func meet(ctx context.Context) {
	c := ctx.Value(crowdKey{}).(*crowd)
	c.mu.Lock()
	full := c.full
	if c.came++; c.came == c.size {
		c.came, c.full = 0, make(chan struct{})
		close(full)
	}
	c.mu.Unlock()
	select {
	case <-full:
	case <-ctx.Done():
	}
}

// until waits for a condition; what says what is wrong if it never comes.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(long / 2); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			stacks := make([]byte, 1<<20)
			t.Errorf("%s\n%s", what, stacks[:runtime.Stack(stacks, true)])
			return
		}
	}
}

// sleeps returns once c is in a blocking call that has waited for so long that it sleeps: the other ranks see that it is there.
func sleeps(t testing.TB, c *ccl.Comm) {
	t.Helper()
	until(t, "the call does not sleep", func() bool {
		asleep := false
		for call := range c.Trace() {
			asleep = call.State == ccl.Running && call.Caller != ""
		}
		return asleep
	})
}

// wants checks that err is an *Error of that code, and returns it; never nil.
func wants(t testing.TB, err error, code ccl.Code) *ccl.Error {
	t.Helper()
	var e *ccl.Error
	if !assert.ErrorAs(t, err, &e) {
		return &ccl.Error{}
	}
	assert.Equal(t, code, e.Code, "%v", err)
	assert.ErrorIs(t, err, code)
	return e
}

// works checks that c still does what it should.
func works(ctx context.Context, t *testing.T, c *ccl.Comm) {
	t.Helper()
	x := []int{1, c.Rank()}
	if assert.NoError(t, ccl.AllReduce(ctx, c, x, x, ccl.Sum)) {
		n := c.Size()
		assert.Equal(t, []int{n, n * (n - 1) / 2}, x)
	}
}
