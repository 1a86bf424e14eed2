package harness

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/bench/internal/coll"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/engine"
)

// An all-reduce in place says that it is, for which a Queue has a shorter way; other calls name
// both buffers.
func TestSource(t *testing.T) {
	ready(t, 2, options(t), func(s *session) error {
		for _, tc := range []struct {
			op            string
			inPlace, says bool
		}{{"allreduce", true, true}, {"allreduce", false, false}, {"allgather", true, false}, {"broadcast", true, false}} {
			from := newTest(s, s.ctx, s.lanes[0], coll.Named[float32](tc.op), ccl.Sum, 0, 16, 128, tc.inPlace).sets[0].slots[0].from
			require.Equal(t, tc.says, from == ccl.InPlace(), "%s, in place: %v", tc.op, tc.inPlace)
		}
		return nil
	}).ok(t)
}

// The device's clock counts, unless it says less than the host took to make the calls: where
// nothing is launched the device may come to its first event when the last call was made.
func TestTimeOnDevice(t *testing.T) {
	const calls = 100
	ready(t, 1, options(t), func(s *session) error {
		nothing := func() error { return nil }
		for _, says := range []time.Duration{1, time.Hour} {
			s.dev = &engine.Device{Clock: engine.Clock{Start: nothing, Stop: nothing, Took: func() (time.Duration, error) { return says, nil }}}
			test := newTest(s, s.ctx, s.lanes[0], coll.Named[float32]("allreduce"), ccl.Sum, 0, 16, 64, true)
			took, err := test.loopOnDevice(calls)
			s.dev = nil
			if err != nil {
				return err
			}
			require.Greater(t, took, time.Duration(calls), "a call takes more than a nanosecond")
			require.Equal(t, says == time.Hour, took == time.Hour)
		}
		return nil
	}).ok(t)
}
