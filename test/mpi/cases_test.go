//go:build mpi

package mpi

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var randomCases = flag.Int("cases", 150, "how many random calls TestCases compares; make cases-mpi has 10,000")

// serialized has tool.c grant no more than that.
const serialized = "SERIALIZED=1"

// perJob is how many of them a job makes. A process that uses oneCCL's CPU plugin cannot make communicators for ever: each
// leaves a thread and descriptors in the library, destroyed or not, and after some 150 version 2022.2.0 makes no more.
const perJob = 1000

// TestCases makes the same random calls, groups and splits over the engine cpu, over mpi under each MPI, and over
// oneccl where GOCCL_ONECCL_LIB names it: the results are equal bit for bit, and where one rank is wrong no rank has one.
// Debian's two MPIs make them once more where they grant no more than MPI_THREAD_SERIALIZED.
func TestCases(t *testing.T) {
	const ranks = 3
	n := *randomCases
	if testing.Short() {
		n = 100
	}
	program := built(t, "build", "-tags", "mpi,oneccl", "./testdata/cases")
	dir := t.TempDir()
	// results are those of all ranks; the launcher may dislike how ranks end of which a Comm has failed.
	results := func(t *testing.T, m install, backend string) (all []string) {
		m.limit = 15 * time.Minute // oneCCL's CPU plugin takes a fifth of a second for a case where ranks outnumber cores
		for first := 0; first < n; first += perJob {
			n := min(perJob, n-first)
			file := filepath.Join(dir, fmt.Sprint(m.name, backend, first))
			out, _ := m.job(t, ranks, nil, program, backend, strconv.Itoa(first), strconv.Itoa(n), file)
			if slices.Contains(m.env, serialized) {
				require.Equal(t, ranks, strings.Count(out, "tool: serialized\n"), out)
			}
			for r := range ranks {
				b, err := os.ReadFile(fmt.Sprintf("%s.%d", file, r))
				require.NoError(t, err, out)
				require.Equal(t, n, strings.Count(string(b), "\n"), "rank %d of %s stopped: %s", r, backend, out)
				all = append(all, strings.Split(string(b), "\n")...)
			}
		}
		return all
	}
	var want []string
	underEach(t, func(t *testing.T, m install) {
		if want == nil {
			want = results(t, m, "cpu")
			require.Contains(t, strings.Join(want, "\n"), "mismatch")
			if os.Getenv("GOCCL_ONECCL_LIB") != "" {
				require.Equal(t, want, results(t, m, "oneccl"))
			}
		}
		require.Equal(t, want, results(t, m, "mpi"))
		if strings.Contains(m.name, "Debian") && os.Getenv("GOCCL_TEST_ASAN") == "" {
			m = m.withTool(t)
			m.name, m.env = m.name+", serialized", append(m.env, serialized)
			require.Equal(t, want, results(t, m, "mpi"))
		}
	})
}
