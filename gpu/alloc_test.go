//go:build linux && cgo && nccl && rccl

package gpu_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/gpu/gputest"
)

func TestAllocs(t *testing.T) {
	both(t, func(t *testing.T, rt *gputest.Runtime, d gputest.Device) {
		s, e, x, y := stream(t, d), event(t, d), alloc[float32](t, d, 8), alloc[float32](t, d, 8)
		h := host[float32](t, d, 8)
		data := make([]float32, 8)
		for name, f := range map[string]func() error{
			"PutOn":         func() error { return x.PutOn(s, h) },
			"GetOn":         func() error { return x.GetOn(s, h) },
			"CopyOn":        func() error { return y.CopyOn(s, x) },
			"SetOn":         func() error { return x.SetOn(s, 0) },
			"Put":           func() error { return x.Put(data) },
			"Get":           func() error { return x.Get(data) },
			"Record":        func() error { return e.Record(s) },
			"WaitEvent":     func() error { return s.WaitEvent(e) },
			"Event.Query":   func() error { _, err := e.Query(); return err },
			"Stream.Query":  func() error { _, err := s.Query(); return err },
			"Capturing":     func() error { _, err := s.Capturing(); return err },
			"Synchronize":   s.Synchronize,
			"Handle":        func() error { _, _ = s.Handle(); return nil },
			"Ptr":           func() error { _, _ = x.Ptr(); return nil },
			"Runtime.Count": func() error { _, err := rt.Device(0); return err },
		} {
			var err error
			n := testing.AllocsPerRun(100, func() { err = f() })
			require.NoError(t, err, name)
			if name != "Runtime.Count" {
				require.Zero(t, n, name)
			}
		}
	})
}
