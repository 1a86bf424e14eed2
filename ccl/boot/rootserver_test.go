package boot

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/ccltest/simnet"
)

// shapes are the ways in which ranks are connected: through one relay, through
// several, through one each, and through a tree of these that is as deep as can be.
var shapes = []struct {
	name     string
	host     func(rank int) string
	branches int
}{
	{"one host", func(int) string { return "" }, 0},
	{"two hosts", func(r int) string { return fmt.Sprint(r % 2) }, 0},
	{"all apart", func(r int) string { return fmt.Sprint(r) }, 0},
	{"in a line", func(r int) string { return fmt.Sprint(r) }, 1},
	{"two hosts in a line", func(r int) string { return fmt.Sprint(r % 2) }, 1},
}

// branching has each server of the bootstrap take so many relays, until the test is over.
func branching(t testing.TB, n int) {
	was := branchesOf
	t.Cleanup(func() { branchesOf = was })
	branchesOf = func(int) int { return n }
}

// inShapes runs f once for each shape; start is TCP in it.
func inShapes(t *testing.T, f func(t *testing.T, start func(ctx context.Context, rank, size int) (*Boot, error))) {
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			branching(t, s.branches)
			noLeaks(t)
			root := freeRoot(t)
			f(t, func(ctx context.Context, rank, size int) (*Boot, error) {
				return TCP(ctx, root, rank, size, &TCPOptions{Secret: []byte(sesame), HostID: s.host(rank)})
			})
		})
	}
}

// inTime is inShapes for what waits: in virtual time, over a network in memory.
func inTime(t *testing.T, f func(t *testing.T, start func(ctx context.Context, rank, size int) (*Boot, error))) {
	inTimeOf(t, func(int) string { return sesame }, f)
}

// inTimeOf is inTime for ranks that have secrets of their own.
func inTimeOf(t *testing.T, secret func(rank int) string,
	f func(t *testing.T, start func(ctx context.Context, rank, size int) (*Boot, error))) {
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				branching(t, s.branches)
				world := simnet.New(1, 8, simnet.Link{Delay: 50 * time.Microsecond})
				root := netip.AddrPortFrom(world.Host(0).Addr(), 29500).String()
				var hosts []string
				for r := range world.Size() {
					if !slices.Contains(hosts, s.host(r)) {
						hosts = append(hosts, s.host(r))
					}
				}
				f(t, func(ctx context.Context, rank, size int) (*Boot, error) {
					ctx = world.Host(slices.Index(hosts, s.host(rank))).Context(ctx)
					return TCP(ctx, root, rank, size, &TCPOptions{Secret: []byte(secret(rank)), HostID: s.host(rank)})
				})
			})
		})
	}
}

func who(rank int) string {
	return selfJoin(rank, 1).String()
}

func TestMissing(t *testing.T) {
	inTime(t, func(t *testing.T, start func(context.Context, int, int) (*Boot, error)) {
		ctx := within(t, 600*time.Millisecond)
		_, errs := all(6, func(r int) (*Boot, error) {
			if r == 3 || r == 4 {
				return nil, nil
			}
			return start(ctx, r, 6)
		})
		for _, r := range []int{0, 1, 2, 5} {
			e := wantError(t, errs[r], Timeout, r, 3)
			require.Equal(t, []int{3, 4}, e.Missing)
			require.Regexp(t, fmt.Sprintf(`^boot: rank %d of 6: 2 ranks have not joined after 5\d\dms: 3, 4\. Rank 0 listens at `+
				`10\.0\.0\.1 alone; a root without a host, :PORT, has it listen at all of its addresses\.$`, r), e.Error())
		}
	})
}

func TestMissingRoot(t *testing.T) {
	inTime(t, func(t *testing.T, start func(context.Context, int, int) (*Boot, error)) {
		ctx := within(t, 300*time.Millisecond)
		_, errs := all(3, func(r int) (*Boot, error) {
			if r == 0 {
				return nil, nil
			}
			return start(ctx, r, 3)
		})
		for _, r := range []int{1, 2} {
			e := wantError(t, errs[r], Timeout, r, 0)
			require.Equal(t, []int{0}, e.Missing)
			require.Regexp(t, fmt.Sprintf(`^boot: rank %d of 3: rank 0 was not found at 10\.0\.0\.1:29500 within 2\d\dms: `+
				`connect: connection refused\. (Is it running, and is its port open|The address is this host's own: is it `+
				`running here)\?$`, r), e.Error())
		}
	})
}

