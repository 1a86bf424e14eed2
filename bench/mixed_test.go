package main_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/goccl/goccl/test/cache"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Ranks of one host may be built in different ways, and know different things of the CPU: a build without assembly does not know
// its maker. They agree on where data lie, whichever of them comes first.
func TestMixedBuilds(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: builds a second bench")
	}
	other := filepath.Join(t.TempDir(), "noasm"+filepath.Ext(program))
	cache.Whole()
	text, err := exec.Command("go", "build", "-tags", "noasm", "-o", other, ".").CombinedOutput()
	require.NoError(t, err, "%s", text)
	for _, of := range [][]string{{program, other}, {other, program}, {program, program, other}, {other, program, program}} {
		var names []string
		for _, file := range of {
			names = append(names, strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)))
		}
		t.Run(strings.Join(names, ","), func(t *testing.T) {
			store := t.TempDir()
			outs := make([]bytes.Buffer, len(of))
			var all sync.WaitGroup
			for r, file := range of {
				all.Go(func() {
					cmd := exec.CommandContext(t.Context(), file, "-op", "all", "-b", "8", "-e", "256K", "-f", "3", "-n", "100", "-w", "5", "-c", "1")
					cmd.Env = append(clean(), fmt.Sprintf("GOCCL_RANK=%d", r), fmt.Sprintf("GOCCL_SIZE=%d", len(of)), "GOCCL_STORE="+store)
					cmd.Stdout, cmd.Stderr = &outs[r], &outs[r]
					assert.NoError(t, cmd.Run())
				})
			}
			all.Wait()
			for r := range outs {
				assert.NotContains(t, outs[r].String(), "FAIL", "rank %d", r)
			}
			assert.Contains(t, outs[0].String(), "alltoall")
			if t.Failed() {
				t.Log(outs[0].String())
			}
		})
	}
}
