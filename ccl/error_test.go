package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl"
)

func TestErrorText(t *testing.T) {
	mine := &ccl.Call{Seq: 17, Count: 1000, Kind: ccl.KindAllReduce, Type: ccl.TypeFloat32, Op: ccl.Sum, Root: -1, Caller: "train.go:88"}
	theirs := &ccl.Call{Seq: 17, Count: 1000, Kind: ccl.KindBroadcast, Type: ccl.TypeFloat32, Root: 0}
	many := make([]int, 20)
	for i := range many {
		many[i] = i
	}
	for _, tc := range []struct {
		e    ccl.Error
		want string
	}{
		{ccl.Error{Code: ccl.ErrMismatch, Rank: 0, Peer: 2, Mine: mine, Theirs: theirs},
			"ccl: rank 0: call #17 differs: here AllReduce float x 1000 sum at train.go:88, rank 2 has Broadcast float x 1000 root 0"},
		{ccl.Error{Code: ccl.ErrMismatch, Rank: 0, Peer: 2, Mine: theirs},
			"ccl: rank 0: Broadcast #17 float x 1000 root 0: ranks disagree about the call at rank 2"},
		{ccl.Error{Code: ccl.ErrRankLost, Op: "NewComm", Rank: 1, Peer: 2, Err: errors.New("killed")},
			"ccl: rank 1: NewComm: rank 2 lost: killed"},
		{ccl.Error{Code: ccl.ErrRankLost, Rank: 1, Peer: 0, Mine: &ccl.Call{Seq: 3, Kind: ccl.KindSend, Type: ccl.TypeInt8, Count: 2, Root: 5}},
			"ccl: rank 1: Send #3 int8 x 2 peer 5: rank 0 lost"},
		{ccl.Error{Code: ccl.ErrTimeout, Op: "NewComm", Rank: 0, Peer: -1, Missing: []int{3}}, "ccl: rank 0: NewComm: timed out; no response from: rank 3"},
		{ccl.Error{Code: ccl.ErrTimeout, Op: "NewComm", Rank: -1, Peer: -1, Missing: many},
			"ccl: NewComm: timed out; no response from: ranks 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 and 4 more"},
		{ccl.Error{Code: ccl.ErrCanceled, Op: "Wait", Rank: -1, Peer: -1, Err: context.Canceled}, "ccl: Wait: canceled: context canceled"},
		{ccl.Error{Code: ccl.ErrAborted, Op: "Comm", Rank: 0, Peer: 0, Err: errors.New("enough")}, "ccl: rank 0: Comm: aborted by rank 0: enough"},
		{ccl.Error{Code: ccl.ErrClosed, Op: "Barrier", Rank: 1, Peer: -1}, "ccl: rank 1: Barrier: the Comm is closed"},
		{ccl.Error{Code: ccl.ErrClosed, Op: "Barrier", Rank: 1, Peer: 1}, "ccl: rank 1: Barrier: the Comm is closed"},
		{ccl.Error{Code: ccl.ErrClosed, Op: "Barrier", Rank: 1, Peer: 0}, "ccl: rank 1: Barrier: rank 0 has closed the Comm"},
		{ccl.Error{Code: ccl.ErrArgument, Op: "Reduce", Rank: 1, Peer: -1, Err: errors.New("root is 7")}, "ccl: rank 1: Reduce: root is 7"},
		{ccl.Error{Code: ccl.ErrUnauthorized, Op: "NewComm", Rank: 1, Peer: -1}, "ccl: rank 1: NewComm: unauthorized"},
		{ccl.Error{Code: 200, Op: "Reduce", Rank: 1, Peer: -1}, "ccl: rank 1: Reduce: error 200"},
	} {
		assert.Equal(t, tc.want, tc.e.Error())
	}
}

func TestErrorUnwraps(t *testing.T) {
	cause := &ccl.VendorError{Library: "NCCL 2.28.9", Result: 1, Text: "unhandled cuda error"}
	err := fmt.Errorf("step 3: %w", &ccl.Error{Code: ccl.ErrBackend, Err: cause})
	assert.ErrorIs(t, err, ccl.ErrBackend)
	assert.NotErrorIs(t, err, ccl.ErrRankLost)
	var v *ccl.VendorError
	assert.ErrorAs(t, err, &v)
	assert.Same(t, cause, v)
	var code ccl.Code
	assert.ErrorAs(t, err, &code)
	assert.Equal(t, ccl.ErrBackend, code)
	assert.ErrorIs(t, &ccl.Error{Code: ccl.ErrClosed}, ccl.ErrClosed)
}

