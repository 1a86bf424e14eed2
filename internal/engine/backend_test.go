package engine

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/environ"
)

// Each row says what a build without the engine needs, and no two say the same of one thing.
func TestRows(t *testing.T) {
	seen := map[string]string{}
	once := func(b *Backend, things ...string) {
		for _, x := range things {
			require.Empty(t, seen[x], "%s is %s's and %s's", x, seen[x], b.Name)
			seen[x] = b.Name
		}
	}
	for _, b := range Backends() {
		require.NotEmpty(t, b.Title)
		require.NotEmpty(t, b.Files.Env)
		require.NotEmpty(t, b.Files.Names)
		require.NotEmpty(t, b.Files.Advice)
		require.Nil(t, b.Open, "an engine of this package")
		require.Equal(t, b.Platform != "", b.Hardware.PCI != "", "a backend with devices has hardware")
		require.Same(t, b, Find(b.Name))
		once(b, b.Name)
		once(b, b.Aliases...)
		once(b, b.Settings...)
		once(b, b.Visible...)
		for _, h := range b.Harms {
			require.NotEmpty(t, h.Why, h.Name)
			require.NotEmpty(t, h.Remedy, h.Name)
		}
		for _, f := range b.Failures {
			require.NotEmpty(t, f.Advice)
			_, err := regexp.Compile(f.Pattern)
			require.NoError(t, err)
		}
	}
	require.Nil(t, Find("cpu"))
}

// A backend takes the place of its row; one without a row is behind all others.
func TestRegister(t *testing.T) {
	before := rows
	old := *Find("rccl")
	t.Cleanup(func() {
		Register(old)
		rows = before
	})
	Register(Backend{Name: "rccl", Title: "mine"})
	require.Equal(t, "mine", Backends()[1].Title)
	Register(Backend{Name: "abacus"})
	require.Len(t, before, 4)
	require.Equal(t, "abacus", Backends()[4].Name)
}

// What bench passes on to other hosts, by environ.Match.
func TestVariables(t *testing.T) {
	for name, want := range map[string]bool{"NCCL_DEBUG": true, "NCCL": false, "CUDA_VISIBLE_DEVICES": true, "CUDA_VISIBLE_DEVICES2": false, "MY_NCCL_DEBUG": false} {
		require.Equal(t, want, environ.Match(Variables(), name), name)
	}
}

// Where PALS has started ranks on several hosts, with PMIx, and the user has set nothing of it, oneCCL goes over MPI.
func TestForOneCCL(t *testing.T) {
	for _, tc := range []struct {
		name, launcher string
		size, locals   int
		env            map[string]string
		over           bool
	}{
		{"Aurora", "pals", 120_960, 12, map[string]string{"PMIX_RANK": "7"}, true},
		{"two hosts", "pals", 4, 2, map[string]string{"PMIX_RANK": "0"}, true},
		{"one host", "pals", 12, 12, map[string]string{"PMIX_RANK": "7"}, false},
		{"the ranks of a host are not known", "pals", 12, -1, map[string]string{"PMIX_RANK": "7"}, false},
		{"mpiexec --pmi cray", "pals", 24, 12, map[string]string{"PMI_RANK": "7"}, false},
		{"srun --mpi=pmix", "slurm", 24, 12, map[string]string{"PMIX_RANK": "7"}, false},
		{"the user's transport", "pals", 24, 12, map[string]string{"PMIX_RANK": "7", "CCL_ATL_TRANSPORT": "ofi"}, false},
		{"bench has set them", "pals", 24, 12, map[string]string{"PMIX_RANK": "7", "CCL_ATL_TRANSPORT": "mpi", "CCL_PROCESS_LAUNCHER": "pmix", "CCL_KVS_MODE": "mpi"}, false},
		{"the user's launcher", "pals", 24, 12, map[string]string{"PMIX_RANK": "7", "CCL_PROCESS_LAUNCHER": "none"}, false},
	} {
		got := ForOneCCL(tc.launcher, tc.size, tc.locals, func(name string) string { return tc.env[name] })
		require.Equal(t, tc.over, got != nil, tc.name)
		if tc.over {
			require.Equal(t, OneCCLOverMPI, got)
		}
	}
}
