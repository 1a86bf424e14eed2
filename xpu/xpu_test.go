package xpu_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/xpu"
)

var (
	_ ccl.Stream          = (*xpu.Queue)(nil)
	_ ccl.Memory[float32] = (*xpu.Mem[float32])(nil)
)

// What was never made is an error, not a crash.
func TestZeroValues(t *testing.T) {
	var m *xpu.Mem[float32]
	var h *xpu.Host[float32]
	var q *xpu.Queue
	var e *xpu.Event
	_, slice := m.Slice()
	_, part := m.Part(0, 0)
	_, hostPart := h.Part(0, 0)
	_, query := q.Query()
	_, done := e.Query()
	_, since := e.Since(e)
	for i, err := range []error{
		m.Put(nil), m.Get(nil), m.Set(0), m.Free(), slice, part, m.PutOn(q, h), m.GetOn(q, h), m.CopyOn(q, m), m.SetOn(q, 0),
		h.Free(), hostPart, q.Close(), q.Synchronize(), query, q.WaitEvent(e), e.Close(), e.Record(q), e.Synchronize(), done, since,
	} {
		require.ErrorIs(t, err, xpu.ErrClosed, "%d", i)
	}
	require.Nil(t, h.Slice())
	require.Zero(t, h.Len()+m.Len())
	require.Equal(t, -1, m.Device())
	require.Equal(t, -1, q.Device())
}
