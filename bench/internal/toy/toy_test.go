package toy

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/bench/internal/harness"
	"github.com/goccl/goccl/bench/internal/hint"
	"github.com/goccl/goccl/bench/internal/machine"
)

// isBench is set where the test's program is to be bench, also by the ranks that it starts.
const isBench = "TOY_IS_BENCH"

func TestMain(m *testing.M) {
	if os.Getenv(isBench) != "" {
		os.Exit(harness.Main(os.Args))
	}
	os.Exit(m.Run())
}

// bench runs it with args, under no launcher.
func bench(t *testing.T, env, args string) (out string, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], strings.Fields(args)...)
	cmd.Env = append(os.Environ(), isBench+"=1", env)
	b, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(b), cmd.ProcessState.ExitCode()
}

// A vendor is what one file registers: bench takes its name, measures on its devices, whose results are right, and knows what the
// file says of its library.
func TestVendor(t *testing.T) {
	for _, tc := range []struct {
		env, args string
		status    int
		want      []string
	}{
		{"", "-t 3 -op allreduce -d float -b 4 -e 4K -n 3", 0, []string{"engine: toy: Toy 1.0  transport: toy's own", " 4096 ", "Out of bounds values : 0 OK"}},
		{"", "-t 2 -backend toy,toy -d float -b 1K -e 1K -n 3", 0, []string{"Out of bounds values : 0 OK"}},
		{"", "-t 2 -backend toy -mem managed -d float -b 1K -e 1K -n 3", 0, []string{"Out of bounds values : 0 OK"}},
		{"", "-t 2 -backend toy -d double -b 1K -e 1K", 1, []string{"the toy sums float32 on its devices, and does nothing else"}},
		{"", "-t 2 -backend toy -G 1 -b 1K -e 1K", 1, []string{"the toy backend has no graphs"}},
		{"", "-backend plaything", 2, []string{"did you mean toy?"}},
		{"", "-h", 0, []string{"engine: cpu nccl rccl oneccl mpi toy"}},
		{"", "version", 0, []string{"backends cpu, toy"}},
		{"TOY_DEBUG=1", "doctor -np 1", 0, []string{"TOY_DEBUG=1 on rank 0: the toy chatters"}},
	} {
		t.Run(tc.args, func(t *testing.T) {
			out, status := bench(t, tc.env, tc.args)
			for _, want := range tc.want {
				require.Contains(t, out, want)
			}
			require.Equal(t, tc.status, status, out)
		})
	}
	advice, _ := hint.For("ERROR: the toy box is shut")
	require.Equal(t, "open the toy box", advice)
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(root+"/dev", 0o755))
	for _, name := range []string{"/dev/toy0", "/dev/toy1"} {
		require.NoError(t, os.WriteFile(root+name, nil, 0o600))
	}
	require.Equal(t, map[string]int{"Toys": 2}, machine.Devices(root))
}
