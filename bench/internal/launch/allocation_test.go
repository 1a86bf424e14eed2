package launch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// env is an environment of NAME=VALUE words.
func env(words ...string) func(string) string {
	return func(name string) string {
		for _, w := range words {
			if v, ok := strings.CutPrefix(w, name+"="); ok {
				return v
			}
		}
		return ""
	}
}

// recorded is what a real launcher has set.
func recorded(t *testing.T, name string) func(string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../../ccl/boot/testdata/env", name+".env"))
	require.NoError(t, err)
	return env(strings.Split(string(text), "\n")...)
}

func TestFind(t *testing.T) {
	files := map[string]string{
		"/nodes":   "x4101c0s0b0n0.hsn.cm.aurora.alcf.anl.gov\nx4101c0s1b0n0.hsn.cm.aurora.alcf.anl.gov\n",
		"/procs":   "a\na\nb\nb\n",
		"/nobody":  "\n",
		"/workers": "gpt-worker-0.gpt.ns.svc slots=4\ngpt-worker-1.gpt.ns.svc slots=4\n",
	}
	read := func(name string) ([]byte, error) {
		text, ok := files[name]
		if !ok {
			return nil, &os.PathError{Op: "open", Path: name, Err: os.ErrNotExist}
		}
		return []byte(text), nil
	}
	workers := []string{"gpt-worker-0.gpt.ns.svc", "gpt-worker-1.gpt.ns.svc"}
	aurora := []string{"x4101c0s0b0n0.hsn.cm.aurora.alcf.anl.gov", "x4101c0s1b0n0.hsn.cm.aurora.alcf.anl.gov"}
	for _, tc := range []struct {
		name string
		env  func(string) string
		want *Allocation
		err  string
	}{
		{"nothing", env(), nil, ""},
		{"PBS", env("PBS_JOBID=1", "PBS_NODEFILE=/nodes"), &Allocation{Scheduler: "pbs", Hosts: aurora, Nodes: 2}, ""},
		{"PBS with mpiprocs", env("PBS_NODEFILE=/procs"), &Allocation{Scheduler: "pbs", Hosts: []string{"a", "b"}, Nodes: 2, PerNode: 2}, ""},
		{"PBS_JOBID alone, which Slurm's spank_pbs sets", env("PBS_JOBID=1"), nil, ""},
		{"Slurm with spank_pbs", env("PBS_NODEFILE=/nodes", "SLURM_JOB_ID=3", "SLURM_JOB_NUM_NODES=4"), &Allocation{Scheduler: "slurm", Nodes: 4}, ""},
		{"no node file", env("PBS_NODEFILE=/gone"), nil, "PBS_NODEFILE=/gone, the list of this job's nodes, cannot be read: file does not exist (-launcher local runs on this machine alone)"},
		{"an empty one", env("PBS_NODEFILE=/nobody"), nil, "PBS_NODEFILE=/nobody: it names no host"},
		{"an MPIJob's launcher, Open MPI", env("OMPI_MCA_orte_default_hostfile=/workers"), &Allocation{Scheduler: "hostfile", Hosts: workers, Nodes: 2, PerNode: 4}, ""},
		{"an MPIJob's launcher, Intel MPI", env("I_MPI_HYDRA_HOST_FILE=/workers"), &Allocation{Scheduler: "hostfile", Hosts: workers, Nodes: 2, PerNode: 4}, ""},
		{"an MPIJob's launcher, MPICH", env("HYDRA_HOST_FILE=/workers"), &Allocation{Scheduler: "hostfile", Hosts: workers, Nodes: 2, PerNode: 4}, ""},
		{"an MPIJob without its file", env("HYDRA_HOST_FILE=/gone"), nil, "HYDRA_HOST_FILE=/gone, the list of this job's workers, cannot be read: file does not exist (-launcher local runs on this machine alone)"},
		{"salloc -N2", env("SLURM_JOB_ID=3", "SLURM_JOB_NUM_NODES=2", "SLURM_TASKS_PER_NODE=1(x2)"), &Allocation{Scheduler: "slurm", Nodes: 2}, ""},
		{"salloc -N2 -n4", env("SLURM_JOB_ID=3", "SLURM_JOB_NUM_NODES=2", "SLURM_NTASKS=4", "SLURM_TASKS_PER_NODE=3,1"), &Allocation{Scheduler: "slurm", Nodes: 2, Ranks: 4, PerNode: 2}, ""},
		{"salloc -N2 -n3", env("SLURM_JOB_ID=3", "SLURM_JOB_NUM_NODES=2", "SLURM_NTASKS=3"), &Allocation{Scheduler: "slurm", Nodes: 2, Ranks: 3}, ""},
		{"cores", env("SLURM_JOB_ID=3", "SLURM_NNODES=1", "SLURM_CPUS_PER_TASK=7"), &Allocation{Scheduler: "slurm", Nodes: 1, Cores: 7}, ""},
		{"no nodes", env("SLURM_JOB_ID=3"), nil, "SLURM_JOB_ID is set, but SLURM_JOB_NUM_NODES is not: does this environment come from Slurm? (-launcher local runs on this machine alone)"},
		{"no number", env("SLURM_JOB_ID=3", "SLURM_JOB_NUM_NODES=x"), nil, `SLURM_JOB_NUM_NODES="x" is not a number of at least 1: does this environment come from Slurm? (-launcher local runs on this machine alone)`},
		{"recorded: the script of sbatch", recorded(t, "sbatch-shell.none"), &Allocation{Scheduler: "slurm", Nodes: 2, PerNode: 2, Ranks: 4}, ""},
		{"recorded: the shell of salloc", recorded(t, "salloc-shell.none"), &Allocation{Scheduler: "slurm", Nodes: 2, PerNode: 2, Ranks: 4}, ""},
		{"recorded: salloc's interactive step", recorded(t, "salloc-interactive-step.none"), &Allocation{Scheduler: "slurm", Nodes: 2, PerNode: 2}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, err := Find(tc.env, read)
			if tc.err != "" {
				require.EqualError(t, err, tc.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.want, a)
		})
	}
}

