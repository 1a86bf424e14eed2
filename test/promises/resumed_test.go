//go:build linux

package promises

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

const resumedElements = 4 << 20

func init() {
	// The victim is stopped while all reduce, and goes on when it has been given up, and the
	// others have poisoned what they reduced into.
	parts["resumed"] = func(ctx context.Context, c *ccl.Comm) {
		dst, src := make([]float32, resumedElements), make([]float32, resumedElements)
		if argument() == "MakeSlice" {
			var err error
			if dst, err = ccl.MakeSlice[float32](ctx, c, resumedElements); err == nil {
				src, err = ccl.MakeSlice[float32](ctx, c, resumedElements)
			}
			if err != nil {
				fmt.Println(err)
				return
			}
		}
		if c.Rank() == victim {
			wake := exec.Command("sh", "-c", fmt.Sprintf("sleep 2.5; kill -CONT %d", os.Getpid()))
			wake.Start()
			time.AfterFunc(7*time.Millisecond, func() { syscall.Kill(os.Getpid(), syscall.SIGSTOP) })
		}
		var err error
		for err == nil {
			err = ccl.AllReduce(ctx, c, dst, src, ccl.Max)
		}
		say("heard", c, err)
		if c.Rank() == victim {
			return
		}
		for i := range dst {
			dst[i], src[i] = math.Float32frombits(0xdeadbeef), math.Float32frombits(0xdeadbeef)
		}
		time.Sleep(2500 * time.Millisecond) // beyond the victim's waking up
		for i := range dst {
			if math.Float32bits(dst[i]) != 0xdeadbeef || math.Float32bits(src[i]) != 0xdeadbeef {
				fmt.Printf("written: element %d of rank %d\n", i, c.Rank())
				return
			}
		}
		say("unchanged", c, nil)
	}
}

// Not even a rank that was stopped in the middle of a call, and goes on, writes into what the
// others have got back.
func TestR11bStoppedRankGoesOn(t *testing.T) {
	t.Run("jobs", func(t *testing.T) { // which wait for most of the time
		for _, memory := range []string{"Go", "MakeSlice"} {
			for _, hosts := range []int{0, 3} {
				t.Run(fmt.Sprintf("%s, %d hosts", memory, max(hosts, 1)), func(t *testing.T) {
					t.Parallel()
					lines, text := processes(t, 3, hosts, "resumed", memory)
					require.NotContains(t, text, "written")
					for r := range 3 {
						if r != victim {
							require.Equal(t, ccl.ErrRankLost, first(t, lines, "heard", r, text).code, text)
							first(t, lines, "unchanged", r, text)
						}
					}
				})
			}
		}
	})
	record(t, 11, "R11b", "the same, by a rank that was stopped in the call, given up, and goes on", "none", "none (4 jobs, 16 MiB; on 1 host and on 3)")
}
