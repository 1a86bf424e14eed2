package lent_test

import (
	"context"
	"errors"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/lent"
)

func TestBlock(t *testing.T) {
	host := []int32{1, 2, 3, 4, 5}
	at := uintptr(unsafe.Pointer(&host[0]))
	b := lent.NewBlock(lent.New("rocm", 0, "20 bytes of managed memory", at), len(host), 4)
	require.Equal(t, 5, b.Len())
	require.Equal(t, 12, b.Bytes(3))
	require.Equal(t, host, lent.Elements[int32](&b))
	require.NoError(t, b.Fits(5, "Put"))
	require.EqualError(t, b.Fits(6, "Put"), "rocm: Put of 6 elements, but the memory has 5")

	part, err := b.Part(1, 4)
	require.NoError(t, err)
	inner, err := part.Part(1, 3)
	require.NoError(t, err)
	require.Equal(t, []int32{3, 4}, lent.Elements[int32](&inner))
	p, err := inner.Use()
	require.NoError(t, err)
	require.Equal(t, at+8, p)
	none, err := b.Part(5, 5)
	require.NoError(t, err)
	require.Empty(t, lent.Elements[int32](&none))
	for _, bad := range [][2]int{{-1, 2}, {3, 2}, {0, 6}} {
		_, err := b.Part(bad[0], bad[1])
		require.ErrorContains(t, err, "of memory of 5 elements")
	}
	require.ErrorContains(t, inner.Free(nil), "rocm: only whole memory can be freed, not a part; the whole was made at block_test.go:")

	failed := errors.New("the driver is gone")
	require.Equal(t, failed, b.Free(func(p uintptr) error {
		require.Equal(t, at, p)
		return failed
	}))
	require.Nil(t, lent.Elements[int32](&inner))
	_, ok := part.Ptr()
	require.False(t, ok)
	_, err = part.Use()
	require.ErrorIs(t, err, lent.ErrClosed)
	_, err = part.Part(0, 1)
	require.ErrorIs(t, err, lent.ErrClosed)
	require.ErrorIs(t, b.Free(nil), lent.ErrClosed)
}

// No elements have no address, and there is nothing to give back to the runtime.
func TestEmptyBlock(t *testing.T) {
	b := lent.NewBlock(lent.New("cuda", 0, "0 bytes of device memory", 0), 0, 8)
	p, ok := b.Ptr()
	require.True(t, ok)
	require.Zero(t, p)
	require.NoError(t, b.Free(func(uintptr) error { panic("there is nothing to free") }))
	require.ErrorIs(t, b.Free(nil), lent.ErrClosed)
}

func TestPoll(t *testing.T) {
	failed := errors.New("the stream is gone")
	ended, end := context.WithCancel(t.Context())
	end()
	for _, tc := range []struct {
		name string
		ctx  context.Context
		end  error // of the third query
		want error
	}{
		{"done", t.Context(), nil, nil},
		{"failed", t.Context(), failed, failed},
		{"given up", ended, nil, context.Canceled},
	} {
		t.Run(tc.name, func(t *testing.T) {
			queries := 0
			require.Equal(t, tc.want, lent.Poll(tc.ctx, func() (bool, error) {
				queries++
				return queries == 3, map[bool]error{true: tc.end}[queries == 3]
			}))
			if tc.ctx == ended {
				require.Equal(t, 1, queries, "what is done is asked before the context")
			} else {
				require.Equal(t, 3, queries)
			}
		})
	}
}
