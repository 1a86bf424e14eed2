package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

func TestPlace(t *testing.T) {
	for _, tc := range []struct {
		hosts []string
		want  []string // node/nodes local/locals of each rank
		text  string   // of rank 0
	}{
		{[]string{"a"}, []string{"0/1 0/1"}, "rank 0 of 1 (1 host, cpu, memory)"},
		{[]string{"a", "a", "a"}, []string{"0/1 0/3", "0/1 1/3", "0/1 2/3"}, "rank 0 of 3 (1 host, cpu, memory)"},
		{[]string{"a", "a", "b", "b"}, []string{"0/2 0/2", "0/2 1/2", "1/2 0/2", "1/2 1/2"}, "rank 0 of 4 (2 hosts, cpu, memory and TCP (%s))"},
		{[]string{"a", "b", "a"}, []string{"0/2 0/2", "1/2 0/1", "0/2 1/2"}, "rank 0 of 3 (2 hosts, cpu, memory and TCP (%s))"},
		{[]string{"a", "b"}, []string{"0/2 0/1", "1/2 0/1"}, "rank 0 of 2 (2 hosts, cpu, TCP (%s))"},
	} {
		t.Run(fmt.Sprint(tc.hosts), func(t *testing.T) {
			got := make([]string, len(tc.hosts))
			world(t, len(tc.hosts), tc.hosts, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
				p := c.Place()
				got[c.Rank()] = fmt.Sprintf("%d/%d %d/%d", p.Node, p.Nodes, p.Local, p.Locals)
				assert.Equal(t, tc.hosts[c.Rank()], p.Host)
				assert.Equal(t, len(tc.hosts), c.Size())
				if c.Rank() == 0 {
					want := tc.text
					if p.Nodes > 1 {
						_, iface, _ := cutParentheses(c.Transport())
						want = fmt.Sprintf(tc.text, iface)
					}
					assert.Equal(t, want, c.String())
				}
				works(ctx, t, c)
			})
			assert.Equal(t, tc.want, got)
		})
	}
}

// cutParentheses cuts "a (b)" into a and b.
func cutParentheses(s string) (before, in string, ok bool) {
	i := slices.Index([]byte(s), '(')
	if i < 1 {
		return s, "", false
	}
	return s[:i-1], s[i+1 : len(s)-1], true
}

func TestOptionsAreChecked(t *testing.T) {
	for _, tc := range []struct {
		o    ccl.Options
		want string
	}{
		{ccl.Options{Backend: "nccl"}, `no backend "nccl" is compiled in: build with -tags nccl; this build has cpu`},
		{ccl.Options{Check: 7}, "Check is 7; the levels are CheckAsync, CheckStrict and CheckOff"},
	} {
		_, err := ccl.NewComm(t.Context(), alone{}, &tc.o)
		e := wants(t, err, ccl.ErrArgument)
		assert.Equal(t, "ccl: rank 0: NewComm: "+tc.want, e.Error())
	}
}

// badBoot is a bootstrap with something wrong.
type badBoot struct {
	rank, size int
	all        [][]byte
	err        error
}

func (b badBoot) Rank() int { return b.rank }
func (b badBoot) Size() int { return b.size }
func (b badBoot) AllGather(context.Context, []byte) ([][]byte, error) {
	return b.all, b.err
}