// What a Comm calls for itself as it begins has no number.
func TestCallOfTheComm(t *testing.T) {
	k := ccl.Call{Kind: ccl.KindAllReduce, Type: ccl.TypeInt64, Count: 3, Op: ccl.Min, Root: -1}
	assert.Equal(t, "AllReduce int64 x 3 min", k.String())
	k.Seq = 1
	assert.Equal(t, "AllReduce #1 int64 x 3 min", k.String())
}

func TestCodeTexts(t *testing.T) {
	seen := map[string]bool{}
	for k := ccl.ErrArgument; k <= ccl.ErrUnused; k++ {
		assert.NotContains(t, k.Error(), "error ")
		assert.False(t, seen[k.Error()], "%v twice", k)
		seen[k.Error()] = true
	}
	assert.Equal(t, "error 0", ccl.Code(0).Error())
	assert.Equal(t, "error 13", (ccl.ErrUnused + 1).Error())
}

// A call with a wrong argument says what is wrong, has no effect, and leaves the
// Comm as good as before: only rank 1 of 3 makes it.
func TestArguments(t *testing.T) {
	ctx := t.Context()
	x := make([]int, 12)
	huge := []int{math.MaxInt, math.MaxInt, 0}
	for _, tc := range []struct {
		name string
		call func(c *ccl.Comm) error
		want string
	}{
		{"AllReduce short dst", func(c *ccl.Comm) error { return ccl.AllReduce(ctx, c, x[:2], x[6:9], ccl.Sum) }, "dst has 2 elements, src 3: dst must have 3"},
		{"AllReduce overlap", func(c *ccl.Comm) error { return ccl.AllReduce(ctx, c, x[:3], x[2:5], ccl.Sum) }, "dst and src overlap partially"},
		{"AllReduce op", func(c *ccl.Comm) error { return ccl.AllReduce(ctx, c, x, x, 99) }, "there is no operator 99"},
		{"Reduce root", func(c *ccl.Comm) error { return ccl.Reduce(ctx, c, x, x, ccl.Sum, 3) }, "root is 3; the ranks are 0 to 2"},
		{"Reduce negative root", func(c *ccl.Comm) error { return ccl.Reduce(ctx, c, x, x, ccl.Sum, -1) }, "root is -1; the ranks are 0 to 2"},
		{"Reduce short dst", func(c *ccl.Comm) error { return ccl.Reduce(ctx, c, nil, x, ccl.Sum, 1) }, "dst has 0 elements, src 12: dst must have 12"},
		{"Reduce overlap", func(c *ccl.Comm) error { return ccl.Reduce(ctx, c, x[1:], x[:11], ccl.Sum, 1) }, "overlap"},
		{"ReduceScatter short src", func(c *ccl.Comm) error { return ccl.ReduceScatter(ctx, c, x[:2], x[:5], ccl.Sum) }, "src has 5 elements, dst 2: src must have 6, 2 for each of 3 ranks"},
		{"ReduceScatter wrong place", func(c *ccl.Comm) error { return ccl.ReduceScatter(ctx, c, x[:2], x[:6], ccl.Sum) }, "overlap"},
		{"ReduceScatterV counts", func(c *ccl.Comm) error { return ccl.ReduceScatterV(ctx, c, x[:1], x[6:], []int{1, 1}, ccl.Sum) }, "counts has 2 entries for 3 ranks"},
		{"ReduceScatterV sum", func(c *ccl.Comm) error { return ccl.ReduceScatterV(ctx, c, x[:1], x[6:], []int{1, 1, 1}, ccl.Sum) }, "src has 6 elements, but counts add up to 3"},
		{"ReduceScatterV dst", func(c *ccl.Comm) error { return ccl.ReduceScatterV(ctx, c, x[:2], x[6:9], []int{1, 1, 1}, ccl.Sum) }, "dst has 2 elements, but counts[1] is 1"},
		{"Broadcast root", func(c *ccl.Comm) error { return ccl.Broadcast(ctx, c, x, 3) }, "root is 3; the ranks are 0 to 2"},
		{"AllGather short dst", func(c *ccl.Comm) error { return ccl.AllGather(ctx, c, x[:5], x[6:8]) }, "dst has 5 elements, src 2: dst must have 6"},
		{"AllGather wrong place", func(c *ccl.Comm) error { return ccl.AllGather(ctx, c, x[:6], x[:2]) }, "overlap"},
		{"AllGatherV negative", func(c *ccl.Comm) error { return ccl.AllGatherV(ctx, c, x[:3], []int{2, -1, 2}, nil) }, "counts[1] is -1"},
		{"AllGatherV overflow", func(c *ccl.Comm) error { return ccl.AllGatherV(ctx, c, x, huge, x) }, "counts add up to more than an int holds"},
		{"AllGatherV src", func(c *ccl.Comm) error { return ccl.AllGatherV(ctx, c, x[:6], []int{2, 2, 2}, x[6:9]) }, "src has 3 elements, but counts[1] is 2"},
		{"Gather short dst", func(c *ccl.Comm) error { return ccl.Gather(ctx, c, x[:2], x[6:8], 1) }, "dst has 2 elements, src 2: dst must have 6"},
		{"Gather root", func(c *ccl.Comm) error { return ccl.Gather(ctx, c, x, x, 99) }, "root is 99; the ranks are 0 to 2"},
		{"GatherV dst", func(c *ccl.Comm) error { return ccl.GatherV(ctx, c, x[:4], []int{1, 1, 1}, x[6:7], 1) }, "dst has 4 elements, but counts add up to 3"},
		{"Scatter short src", func(c *ccl.Comm) error { return ccl.Scatter(ctx, c, x[:2], x[6:9], 1) }, "src has 3 elements, dst 2: src must have 6, 2 for each of 3 ranks"},
		{"ScatterV counts", func(c *ccl.Comm) error { return ccl.ScatterV(ctx, c, x[:2], nil, nil, 0) }, "counts has 0 entries for 3 ranks"},
		{"AllToAll uneven", func(c *ccl.Comm) error { return ccl.AllToAll(ctx, c, x[:4], x[4:8]) }, "4 elements do not divide among 3 ranks"},
		{"AllToAll short dst", func(c *ccl.Comm) error { return ccl.AllToAll(ctx, c, x[:3], x[6:]) }, "dst has 3 elements, src 6: dst must have 6"},
		{"AllToAllV dc", func(c *ccl.Comm) error { return ccl.AllToAllV(ctx, c, x[:3], []int{1, 1, 2}, x[6:9], []int{1, 1, 1}) }, "dst has 3 elements, but dc adds up to 4"},
		{"AllToAllV sc", func(c *ccl.Comm) error { return ccl.AllToAllV(ctx, c, x[:3], []int{1, 1, 1}, x[6:9], []int{1, 1, 0}) }, "src has 3 elements, but sc adds up to 2"},
		{"AllToAllV own", func(c *ccl.Comm) error { return ccl.AllToAllV(ctx, c, x[:3], []int{1, 1, 1}, x[6:9], []int{3, 0, 0}) }, "dc[1] is 1 and sc[1] is 0, but they must be equal"},
		{"Send peer", func(c *ccl.Comm) error { return ccl.Send(ctx, c, x, 3) }, "peer is 3; the ranks are 0 to 2"},
		{"Recv peer", func(c *ccl.Comm) error { return ccl.Recv(ctx, c, x, -1) }, "peer is -1; the ranks are 0 to 2"},
		{"SendRecv from", func(c *ccl.Comm) error { return ccl.SendRecv(ctx, c, x[:3], 7, x[6:9], 0) }, "peer is 7; the ranks are 0 to 2"},
		{"SendRecv to", func(c *ccl.Comm) error { return ccl.SendRecv(ctx, c, x[:3], 0, x[6:9], -2) }, "peer is -2; the ranks are 0 to 2"},
		{"SendRecv overlap", func(c *ccl.Comm) error { return ccl.SendRecv(ctx, c, x[:3], 0, x[2:5], 0) }, "overlap"},
		{"MakeSlice negative", func(c *ccl.Comm) error { return second(ccl.MakeSlice[int](ctx, c, -1)) }, "a slice of -1 elements"},
		{"MakeSlice huge", func(c *ccl.Comm) error { return second(ccl.MakeSlice[int64](ctx, c, math.MaxInt)) }, fmt.Sprintf("a slice of %d elements", math.MaxInt)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			together(t, 3, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
				works(ctx, t, c)
				if c.Rank() == 1 {
					e := wants(t, tc.call(c), ccl.ErrArgument)
					assert.Contains(t, e.Error(), tc.want)
					assert.Contains(t, e.Error(), "ccl: rank 1: "+e.Op+": ")
					assert.Equal(t, -1, e.Peer)
				}
				works(ctx, t, c)
				assert.NoError(t, c.Err())
			})
		})
	}
}