func TestInteractive(t *testing.T) {
	require.False(t, Interactive(env()))
	require.False(t, Interactive(recorded(t, "srun.0")))
	require.True(t, Interactive(env("SLURM_STEP_ID=0", "SLURM_PTY_PORT=4711")))
}

func TestParseHosts(t *testing.T) {
	for _, tc := range []struct {
		text, err string
		want      Allocation
	}{
		{text: "h1\nh2\n", want: Allocation{Hosts: []string{"h1", "h2"}, Nodes: 2, PerNode: 1}},
		{text: "h1:4\nh2:2 # half\n\n# none\n", want: Allocation{Hosts: []string{"h1", "h2"}, Nodes: 2, PerNode: 2}},
		{text: "h1 slots=4 max_slots=8\nh2.example.org slots=4", want: Allocation{Hosts: []string{"h1", "h2.example.org"}, Nodes: 2, PerNode: 4}},
		{text: "h2\nh1\nh2\nh1\n", want: Allocation{Hosts: []string{"h2", "h1"}, Nodes: 2, PerNode: 2}},
		{text: "fe80::1\n", want: Allocation{Hosts: []string{"fe80::1"}, Nodes: 1, PerNode: 1}},
		{text: "[fd00::1]:4\n[fd00::2]:4\n", want: Allocation{Hosts: []string{"fd00::1", "fd00::2"}, Nodes: 2, PerNode: 4}},
		{text: "[fd00::1] slots=2\nfd00::2 slots=2\nfd00::1\n", want: Allocation{Hosts: []string{"fd00::1", "fd00::2"}, Nodes: 2, PerNode: 2}},
		{text: "[fd00::1\n", err: `line 1: "[fd00::1" is not a host; an IPv6 address is written as fd00::1, or [fd00::1]:4 with slots`},
		{text: "[h1]:2\n", err: `line 1: "[h1]:2" is not a host; an IPv6 address is written as fd00::1, or [fd00::1]:4 with slots`},
		{text: "[fd00::1]4\n", err: `line 1: "[fd00::1]4" is not a host; an IPv6 address is written as fd00::1, or [fd00::1]:4 with slots`},
		{text: "[fd00::1]:0\n", err: `line 1: "0" is not a number of slots`},
		{text: "h1:2:3\n", err: `line 1: "h1:2:3" is not a host; an IPv6 address is written as fd00::1, or [fd00::1]:4 with slots`},
		{text: "", err: "it names no host"},
		{text: "h1\n-x\n", err: `line 2: "-x" is not a host`},
		{text: "h1;reboot\n", err: `line 1: "h1;reboot" is not a host`},
		{text: "h1 slots=0\n", err: `line 1: "0" is not a number of slots`},
		{text: "h1 4\nh2 4 # as some write it\n", want: Allocation{Hosts: []string{"h1", "h2"}, Nodes: 2, PerNode: 4}},
		{text: "h1 slots = 4\nh2 slots= 4 max_slots = 8\nh3\tslots =4\n", want: Allocation{Hosts: []string{"h1", "h2", "h3"}, Nodes: 3, PerNode: 4}},
		{text: "h1 many\n", err: `line 1: "many" is not a number of slots`},
		{text: "h1:4 4\n", err: `line 1: "4" means nothing here; a line is h1, h1:4, h1 4 or h1 slots=4`},
		{text: "h1 slot=4\n", err: `line 1: "slot=4" means nothing here; a line is h1, h1:4, h1 4 or h1 slots=4`},
		{text: "h1 slots=\n", err: "line 1: slots= has no number"},
		{text: "h1 4 4\n", err: `line 1: "4" means nothing here; a line is h1, h1:4, h1 4 or h1 slots=4`},
		{text: "h1:many\n", err: `line 1: "many" is not a number of slots`},
		{text: strings.Repeat("h", 300), err: "line 1: \"" + strings.Repeat("h", 64) + "\" is not a host"},
	} {
		a, err := ParseHosts(tc.text)
		if tc.err != "" {
			require.EqualError(t, err, tc.err)
			continue
		}
		require.NoError(t, err)
		tc.want.Scheduler = "hostfile"
		require.Equal(t, &tc.want, a)
	}
}

func FuzzParseHosts(f *testing.F) {
	for _, s := range []string{"h1\nh2:3\n", "a slots=2\na\n# x", "::1", "h1:99999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ParseHosts(text)
		if err != nil {
			return
		}
		require.Len(t, a.Hosts, a.Nodes)
		require.Positive(t, a.PerNode)
		for _, h := range a.Hosts {
			require.NotContains(t, h, " ")
			require.False(t, strings.HasPrefix(h, "-"))
		}
	})
}
