package call

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A fault tells its cause if it has one; to another Comm it tells what happened in words.
func TestFaultTells(t *testing.T) {
	why := errors.New("its process ended")
	for _, tc := range []struct {
		name        string
		fault       *Fault
		error, said string
	}{
		{"a cause", NewFault(RankLost, 2, "%w", why), "its process ended", "its process ended"},
		{"text of its own", NewFault(Backend, 1, "rank %d has no room", 1), "rank 1 has no room", "rank 1 has no room"},
		{"none", NewFault(Aborted, 3, ""), "code 7, rank 3", "code 7, rank 3"},
		{"closed", NewFault(Closed, 0, ""), "code 11, rank 0", "it has closed the old Comm"},
		{"closed, with a cause", NewFault(Closed, 0, "calls are in progress"), "calls are in progress", "calls are in progress"},
		{"another call", NewFault(Mismatch, 4, ""), "code 3, rank 4", "it has made another call"},
	} {
		assert.EqualError(t, tc.fault, tc.error, tc.name)
		assert.Equal(t, tc.said, tc.fault.Said(), tc.name)
	}
	f := NewFault(RankLost, 2, "%w", why)
	assert.ErrorIs(t, f, why)
	assert.Equal(t, &Fault{Code: RankLost, Peer: 2, Err: f.Err}, f)
	assert.NoError(t, NewFault(Aborted, 3, "").Unwrap())
}

// A context that ended by its deadline is a timeout, and another one a cancellation, of this rank's own; the first rank that
// is missing is the one named.
func TestFaultOfContext(t *testing.T) {
	for _, tc := range []struct {
		err     error
		missing []int
		code    Code
		peer    int
	}{
		{context.Canceled, nil, Canceled, -1},
		{context.Canceled, []int{3, 5}, Canceled, 3},
		{context.DeadlineExceeded, []int{7}, Timeout, 7},
		{fmt.Errorf("after a while: %w", context.DeadlineExceeded), nil, Timeout, -1},
	} {
		assert.Equal(t, &Fault{Code: tc.code, Peer: tc.peer, Missing: tc.missing, Own: true, Err: tc.err}, CtxFault(tc.err, tc.missing))
	}
	assert.Equal(t, CtxFault(context.Canceled, nil), ContextFault(context.Canceled))
}