// TestDuplicate is a duplicate that is there before the last rank is; see TestLateDuplicate for one
// that comes after.
func TestDuplicate(t *testing.T) {
	inTime(t, func(t *testing.T, start func(context.Context, int, int) (*Boot, error)) {
		ctx := within(t, long)
		var wg sync.WaitGroup
		ranks := []int{0, 1, 2, 2}
		errs := make([]error, 5)
		for i, r := range ranks {
			wg.Go(func() { _, errs[i] = start(ctx, r, 4) })
		}
		wg.Wait() // all have their verdict, without rank 3
		for i, r := range ranks {
			e := wantError(t, errs[i], Mismatch, r, 2)
			require.Equal(t, fmt.Sprintf("boot: rank %d of 4: rank 2 was started twice: on %s, and on %s", r, who(2), who(2)), e.Error())
		}
	})
}

func TestWrongSize(t *testing.T) {
	inShapes(t, func(t *testing.T, start func(context.Context, int, int) (*Boot, error)) {
		ctx := within(t, long)
		_, errs := all(4, func(r int) (*Boot, error) {
			if r == 2 {
				return start(ctx, r, 5)
			}
			return start(ctx, r, 4)
		})
		for r, err := range errs {
			e := wantError(t, err, Mismatch, r, 2)
			require.Equal(t, fmt.Sprintf("rank 2 (%s) was started as one of 5 ranks, rank 0 (%s) as one of 4", who(2), who(0)), e.Text)
		}
	})
}

func TestWrongVersion(t *testing.T) {
	noLeaks(t)
	root := freeRoot(t)
	_, errs := all(3, func(r int) (*Boot, error) {
		if r < 2 {
			return TCP(within(t, long), root, r, 3, nil)
		}
		f := dialerTo(r, 3, "", "", root)
		f.self.Protocol = protocol + 1
		conn, _, err := f.dial(within(t, long))
		require.NoError(t, err)
		defer conn.Close()
		write(t, conn, frame{kind: frameJoin, rank: r, data: f.self.encode()}.encode())
		return nil, readVerdict(t, conn).error().of(r, 3)
	})
	for r, err := range errs {
		e := wantError(t, err, Version, r, 2)
		require.Equal(t, fmt.Sprintf("rank 2 (%s) speaks version 4 of the bootstrap, rank 0 (%s) version 3; run one build of the program on all ranks", who(2), who(0)), e.Text)
	}
}

func TestWrongSecret(t *testing.T) {
	secret := func(r int) string { return []string{sesame, sesame, "another of sixteen bytes"}[r%3] }
	inTimeOf(t, secret, func(t *testing.T, start func(context.Context, int, int) (*Boot, error)) {
		_, errs := all(3, func(r int) (*Boot, error) {
			if r == 2 {
				return start(within(t, long), r, 3)
			}
			return start(within(t, time.Second), r, 3)
		})
		for r := range 2 {
			e := wantError(t, errs[r], Timeout, r, 2)
			require.Equal(t, []int{2}, e.Missing)
			require.Regexp(t, `^1 rank has not joined after [89]\d\dms: 2\. Rank 0 listens at 10\.0\.0\.1 alone; .*`+
				` Connections turned away because they did not know the job's secret: 1; give all ranks`, e.Text)
		}
		e := wantError(t, errs[2], Unauthorized, 2, -1)
		require.Equal(t, "rank 0 at 10.0.0.1:29500 turned this rank away: auth: the job's secret differs; give all ranks "+
			"the same GOCCL_SECRET or GOCCL_SECRET_FILE", e.Text)
	})
}

// A thousand connections that say nothing, or nonsense, delay joining by less than a second; this waits for
// ten.
func TestR9StrangersDoNotDelayBootstrap(t *testing.T) {
	noLeaks(t)
	root := freeRoot(t)
	h := make(chan []net.Conn, 1)
	var came time.Time
	boots := joined(t, 4, func(r int) (*Boot, error) {
		if r == 0 {
			return TCP(within(t, long), root, 0, 4, nil)
		}
		if r == 1 {
			var strangers []net.Conn
			for len(strangers) < 1000 {
				c, err := net.Dial("tcp", root)
				if err != nil {
					continue // rank 0 does not listen yet
				}
				if len(strangers)%10 == 0 {
					io.WriteString(c, "GET / HTTP/1.1\r\nHost: of nobody here\r\n\r\n")
				}
				strangers = append(strangers, c)
			}
			came = time.Now()
			h <- strangers
		} else {
			strangers := <-h // the others come only after them
			h <- strangers
		}
		return TCP(within(t, long), root, r, 4, nil)
	})
	swap(t, boots)
	require.Less(t, time.Since(came), 10*time.Second)
	for _, c := range <-h {
		c.Close()
	}
}

