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

// A context that ended by its deadline is a timeout, whose fault is the first rank that is missing, if one is known. That of any other is
// the rank itself.
func TestFaultOfContext(t *testing.T) {
	late := fmt.Errorf("after a while: %w", context.DeadlineExceeded)
	for _, tc := range []struct {
		err     error
		missing []int
		code    Code
		peer    int
		said    string
	}{
		{context.Canceled, nil, Canceled, 2, "context canceled"},
		{context.Canceled, []int{3, 5}, Canceled, 2, "context canceled"},
		{context.DeadlineExceeded, []int{7, 8}, Timeout, 7, "context deadline exceeded"},
		{late, nil, Timeout, -1, "on rank 2: after a while: context deadline exceeded"},
	} {
		f := CtxFault(tc.err, 2, tc.missing)
		assert.Equal(t, &Fault{Code: tc.code, Peer: tc.peer, Missing: tc.missing, Own: true, Err: f.Err}, f)
		assert.EqualError(t, f.Err, tc.said)
		assert.ErrorIs(t, f.Err, tc.err)
		assert.Equal(t, tc.code, CtxCode(tc.err))
	}
}
