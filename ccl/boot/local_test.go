package boot

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLocal(t *testing.T) {
	require.Nil(t, Local(0))
	for _, n := range []int{1, 2, 7, 100} {
		noLeaks(t)
		boots := Local(n)
		for r, b := range boots {
			require.Equal(t, r, b.Rank())
			require.Equal(t, n, b.Size())
			require.Len(t, b.Secret(), 32)
			require.Equal(t, boots[0].Secret(), b.Secret())
			require.Equal(t, loopback, b.Addr())
			require.Equal(t, "", b.HostID())
		}
		for range 5 {
			swap(t, boots)
		}
		closeAll(boots)
		_, err := boots[0].AllGather(t.Context(), nil)
		wantError(t, err, Closed, 0, -1)
	}
}

func TestLocalHosts(t *testing.T) {
	boots := Local(4, "a", "a", "b")
	for r, want := range []string{"a", "a", "b", "b"} {
		require.Equal(t, want, boots[r].HostID())
	}
}

func TestLocalLost(t *testing.T) {
	noLeaks(t)
	for _, early := range []bool{true, false} {
		boots := Local(3)
		swap(t, boots)
		if early {
			boots[1].Close()
		} else {
			defer time.AfterFunc(20*time.Millisecond, func() { boots[1].Close() }).Stop()
		}
		_, errs := gather(within(t, long), []*Boot{boots[0], nil, boots[2]}, make([][]byte, 3))
		for _, r := range []int{0, 2} {
			e := wantError(t, errs[r], Lost, r, 1)
			require.Equal(t, "AllGather 2: rank 1 is gone", e.Text)
		}
	}
}

func TestLocalMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boots := Local(4)
		_, errs := gather(within(t, 50*time.Millisecond), []*Boot{boots[0], nil, boots[2], nil}, make([][]byte, 4))
		for _, r := range []int{0, 2} {
			e := wantError(t, errs[r], Timeout, r, 1)
			require.Equal(t, []int{1, 3}, e.Missing)
			require.Equal(t, "2 ranks have not reached AllGather 1 in time: 1, 3", e.Text)
			require.ErrorIs(t, e, context.DeadlineExceeded)
		}
		_, err := boots[1].AllGather(t.Context(), nil)
		wantError(t, err, Timeout, 1, 1)
	})
}

func TestLocalCanceled(t *testing.T) {
	noLeaks(t)
	boots := Local(3)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	_, err := boots[1].AllGather(ctx, nil)
	wantError(t, err, Canceled, 1, 1)
	_, err = boots[0].AllGather(t.Context(), nil)
	wantError(t, err, Canceled, 0, 1)
}
