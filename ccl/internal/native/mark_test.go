//go:build (nccl || rccl) && cgo && linux

package native

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/op"
)

// TestCaptureUnbroken: marks are set and asked while another stream is captured, in CUDA's global mode, in which that is forbidden,
// and with HIP, where it breaks any capture.
func TestCaptureUnbroken(t *testing.T) {
	vendors(t, func(t *testing.T, v *vendor) {
		t.Setenv("FAKE_CAPTURE", map[string]string{"nccl": "global", "rccl": "hip"}[v.name])
		r := world(t, v, 1)[0]
		m := r.memory(t)
		other, err := r.device.NewStream()
		require.NoError(t, err)
		require.NoError(t, r.issueOne(m))
		before, err := r.Mark(r.handle())
		require.NoError(t, err)
		require.NoError(t, other.BeginCapture())
		asked := make(chan error)
		go func() { // on another thread
			_, err := before.Passed()
			if mark, e := r.Mark(r.handle()); e == nil {
				_, e = mark.Passed()
				err = errors.Join(err, e)
			} else if !errors.Is(e, engine.ErrNotNow) {
				err = errors.Join(err, e)
			}
			asked <- err
		}()
		require.NoError(t, <-asked)
		if v.queryBreaks { // a call on host memory waits until the capture is over
			host, ran := new([16]int32), make(chan error)
			go func() {
				ran <- r.Run(within(t), []*op.Call{{Head: op.Head{Record: op.Record{Kind: op.Broadcast, Type: op.Int32, Count: 1}, DstAt: addressOf(host), DstN: 1, SrcN: 1}}})
			}()
			select {
			case err := <-ran:
				t.Fatal("Run has not waited for the end of the capture: ", err)
			case <-time.After(20 * time.Millisecond):
			}
			defer func() { require.NoError(t, <-ran) }()
		}
		require.NoError(t, m.SetOn(other, 0))
		g, err := other.EndCapture()
		require.NoError(t, err, "the capture was broken")
		require.NoError(t, g.Close())
		require.NoError(t, r.wait(within(t)))
		require.NoError(t, other.Close())
		require.NoError(t, m.Free())
	})
}
