package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

// trainOn trains on n ranks of this process and returns what each has come to.
func trainOn(t *testing.T, n int) (first, last float32, hashes []string) {
	t.Helper()
	hashes = make([]string, n)
	var wg sync.WaitGroup
	for r, b := range boot.Local(n) {
		wg.Go(func() {
			c, err := ccl.NewComm(context.Background(), b, &ccl.Options{RankOrder: true})
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			f, l, weights, err := train(t.Context(), c)
			if err != nil {
				t.Error(err)
				return
			}
			hashes[r] = fmt.Sprintf("%x", fingerprint(weights))
			if r == 0 {
				first, last = f, l
			}
		})
	}
	wg.Wait()
	return first, last, hashes
}

func TestSameBitsOnAnyNumberOfRanks(t *testing.T) {
	first, last, one := trainOn(t, 1)
	require.Less(t, last, first/2, "it learns")
	for _, n := range []int{2, 3, 4, 5} {
		_, loss, hashes := trainOn(t, n)
		require.Equal(t, last, loss, "%d ranks", n)
		for r, h := range hashes {
			require.Equal(t, one[0], h, "rank %d of %d", r, n)
		}
	}
}

// The program says the same on 1, 2 and 4 processes, but for their number.
func TestProcesses(t *testing.T) {
	program := filepath.Join(t.TempDir(), "dataparallel.exe")
	b, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", b)
	var said []string
	for _, n := range []int{1, 2, 4} {
		var out, errs bytes.Buffer
		require.NoError(t, boot.Spawn(t.Context(), boot.Command{N: n, Path: program, Stdout: &out, Stderr: &errs}), errs.String())
		ranks, rest, ok := strings.Cut(out.String(), " ")
		require.True(t, ok)
		require.Equal(t, strconv.Itoa(n), ranks)
		said = append(said, rest)
	}
	require.Contains(t, said[0], "the same bits on 1, 2 and 4 ranks")
	require.Equal(t, said[0], said[1])
	require.Equal(t, said[0], said[2])
}
