package hint

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFor(t *testing.T) {
	for _, tc := range []struct{ line, want string }{
		{"slurmstepd: error: execve(): /tmp/go-build1/bench: No such file or directory", "-share DIR"},
		{"[proxy:0:1@h2] HYDU_create_process (utils/launch/launch.c:74): execvp error on file /tmp/b/bench (No such file or directory)", "-share DIR"},
		{"env: '/home/u/.goccl-bench-12/bench': No such file or directory", "-share DIR"},
		{"mpiexec was unable to find the specified executable file, and therefore", "-share DIR"},
		{"slurmstepd: error: execve(): /tmp/x: Permission denied", "noexec"},
		{"srun: error: Unable to create step for job 4: More processors requested than permitted", "-ppn"},
		{"srun: Job 7 step creation temporarily disabled, retrying (Requested nodes are busy)", "another step"},
		{"There are not enough slots available in the system to satisfy the 8", "slots=N"},
		{"mpiexec has detected an attempt to run as root.", "OMPI_ALLOW_RUN_AS_ROOT=1"},
		{"Host key verification failed.", "ssh"},
		{"ssh: Could not resolve hostname nosuch: Name or service not known", "names of the scheduler's node file"},
		{"ssh: connect to host h9 port 22: No route to host", "names of the scheduler's node file"},
		{"nccl: getaddrinfo: Name or service not known", "a node's name is not known here"},
		{"x4102c1s0b0n0: No VNIs available in internal allocator.", "--no-vni"},
		{"libfabric:1234:cxi:core:cxip_ep_ctrl: Cassini Event Queue overflow detected.", "FI_CXI_DEFAULT_CQ_SIZE"},
		{"RuntimeError: AF_UNIX path too long", "TMPDIR=/tmp"},
		{"ping failed on x4707c0s6b0n0: Application 047a not found", "no longer answers"},
		{"PMIX ERROR: PMIX_ERR_NOT_FOUND in file client.c", "harmless"},
		{"device index must be in [0,6) but got 11", "FLAT"},
		{"libnccl.so.2: cannot open shared object file: No such file or directory", "library is missing"},
		{"Bus error (core dumped)", "--shm-size"},
		{"slurmstepd: error: Detected 1 oom-kill event(s) in step 3.0", "memory"},
		{"#       size         count      type   redop", ""},
		{"# Out of bounds values : 0 OK", ""},
		{"train: could not find config.json: no such file or directory", ""},
		{"", ""},
	} {
		t.Run(tc.line, func(t *testing.T) {
			got, fatal := For(tc.line)
			require.Equal(t, tc.want == "-share DIR" || tc.want == "noexec" || strings.HasPrefix(tc.line, "ssh: "), fatal)
			if tc.want == "" {
				require.Empty(t, got)
				return
			}
			require.Contains(t, got, tc.want)
		})
	}
}

func TestWatch(t *testing.T) {
	var out strings.Builder
	fatal := 0
	w := &Watch{W: &out, Fatal: func() { fatal++ }}
	for _, part := range []string{"good\nHost key ver", "ification failed.\n", strings.Repeat("x", 3*longest), "\n", "Host key verification failed.\nBus error"} {
		n, err := io.WriteString(w, part)
		require.NoError(t, err)
		require.Equal(t, len(part), n)
	}
	advice := w.Advice()
	require.Len(t, advice, 2)
	require.Contains(t, advice[0], "ssh")
	require.Contains(t, advice[1], "/dev/shm")
	require.Equal(t, 1, strings.Count(out.String(), "Bus error"))
	require.Zero(t, fatal)
	io.WriteString(w, "\nexecve(): /x: Permission denied\nexecve(): /x: No such file or directory\n")
	require.Equal(t, 1, fatal)
}

// A line of bench says why a rank failed, unless it is one of its log.
func TestSaid(t *testing.T) {
	for _, tc := range []struct {
		text []string
		said bool
	}{
		{[]string{"bench: -e 1T: too much\n"}, true},
		{[]string{"be", "nch: allreduce", ": rank 1 is lost", "\n"}, true},
		{[]string{"bench: rank 1 on h: warn: ccl: rank 2 is lost\n"}, false},
		{[]string{"bench: rank 1 on h: warn: ccl: rank 2 is lost\nbench: allreduce: rank 2 is lost\n"}, true},
		{[]string{"a library: a warning\n"}, false},
		{[]string{"srun: error\nbench: interrupted\n"}, true},
		{nil, false},
	} {
		w := &Watch{W: io.Discard}
		for _, part := range tc.text {
			_, err := io.WriteString(w, part)
			require.NoError(t, err)
		}
		require.Equal(t, tc.said, w.Said(), "%q", tc.text)
	}
}
