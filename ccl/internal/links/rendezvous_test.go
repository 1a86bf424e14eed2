package links

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// What does not fit into a pipe is offered, so that the other rank copies it from where it lies. Very large messages go faster through
// the pipe, which both ranks copy at a time, where each has a core of its own; not where they take turns.
func TestOffers(t *testing.T) {
	c := ranksOf(t, 2, plane.Options{})[0]
	l, f := c.Ends.Link(t.Context(), 1, PointToPoint)
	require.Nil(t, f)
	for _, tc := range []struct {
		kind    call.Kind
		n       int
		crowded bool
		want    bool
	}{
		{call.Send, tuning.PipeMax, false, false}, {call.Send, tuning.PipeMax + 1, false, true},
		{call.Send, tuning.ReadRootTo, false, true}, {call.Send, tuning.ReadRootTo + 1, false, false},
		{call.Send, tuning.PipeMax, true, false}, {call.Send, tuning.PipeMax + 1, true, true},
		{call.Send, tuning.ReadRootTo + 1, true, true},
		{call.SendRecv, tuning.ReadMessageFrom - 1, false, false}, {call.SendRecv, tuning.ReadMessageFrom, false, true},
		{call.SendRecv, tuning.ReadRootTo + 1, false, true}, {call.SendRecv, tuning.ReadRootTo + 1, true, true},
	} {
		l.To.crowded = tc.crowded
		src := make([]byte, tc.n)
		k := &call.Call{Src: src, Dst: make([]byte, 1)}
		k.Kind = tc.kind
		o := &Outgoing{L: l, Left: src}
		require.Equal(t, tc.want, c.Pairs.Offers(o, k), "%+v", tc)
		o.piped = true
		require.False(t, c.Pairs.Offers(o, k), "it has been refused")
	}
}
