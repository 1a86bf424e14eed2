package cpu

import (
	"fmt"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/join"
	"github.com/goccl/goccl/ccl/internal/machine"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// What the calls of a job will stage must find room when the Comm is made: the ranks hear of it together.
func TestJoinLooksForRoom(t *testing.T) {
	const ranks = 3
	need := uint64(ranks * (tuning.StageBytes(ranks) + machine.CPU.SentRing(ranks)))
	defer func(real func(uint64) error) { join.RoomFor = real }(join.RoomFor)
	for _, tc := range []struct {
		limit uint64
		want  string
	}{
		{need, ""},
		{need - 1<<10, fmt.Sprintf("rank 0: shared memory: %d KiB are needed, %d are left", need>>10, need>>10-1)},
	} {
		join.RoomFor = func(n uint64) error {
			if n > tc.limit {
				return fmt.Errorf("shared memory: %d KiB are needed, %d are left: %w", n>>10, tc.limit>>10, syscall.ENOMEM)
			}
			return nil
		}
		var all sync.WaitGroup
		for _, b := range boot.Local(ranks) {
			all.Go(func() {
				defer b.Close()
				c, f := Join(t.Context(), b, testTerms(), plane.Options{})
				if tc.want == "" {
					assert.Nil(t, f)
					c.Close()
				} else if assert.NotNil(t, f) {
					assert.Equal(t, call.Backend, f.Code)
					assert.Equal(t, 0, f.Peer)
					assert.ErrorContains(t, f.Err, tc.want)
				}
			})
		}
		all.Wait()
	}
}
