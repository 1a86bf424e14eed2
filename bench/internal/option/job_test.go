package option

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestJob(t *testing.T) {
	o := parsed(t, strings.Fields("-nodes 2 -ppn=4 -hostfile hosts -launcher mpiexec.hydra -profile none -share /lustre -bind core -dry-run -q"))
	require.Equal(t, Job{Nodes: 2, PPN: 4, Hostfile: "hosts", Launcher: "mpiexec.hydra", Profile: "none", Share: "/lustre", Bind: "core", DryRun: true, Quiet: true}, o.Job)
	o = parsed(t, nil)
	require.Equal(t, DefaultJob(), o.Job)
}

func TestJobRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"-nodes 0":    "-nodes 0: it must be at least 1",
		"-ppn many":   "-ppn many: not a whole number",
		"-bind all":   "-bind all: it must be core or none",
		"-hostfile=":  "-hostfile : give the name of a file",
		"-lanucher x": "-lanucher: no such flag; did you mean -launcher? (-h all lists them)",
	} {
		_, err := Parse(strings.Fields(args))
		require.EqualError(t, err, want)
	}
}