func TestBadBootstrap(t *testing.T) {
	for _, tc := range []struct {
		name string
		b    badBoot
		code ccl.Code
		want string
	}{
		{"no ranks", badBoot{0, 0, nil, nil}, ccl.ErrArgument, "the bootstrap says rank 0 of 0"},
		{"rank beyond", badBoot{3, 2, nil, nil}, ccl.ErrArgument, "the bootstrap says rank 3 of 2"},
		{"negative rank", badBoot{-1, 2, nil, nil}, ccl.ErrArgument, "the bootstrap says rank -1 of 2"},
		{"too few", badBoot{0, 2, [][]byte{nil}, nil}, ccl.ErrBackend, "the bootstrap gathered 1 values from 2 ranks"},
		{"nonsense", badBoot{0, 1, [][]byte{[]byte("GET / HTTP/1.1")}, nil}, ccl.ErrVersion, "rank 0 runs something else than this goccl, or another version of it"},
		{"error", badBoot{0, 1, nil, errors.New("no route to host")}, ccl.ErrBackend, "no route to host"},
		{"late", badBoot{0, 1, nil, context.DeadlineExceeded}, ccl.ErrTimeout, "context deadline exceeded"},
		{"canceled", badBoot{0, 1, nil, context.Canceled}, ccl.ErrCanceled, "context canceled"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := ccl.NewComm(t.Context(), tc.b, nil)
			assert.Nil(t, c)
			e := wants(t, err, tc.code)
			assert.Contains(t, e.Error(), tc.want)
		})
	}
}

func TestNewCommTimesOut(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	boots := boot.Local(3)
	_, err := ccl.NewComm(ctx, boots[0], nil) // ranks 1 and 2 never come
	e := wants(t, err, ccl.ErrTimeout)
	assert.Equal(t, []int{1, 2}, e.Missing)
}

func TestCloseTwice(t *testing.T) {
	everywhere(t, 2, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		works(ctx, t, c)
		assert.NoError(t, c.Close())
		assert.NoError(t, c.Close())
		assert.NoError(t, c.Err())
	})
}

func TestAbortAfterClose(t *testing.T) {
	together(t, 2, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		works(ctx, t, c)
		assert.NoError(t, c.Close())
		c.Abort(errors.New("too late"))
	})
}

func TestTraceKeepsTheLast64(t *testing.T) {
	together(t, 1, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		assert.Empty(t, slices.Collect(c.Trace()))
		for range 100 {
			assert.NoError(t, ccl.Barrier(ctx, c))
		}
		var seqs []uint64
		for k := range c.Trace() {
			seqs = append(seqs, k.Seq)
			assert.Equal(t, ccl.Complete, k.State)
			assert.Equal(t, ccl.KindBarrier, k.Kind)
			assert.LessOrEqual(t, k.Start, k.End)
		}
		require.Len(t, seqs, 64)
		assert.Equal(t, uint64(37), seqs[0])
		assert.Equal(t, uint64(100), seqs[63])
		for range c.Trace() {
			break // the consumer may stop
		}
	})
}

func TestTraceShowsTheFailedCall(t *testing.T) {
	together(t, 1, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		assert.NoError(t, ccl.Barrier(ctx, c))
		c.Abort(nil)
		wants(t, ccl.Barrier(ctx, c), ccl.ErrAborted)
		var got []string
		for k := range c.Trace() {
			got = append(got, fmt.Sprint(&k, " ", k.State))
		}
		assert.Equal(t, []string{"Barrier #1 complete", "Barrier #2 failed"}, got)
	})
}

// Nonsense in, an answer out: Plan and Supports never panic.
func TestPlanTakesAnything(t *testing.T) {
	everywhere(t, 2, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		for _, k := range []ccl.Kind{0, ccl.KindAllReduce, ccl.KindSend, ccl.KindGroup, 99, 255} {
			for _, typ := range []ccl.Type{0, ccl.TypeFloat32, 99, 255} {
				for _, op := range []ccl.Op{ccl.Sum, 99, 255} {
					for _, n := range []int{-1, 0, 1 << 40} {
						assert.NotPanics(t, func() { c.Plan(k, typ, op, n); _ = c.Supports(k, typ, op) }, "%d %d %d %d", k, typ, op, n)
					}
				}
			}
		}
		works(ctx, t, c)
	})
}

// refusedComms are what NewComm returns on each of n ranks, on none of which it succeeds.
func refusedComms(t *testing.T, n int, o func(rank int) *ccl.Options) []error {
	comms, errs := newComms(n, nil, o)
	for _, c := range comms {
		assert.Nil(t, c)
	}
	return errs
}
