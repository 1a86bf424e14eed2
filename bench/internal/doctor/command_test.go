package doctor

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCommandRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"allreduce":                "allreduce: an argument without a flag (-h lists the flags)",
		"-jsn":                     "-jsn: no such flag; did you mean -json? (-h lists them)",
		"-json=yes":                "-json=yes: -json takes no value",
		"-nodes 2 -launcher local": "-nodes 2: -launcher local and -hosts stay on this machine; leave it out",
	} {
		for _, name := range []string{"SLURM_JOB_ID", "PBS_NODEFILE", "GOCCL_RANK"} {
			t.Setenv(name, "")
		}
		var out, errs strings.Builder
		require.Equal(t, 2, Command(t.Context(), strings.Fields(args), &out, &errs), args)
		require.Equal(t, "bench doctor: "+want+"\n", errs.String())
		require.Empty(t, out.String())
	}
}

func TestCommandHelp(t *testing.T) {
	var out, errs strings.Builder
	require.Zero(t, Command(t.Context(), []string{"-h"}, &out, &errs))
	require.Contains(t, out.String(), "-hostfile FILE")
	require.Contains(t, out.String(), "-json")
	require.Empty(t, errs.String())
}
