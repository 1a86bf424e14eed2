package harness

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

// Of the errors of all ranks, one process reports the one nearest to the cause.
func TestWhoSpeaks(t *testing.T) {
	lost := &ccl.Error{Code: ccl.ErrRankLost, Peer: 0}
	cause := &ccl.Error{Code: ccl.ErrBackend, Peer: -1}
	require.Greater(t, weight(cause), weight(lost))
	require.Greater(t, weight(lost), weight(nil))
	at := func(rank int) *plan {
		return &plan{Options: option.Options{Threads: 1}, where: boot.Launch{Rank: rank, Size: 4}}
	}
	require.True(t, at(0).speaks(&ccl.Error{Code: ccl.ErrRankLost, Peer: 2}))
	require.False(t, at(1).speaks(&ccl.Error{Code: ccl.ErrRankLost, Peer: 2}))
	require.True(t, at(1).speaks(lost))
	require.False(t, at(2).speaks(lost))
	require.True(t, at(3).speaks(cause))
	require.False(t, at(3).speaks(&ccl.Error{Code: ccl.ErrTimeout, Peer: -1}))
	require.False(t, consequence(errors.New("disk full")))
	require.True(t, consequence(&ccl.Error{Code: ccl.ErrCanceled, Err: context.Canceled}))
}

// Why a rank has not found rank 0 nobody else can say: one rank of each host does.
func TestAloneSpeaks(t *testing.T) {
	unfound := func() error {
		return &ccl.Error{Code: ccl.ErrTimeout, Err: &boot.Error{Code: boot.Timeout, Missing: []int{0}}}
	}
	heard := &ccl.Error{Code: ccl.ErrTimeout, Err: &boot.Error{Code: boot.Timeout, Missing: []int{2}}}
	at := func(local int) *plan { return &plan{where: boot.Launch{Rank: 3, Size: 4, Local: local}} }
	require.True(t, at(0).speaks(unfound()))
	require.True(t, at(-1).speaks(unfound()), "the launcher does not say")
	require.False(t, at(1).speaks(unfound()))
	require.False(t, at(0).speaks(heard), "rank 0 has said it")
}

// The rank that knows most is the first to end.
func TestPatience(t *testing.T) {
	lost := &ccl.Error{Code: ccl.ErrRankLost, Peer: 3}
	cause := &ccl.Error{Code: ccl.ErrArgument, Peer: -1}
	heard := &ccl.Error{Code: ccl.ErrAborted, Peer: 2}
	first, third := &plan{}, &plan{where: boot.Launch{Rank: 2}}
	order := []time.Duration{first.patience(cause), third.patience(cause), first.patience(heard), third.patience(heard), first.patience(lost)}
	require.Zero(t, order[0])
	for i := range order[1:] {
		require.Less(t, order[i], order[i+1])
	}
}

// GOCCL_BOOT_TIMEOUT rules, in both its forms.
func TestJoinLimit(t *testing.T) {
	for said, want := range map[string]time.Duration{"": joining, "5m": 5 * time.Minute, "90": 90 * time.Second, "2s": 2 * time.Second, "-1s": joining, "soon": joining} {
		require.Equal(t, want, joinLimit(func(string) string { return said }), said)
	}
}
