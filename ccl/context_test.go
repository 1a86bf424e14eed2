package ccl_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

// A nil context, and a Bootstrap that is a nil pointer, are refused. Nothing has come of such a call: the Comm goes on.
func TestNilContext(t *testing.T) {
	var none context.Context
	c, err := ccl.NewComm(t.Context(), boot.Local(1)[0], nil)
	require.NoError(t, err)
	defer c.Close()
	for _, b := range []ccl.Bootstrap{nil, (*boot.Boot)(nil)} {
		_, err := ccl.NewComm(t.Context(), b, nil)
		e := wants(t, err, ccl.ErrArgument)
		assert.Contains(t, e.Error(), "the Bootstrap is nil")
	}
	x, counts := []int32{1}, []int{1}
	_, newComm := ccl.NewComm(none, boot.Local(1)[0], nil)
	_, join := ccl.Join(none, nil)
	_, _, launched := ccl.Launched(none)
	_, split := c.Split(none, 0, 0)
	_, splitWith := c.SplitWith(none, 0, 0, nil)
	_, shrink := c.Shrink(none)
	_, slice := ccl.MakeSlice[int](none, c, 1)
	_, device := ccl.MakeDevice[int](none, c, 1)
	_, register := c.Register(none, ccl.BufOf(x))
	_, window := c.Window(none, ccl.BufOf(x))
	for what, err := range map[string]error{
		"NewComm": newComm, "Join": join, "Launched": launched, "Split": split, "SplitWith": splitWith, "Shrink": shrink, "MakeSlice": slice,
		"MakeDevice": device, "Register": register, "Window": window, "Wait": c.On(nil).Barrier().Wait(none),
		"AllReduce": ccl.AllReduce(none, c, x, x, ccl.Sum), "Reduce": ccl.Reduce(none, c, x, x, ccl.Sum, 0),
		"ReduceScatter": ccl.ReduceScatter(none, c, x, x, ccl.Sum), "ReduceScatterV": ccl.ReduceScatterV(none, c, x, x, counts, ccl.Sum),
		"Broadcast": ccl.Broadcast(none, c, x, 0), "AllGather": ccl.AllGather(none, c, x, x), "AllGatherV": ccl.AllGatherV(none, c, x, counts, x),
		"Gather": ccl.Gather(none, c, x, x, 0), "GatherV": ccl.GatherV(none, c, x, counts, x, 0), "Scatter": ccl.Scatter(none, c, x, x, 0),
		"ScatterV": ccl.ScatterV(none, c, x, x, counts, 0), "AllToAll": ccl.AllToAll(none, c, x, x),
		"AllToAllV": ccl.AllToAllV(none, c, x, counts, x, counts), "Send": ccl.Send(none, c, x, 0), "Recv": ccl.Recv(none, c, x, 0),
		"SendRecv": ccl.SendRecv(none, c, x, 0, x, 0), "Barrier": ccl.Barrier(none, c), "Barrier of no Comm": ccl.Barrier(none, nil),
	} {
		e := wants(t, err, ccl.ErrArgument)
		assert.Contains(t, e.Error(), "the context is nil", what)
	}
	require.NoError(t, ccl.AllReduce(t.Context(), c, x, x, ccl.Sum))
}
