package plane

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl/internal/call"
)

// Whom the other ranks are told of, by rank 3 of a Comm.
func TestBlamed(t *testing.T) {
	c := &Group{rank: 3}
	for _, tc := range []struct {
		name string
		f    call.Fault
		want int
	}{
		{"what another did", call.Fault{Code: call.Aborted, Peer: 1}, 1},
		{"its own context, while it waited for 2", call.Fault{Code: call.Canceled, Peer: 2, Own: true}, 3},
		{"its own deadline, while it waited for 2", call.Fault{Code: call.Timeout, Peer: 2, Own: true}, 2},
		{"its own deadline, while it waited for several", call.Fault{Code: call.Timeout, Peer: -1, Own: true}, 3},
		{"another's deadline", call.Fault{Code: call.Timeout, Peer: 2}, 2},
		{"lost", call.Fault{Code: call.RankLost, Peer: 0}, 0},
	} {
		assert.Equal(t, tc.want, c.Blamed(&tc.f), tc.name)
	}
}

func TestFaultIsAnError(t *testing.T) {
	cause := errors.New("disk full")
	f := call.NewFault(call.Backend, 2, "rank %d: %w", 2, cause)
	assert.EqualError(t, f, "rank 2: disk full")
	assert.ErrorIs(t, f, cause)
	assert.EqualError(t, call.NewFault(call.Closed, 2, ""), "code 11, rank 2")
}