func TestCanceled(t *testing.T) {
	inTime(t, func(t *testing.T, start func(context.Context, int, int) (*Boot, error)) {
		ctx := within(t, long)
		mine, cancel := context.WithCancel(ctx)
		defer cancel()
		time.AfterFunc(300*time.Millisecond, cancel) // once rank 1 is on its way to rank 0, on a machine however busy
		_, errs := all(4, func(r int) (*Boot, error) {
			switch r {
			case 1:
				return start(mine, r, 4)
			case 3:
				return nil, nil // so that the others wait
			}
			return start(ctx, r, 4)
		})
		wantError(t, errs[1], Canceled, 1, -1)
		require.ErrorIs(t, errs[1], context.Canceled)
		for _, r := range []int{0, 2} {
			e := wantError(t, errs[r], Canceled, r, 1)
			require.Equal(t, "rank 1 ("+who(1)+") was canceled", e.Text)
		}
	})
}

func TestAllGatherMissing(t *testing.T) {
	inTime(t, func(t *testing.T, start func(context.Context, int, int) (*Boot, error)) {
		boots := joined(t, 4, func(r int) (*Boot, error) { return start(within(t, long), r, 4) })
		swap(t, boots)
		some := []*Boot{boots[0], boots[1], nil, boots[3]}
		_, errs := gather(within(t, 300*time.Millisecond), some, make([][]byte, 4))
		for _, r := range []int{0, 1, 3} {
			e := wantError(t, errs[r], Timeout, r, 2)
			require.Equal(t, []int{2}, e.Missing)
			require.Regexp(t, `^1 rank has not reached AllGather 2 after [\d.]+m?s: 2\.$`, e.Text)
		}
		// It has failed for good, and for all.
		_, again := gather(within(t, long), boots, make([][]byte, 4))
		for r, err := range again {
			wantError(t, err, Timeout, r, 2)
		}
	})
}

func TestAllGatherLost(t *testing.T) {
	inShapes(t, func(t *testing.T, start func(context.Context, int, int) (*Boot, error)) {
		boots := joined(t, 4, func(r int) (*Boot, error) { return start(within(t, long), r, 4) })
		boots[2].Close()
		_, errs := gather(within(t, long), boots, make([][]byte, 4))
		wantError(t, errs[2], Closed, 2, -1)
		for _, r := range []int{0, 1, 3} {
			wantError(t, errs[r], Lost, r, 2)
		}
	})
}

// Who watches hears between two rounds that a rank is gone, whoever it is, before or after.
func TestWatch(t *testing.T) {
	inShapes(t, func(t *testing.T, start func(context.Context, int, int) (*Boot, error)) {
		for _, tc := range []struct {
			gone    int
			watches []int
			before  bool
		}{{2, []int{0, 1, 3}, false}, {2, []int{3}, true}, {2, []int{0}, false}, {0, []int{3}, false}} {
			t.Run(fmt.Sprint(tc), func(t *testing.T) {
				boots := joined(t, 4, func(r int) (*Boot, error) { return start(within(t, long), r, 4) })
				over := map[int]<-chan struct{}{}
				watch := func() {
					for _, r := range tc.watches {
						over[r] = boots[r].Watch()
					}
				}
				watch()
				_, errs := gather(within(t, long), boots, make([][]byte, 4))
				require.Equal(t, make([]error, 4), errs)
				if tc.before {
					boots[tc.gone].Close()
					time.Sleep(20 * time.Millisecond) // so that what leads to rank 0 knows
				}
				watch()
				for r, c := range over {
					select {
					case <-c:
						require.True(t, tc.before, "rank %d hears of a loss before there is one", r)
					case <-time.After(20 * time.Millisecond):
					}
				}
				boots[tc.gone].Close()
				for _, c := range over {
					<-c
				}
				_, errs = gather(within(t, long), boots, make([][]byte, 4))
				for r, err := range errs {
					if r != tc.gone {
						wantError(t, err, Lost, r, tc.gone)
					}
				}
			})
		}
	})
}

