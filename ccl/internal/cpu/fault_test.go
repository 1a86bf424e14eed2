package cpu

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Whom the other ranks are told of, by rank 3 of a Comm.
func TestBlamed(t *testing.T) {
	c := &Member{identity: identity{rank: 3}}
	for _, tc := range []struct {
		name string
		f    Fault
		want int
	}{
		{"what another did", Fault{Code: Aborted, Peer: 1}, 1},
		{"its own context, while it waited for 2", Fault{Code: Canceled, Peer: 2, Own: true}, 3},
		{"its own deadline, while it waited for 2", Fault{Code: Timeout, Peer: 2, Own: true}, 2},
		{"its own deadline, while it waited for several", Fault{Code: Timeout, Peer: -1, Own: true}, 3},
		{"another's deadline", Fault{Code: Timeout, Peer: 2}, 2},
		{"lost", Fault{Code: RankLost, Peer: 0}, 0},
	} {
		assert.Equal(t, tc.want, c.blamed(&tc.f), tc.name)
	}
}

func TestFaultIsAnError(t *testing.T) {
	cause := errors.New("disk full")
	f := fault(Backend, 2, "rank %d: %w", 2, cause)
	assert.EqualError(t, f, "rank 2: disk full")
	assert.ErrorIs(t, f, cause)
	assert.EqualError(t, fault(Closed, 2, ""), "code 11, rank 2")
}