// A call that differs from a good one just before it in no more than one argument is looked at as well.
func TestArgumentsOfTheNextCall(t *testing.T) {
	type rank struct { // which makes a call
		ctx  context.Context
		c    *ccl.Comm
		x, y []int
	}
	sum := func(r rank) error { return ccl.AllReduce(r.ctx, r.c, r.x[:6], r.y[:6], ccl.Sum) }
	for _, tc := range []struct {
		name      string
		good, bad func(r rank) error
		want      string
	}{
		{"operator", sum, func(r rank) error { return ccl.AllReduce(r.ctx, r.c, r.x[:6], r.y[:6], 99) }, "there is no operator 99"},
		{"dst", sum, func(r rank) error { return ccl.AllReduce(r.ctx, r.c, r.y[2:8], r.y[:6], ccl.Sum) }, "overlap"},
		{"src", sum, func(r rank) error { return ccl.AllReduce(r.ctx, r.c, r.x[:6], r.x[2:8], ccl.Sum) }, "overlap"},
		{"length of dst", sum, func(r rank) error { return ccl.AllReduce(r.ctx, r.c, r.x[:5], r.y[:6], ccl.Sum) }, "dst must have 6"},
		{"root", func(r rank) error { return ccl.Broadcast(r.ctx, r.c, r.x, 1) },
			func(r rank) error { return ccl.Broadcast(r.ctx, r.c, r.x, 1+1<<32) }, "root is 4294967297"},
		{"counts", func(r rank) error { return ccl.AllGatherV(r.ctx, r.c, r.x[:6], []int{2, 2, 2}, r.y[:2]) },
			func(r rank) error { return ccl.AllGatherV(r.ctx, r.c, r.x[:6], nil, r.y[:2]) }, "counts has 0 entries"},
		{"destination", func(r rank) error { return ccl.SendRecv(r.ctx, r.c, r.x[:6], r.c.Rank(), r.y[:6], r.c.Rank()) },
			func(r rank) error { return ccl.SendRecv(r.ctx, r.c, r.x[:6], r.c.Rank(), r.y[:6], -2) }, "peer is -2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			together(t, 3, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
				r := rank{ctx, c, make([]int, 12), make([]int, 12)}
				for range 2 {
					assert.NoError(t, tc.good(r))
				}
				if c.Rank() == 1 {
					e := wants(t, tc.bad(r), ccl.ErrArgument)
					assert.Contains(t, e.Error(), tc.want)
				}
				assert.NoError(t, tc.good(r))
				works(ctx, t, c)
			})
		})
	}
}

// A slice too large for the machine is an error, not a panic.
func TestMakeSliceRefuses(t *testing.T) {
	together(t, 1, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		assert.NotPanics(t, func() {
			s, err := ccl.MakeSlice[byte](ctx, c, math.MaxInt/16)
			assert.Nil(t, s)
			wants(t, err, ccl.ErrBackend)
		})
		s, err := ccl.MakeSlice[int](ctx, c, 0)
		assert.NoError(t, err)
		assert.Empty(t, s)
		ended, cancel := context.WithCancel(ctx)
		cancel()
		wants(t, second(ccl.MakeSlice[int](ended, c, 1)), ccl.ErrCanceled)
		c.Abort(errors.New("enough"))
		wants(t, second(ccl.MakeSlice[int](ctx, c, 1)), ccl.ErrAborted)
	})
}