func TestAllGatherCanceled(t *testing.T) {
	inTime(t, func(t *testing.T, start func(context.Context, int, int) (*Boot, error)) {
		boots := joined(t, 3, func(r int) (*Boot, error) { return start(within(t, long), r, 3) })
		ctx, cancel := context.WithCancel(within(t, long))
		defer cancel()
		time.AfterFunc(50*time.Millisecond, cancel)
		var wg sync.WaitGroup
		errs := make([]error, 3)
		wg.Go(func() { _, errs[0] = boots[0].AllGather(within(t, long), nil) })
		wg.Go(func() { _, errs[1] = boots[1].AllGather(ctx, nil) })
		wg.Wait()
		wantError(t, errs[0], Canceled, 0, 1)
		wantError(t, errs[1], Canceled, 1, -1)
	})
}

func TestCloseEarly(t *testing.T) {
	// Each rank closes as soon as it has what it needs, in every order of ranks.
	for first := range 4 {
		inShapes(t, func(t *testing.T, start func(context.Context, int, int) (*Boot, error)) {
			gate := make(chan struct{})
			joined(t, 4, func(r int) (*Boot, error) {
				b, err := start(within(t, long), r, 4)
				if err != nil {
					return nil, err
				}
				for range 3 {
					if _, err := b.AllGather(within(t, long), make([]byte, 1000)); err != nil {
						return nil, err
					}
				}
				if r == first {
					defer close(gate)
				} else {
					<-gate
				}
				return b, b.Close()
			})
		})
	}
}

func TestLateDuplicate(t *testing.T) {
	inShapes(t, func(t *testing.T, start func(context.Context, int, int) (*Boot, error)) {
		boots := joined(t, 3, func(r int) (*Boot, error) { return start(within(t, long), r, 3) })
		_, err := start(within(t, long), 1, 3)
		require.Regexp(t, `^boot: rank 1 of 3: rank 1 was started twice: on .*, and on .*`, wantError(t, err, Mismatch, 1, 1).Error())
		swap(t, boots)
	})
}

func TestValues(t *testing.T) {
	inShapes(t, func(t *testing.T, start func(context.Context, int, int) (*Boot, error)) {
		boots := joined(t, 3, func(r int) (*Boot, error) { return start(within(t, long), r, 3) })
		values := [][]byte{make([]byte, MaxValue), {}, {1}}
		values[0][MaxValue-1] = 7
		got, errs := gather(within(t, long), boots, values)
		for r := range boots {
			require.NoError(t, errs[r])
			require.Equal(t, values, got[r])
		}
		_, err := boots[0].AllGather(t.Context(), make([]byte, MaxValue+1))
		require.EqualError(t, err, "boot: rank 0 of 3: a value of 65537 bytes; AllGather takes at most 65536 of each rank")
		swap(t, boots) // that was wrong here only
	})
}

// TestExpected says where a missing rank was put by the launcher.
func TestExpected(t *testing.T) {
	for _, tc := range []struct {
		missing []int
		text    string
	}{
		{[]int{3}, " It was expected from host x1 (PALS)."},
		{[]int{2, 3, 4}, " They were expected from x1 (PALS), x2 (PALS)."},
		{[]int{0, 2, 4, 6, 8}, " They were expected from x0 (PALS), x1 (PALS), x2 (PALS), x3 (PALS), ...."},
	} {
		a := absence{where: func(r int) string { return fmt.Sprintf("x%d (PALS)", r/2) }}
		require.Equal(t, tc.text, a.why(tc.missing))
		a.note = "Rank 0 listens at one address"
		require.Equal(t, tc.text+" Rank 0 listens at one address.", a.why(tc.missing))
	}
}

// TestNonsense is a peer that knows the secret but sends frames that make no sense:
// it is cut off, and the job fails for its sake.
func TestNonsense(t *testing.T) {
	for _, bad := range []frame{
		{kind: frameTable, rank: 1},
		{kind: frameValue, rank: 1, data: make([]byte, 8)},
		{kind: frameJoin, rank: 1, data: []byte("{}")},
		{kind: frameJoin, rank: 0, data: selfJoin(1, 2).encode()},
		{kind: frameLeave, rank: 1, data: []byte("[")},
		{kind: frameWatch, rank: 1},
	} {
		noLeaks(t)
		h, root, _ := rootFor(t, 2, "job", "")
		conn, p, err := dialerTo(1, 2, "job", "", root).dial(within(t, long))
		require.NoError(t, err)
		require.Equal(t, os.Getpid(), p.who.PID)
		write(t, conn, bad.encode())
		_, err = bufio.NewReader(conn).ReadByte()
		require.Error(t, err, "%v", bad)
		conn.Close()
		h.close()
	}
}
