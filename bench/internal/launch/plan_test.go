package launch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/bench/internal/option"
)

// tools makes a directory with programs that call themselves like launchers, and makes
// it the only one in PATH. Where programs are no such scripts the test is over with that.
func tools(t *testing.T, says map[string]string) string {
	t.Helper()
	if filepath.Separator != '/' {
		t.Skip("there are no such launchers here")
	}
	dir := t.TempDir()
	for name, version := range says {
		script := "#!/bin/sh\necho '" + version + "'\n"
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755))
	}
	t.Setenv("PATH", dir)
	return dir
}

// nodefile makes one of a PBS job.
func nodefile(t *testing.T, hosts ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "nodes")
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(hosts, "\n")+"\n"), 0o644))
	return file
}

func order(change func(o *Order)) Order {
	o := Order{Job: option.DefaultJob(), NP: 2, ActAs: 1, Program: []string{"/shared/bench", "-op", "allreduce"}, Self: true}
	if change != nil {
		change(&o)
	}
	return o
}

func TestCommandLine(t *testing.T) {
	dir := tools(t, map[string]string{
		"srun": "slurm", "mpiexec": "PALS 1.2", "mpiexec.hydra": "HYDRA build details", "mpirun.openmpi": "mpirun (Open MPI) 4.1.4", "mpiexec.x": "hello",
	})
	aurora := nodefile(t, "x4101c0s0b0n0.hsn.cm.aurora.alcf.anl.gov", "x4101c0s1b0n0.hsn.cm.aurora.alcf.anl.gov")
	plain := nodefile(t, "h1", "h1", "h2", "h2")
	slurm2 := []string{"SLURM_JOB_ID=7", "SLURM_JOB_NUM_NODES=2", "SLURM_JOB_NODELIST=localhost,n2", "SLURM_JOB_CPUS_PER_NODE=4(x2)"}
	const prog = " /shared/bench -op allreduce"
	input, w, err := os.Pipe()
	require.NoError(t, err)
	defer input.Close()
	defer w.Close()
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	step := func(shape string) string {
		return dir + "/srun " + shape + " --overlap --export=ALL --input=none --kill-on-bad-exit=1"
	}
	for _, tc := range []struct {
		name  string
		env   []string
		order func(o *Order)
		want  string // the command line, or
		err   string
	}{
		{name: "salloc, nothing said", env: slurm2, want: step("--nodes=2 --ntasks=8 --ntasks-per-node=4") + prog},
		{name: "salloc --ntasks-per-node", env: append(slurm2, "SLURM_NTASKS_PER_NODE=3"), want: step("--nodes=2 --ntasks=6 --ntasks-per-node=3") + prog},
		{name: "salloc -n3", env: append(slurm2, "SLURM_NTASKS=3"), want: step("--nodes=2 --ntasks=3") + prog},
		{name: "salloc -c", env: append(slurm2, "SLURM_NTASKS=2", "SLURM_CPUS_PER_TASK=2"), want: step("--nodes=2 --ntasks=2 --ntasks-per-node=1") + " --cpus-per-task=2" + prog},
		{name: "-ppn", env: append(slurm2, "SLURM_NTASKS=2"), order: func(o *Order) { o.PPN = 4 }, want: step("--nodes=2 --ntasks=8 --ntasks-per-node=4") + prog},
		{name: "-nodes", env: slurm2, order: func(o *Order) { o.Nodes, o.PPN = 1, 2 }, want: step("--nodes=1 --ntasks=2 --ntasks-per-node=2") + prog},
		{name: "-np", env: slurm2, order: func(o *Order) { o.NP, o.NPGiven = 4, true }, want: step("--nodes=2 --ntasks=4 --ntasks-per-node=2") + prog},
		{name: "-np 1", env: slurm2, order: func(o *Order) { o.NP, o.NPGiven = 1, true }, want: step("--nodes=1 --ntasks=1 --ntasks-per-node=1") + prog},
		{name: "-bind none", env: append(slurm2, "NERSC_HOST=perlmutter"), order: func(o *Order) { o.Bind = "none" },
			want: step("--nodes=2 --ntasks=8 --ntasks-per-node=4") + " --cpu-bind=none" + prog},
		{name: "names that lead nowhere", env: []string{"SLURM_JOB_ID=7", "SLURM_JOB_NUM_NODES=2", "SLURM_NTASKS=2", "SLURM_JOB_NODELIST=no-such-host.invalid,b"},
			want: step("--nodes=2 --ntasks=2 --ntasks-per-node=1") + " --mpi=pmi2" + prog},
		{name: "keep going", env: append(slurm2, "SLURM_NTASKS=2"), order: func(o *Order) { o.KeepGoing, o.Prefix = true, true },
			want: dir + "/srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --overlap --export=ALL --input=none --kill-on-bad-exit=0 --label" + prog},
		{name: "input for rank 0", env: append(slurm2, "SLURM_NTASKS=2"), order: func(o *Order) { o.Stdin = input },
			want: strings.Replace(step("--nodes=2 --ntasks=2 --ntasks-per-node=1"), "--input=none", "--input=0", 1) + prog},
		{name: "no input", env: append(slurm2, "SLURM_NTASKS=2"), order: func(o *Order) { o.Stdin = null }, want: step("--nodes=2 --ntasks=2 --ntasks-per-node=1") + prog},
		{name: "logs", env: slurm2, order: func(o *Order) { o.Logs = "/logs" }, err: "-logs /logs: a log for each rank is for ranks on this machine (-launcher local); elsewhere the launcher writes them: srun --output, mpiexec -outfile-pattern or --output-filename"},
		{name: "Frontier", env: []string{"SLURM_JOB_ID=7", "SLURM_JOB_NUM_NODES=1", "SLURM_CLUSTER_NAME=frontier"},
			want: step("--nodes=1 --ntasks=8 --ntasks-per-node=8") + " --network=disable_rdzv_get --cpus-per-task=7 --gpus-per-task=1 --gpu-bind=closest" + prog},
		{name: "Perlmutter", env: []string{"SLURM_JOB_ID=7", "SLURM_JOB_NUM_NODES=1", "NERSC_HOST=perlmutter", "SLURM_GPUS_ON_NODE=4"},
			want: step("--nodes=1 --ntasks=4 --ntasks-per-node=4") + " --cpu-bind=cores --gpus-per-node=4" + prog},
		{name: "Aurora", env: []string{"PBS_JOBID=1", "PBS_NODEFILE=" + aurora},
			want: dir + "/mpiexec --envall --np 24 --ppn 12 --hostfile " + aurora + " --cpu-bind list:1-8:9-16:17-24:25-32:33-40:41-48:53-60:61-68:69-76:77-84:85-92:93-100" + prog},
		{name: "Aurora, COMPOSITE", env: []string{"PBS_JOBID=1", "PBS_NODEFILE=" + aurora, "ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE"}, order: func(o *Order) { o.Bind = "none" },
			want: dir + "/mpiexec --envall --np 12 --ppn 6 --hostfile " + aurora + " --cpu-bind none" + prog},
		{name: "Aurora without its profile", env: []string{"PBS_JOBID=1", "PBS_NODEFILE=" + aurora}, order: func(o *Order) { o.Profile, o.PPN = "none", 2 },
			want: dir + "/mpiexec --envall --np 4 --ppn 2 --hostfile " + aurora + prog},
		{name: "PBS with mpiprocs, Hydra", env: []string{"PBS_NODEFILE=" + plain}, order: func(o *Order) { o.Launcher = "mpiexec.hydra" },
			want: dir + "/mpiexec.hydra -n 4 -ppn 2 -hosts h1:2,h2:2" + prog},
		{name: "a host file, one of its hosts", order: func(o *Order) { o.Hostfile, o.Launcher, o.Nodes = plain, "mpiexec.hydra", 1 },
			want: dir + "/mpiexec.hydra -n 2 -ppn 2 -hosts h1:2" + prog},
		{name: "Hydra on this machine", order: func(o *Order) { o.Launcher, o.PPN = "mpiexec.hydra", 3 }, want: dir + "/mpiexec.hydra -n 3 -ppn 3" + prog},

		{name: "too many nodes", env: slurm2, order: func(o *Order) { o.Nodes = 3 }, err: "-nodes 3: there are 2 in the Slurm allocation"},
		{name: "too many ranks", env: slurm2, order: func(o *Order) { o.NP, o.NPGiven, o.PPN = 9, true, 4 }, err: "-np 9: 2 nodes with -ppn 4 take 8 ranks; leave one of the flags out"},
		{name: "too few ranks", env: slurm2, order: func(o *Order) { o.NP, o.NPGiven, o.Nodes = 1, true, 2 }, err: "-np 1: fewer than -nodes 2"},
		{name: "no allocation", order: func(o *Order) { o.Nodes = 2 }, err: "-nodes 2: there are no nodes to choose from: start an allocation (salloc, qsub), or give -hostfile"},
		{name: "srun without one", order: func(o *Order) { o.Launcher = "srun" }, err: "-launcher srun: not inside a Slurm allocation; start one with salloc or sbatch"},
		{name: "local, with nodes", env: slurm2, order: func(o *Order) { o.Launcher, o.PPN = "local", 2 }, err: "-ppn 2: -launcher local and -hosts stay on this machine; leave it out"},
		{name: "no such launcher", env: slurm2, order: func(o *Order) { o.Launcher = "aprun" },
			err: "no aprun in PATH to start ranks on the nodes with: load its module, name one with -launcher, or stay on this machine with -launcher local"},
		{name: "a stranger", env: slurm2, order: func(o *Order) { o.Launcher = "mpiexec.x" },
			err: dir + `/mpiexec.x is not an mpiexec that bench knows (PALS, MPICH's and Intel's Hydra, Open MPI): its --version says "hello"; name another with -launcher`},
		{name: "no such machine", env: slurm2, order: func(o *Order) { o.Profile = "auroa" }, err: "-profile auroa: no such machine; did you mean aurora?"},
		{name: "no such machine, on this one", order: func(o *Order) { o.Profile = "froniter" }, err: "-profile froniter: no such machine; did you mean frontier?"},
		{name: "IPv6 for Hydra", order: func(o *Order) { o.Hostfile, o.Launcher = nodefile(t, "[fd00::1]:2", "fd00::2"), "mpiexec.hydra" },
			err: "fd00::1: " + dir + "/mpiexec.hydra takes no IPv6 addresses; give the host a name that resolves to the address, in /etc/hosts or DNS"},
		{name: "IPv6 for Open MPI", order: func(o *Order) { o.Hostfile, o.Launcher = nodefile(t, "h1", "[fd00::2]:2"), "mpirun.openmpi" },
			err: "fd00::2: " + dir + "/mpirun.openmpi takes no IPv6 addresses; give the host a name that resolves to the address, in /etc/hosts or DNS"},
		{name: "no such host file", order: func(o *Order) { o.Hostfile = "/no/such" }, err: "-hostfile /no/such: no such file or directory"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := order(tc.order).Plan(t.Context(), env(tc.env...))
			if tc.err != "" {
				require.EqualError(t, err, tc.err)
				return
			}
			require.NoError(t, err)
			require.False(t, p.Local)
			require.Equal(t, tc.want, strings.Join(p.starter.command(p), " "))
		})
	}
}

// Open MPI passes on what it is told to, and its variables do not lead to rank 0.
func TestOpenMPI(t *testing.T) {
	tools(t, map[string]string{"mpirun": "mpirun (Open MPI) 4.1.4"})
	for _, v := range os.Environ() { // those of this test run would be passed on as well
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "GOCCL_") {
			t.Setenv(name, "")
			os.Unsetenv(name)
		}
	}
	t.Setenv("NCCL_DEBUG", "WARN")
	hosts := nodefile(t, "h1", "h2")
	p, err := order(func(o *Order) { o.Hostfile, o.Env = hosts, []string{"OURS=1"} }).Plan(t.Context(), env())
	require.NoError(t, err)
	command := strings.Join(p.starter.command(p), " ")
	require.Contains(t, command, "-n 2 --bind-to none --oversubscribe --host h1:1,h2:1 -x GOCCL_BENCH_SUM -x GOCCL_ROOT -x GOCCL_SECRET")
	require.Contains(t, command, "-x NCCL_DEBUG")
	require.Contains(t, command, "-x OURS ", "what -x of bench launch sets")
	require.Regexp(t, `^h1:3[2-6]\d\d\d$`, p.root)
}

func TestLocal(t *testing.T) {
	for name, change := range map[string]func(o *Order){
		"nothing": nil,
		"local":   func(o *Order) { o.Launcher = "local" },
		"hosts":   func(o *Order) { o.ActAs = 2 },
	} {
		p, err := order(change).Plan(t.Context(), env())
		require.NoError(t, err, name)
		require.True(t, p.Local, name)
		require.Equal(t, 2, p.Ranks, name)
	}
	p, err := order(func(o *Order) { o.Launcher = "local" }).Plan(t.Context(), env("SLURM_JOB_ID=7", "SLURM_JOB_NUM_NODES=2"))
	require.NoError(t, err)
	require.True(t, p.Local)
}

// What is said names every flag and variable with its reason.
func TestSay(t *testing.T) {
	dir := tools(t, map[string]string{"mpiexec": "PALS 1.2"})
	file := nodefile(t, "x3001c0s1b0n0", "x3001c0s7b0n0")
	p, err := order(nil).Plan(t.Context(), env("PBS_JOBID=1", "PBS_NODEFILE="+file, "NCCL_CROSS_NIC=0"))
	require.NoError(t, err)
	var b strings.Builder
	require.NoError(t, p.Say(&b))
	out := b.String()
	require.Contains(t, out, "# launch: 8 ranks on 2 nodes, 4 each (four GPUs), by "+dir+"/mpiexec (pals), profile polaris\n")
	require.Contains(t, out, "# launch: --cpu-bind list:24-31:16-23:8-15:0-7: each rank on the cores near its GPU\n")
	require.Contains(t, out, "# launch: NCCL_NET=AWS Libfabric: ")
	require.NotContains(t, out, "NCCL_CROSS_NIC", "the user has set it")
	require.Contains(t, out, "# launch: "+dir+"/mpiexec --envall --np 8 --ppn 4 --hostfile "+file)
	for line := range strings.Lines(out) {
		require.True(t, strings.HasPrefix(line, "# "), line)
	}
}

// No secret, and nothing else that is not a comment's business, is told.
func TestSayKeepsSecrets(t *testing.T) {
	tools(t, map[string]string{"mpirun": "Open MPI", "mpiexec": "PALS", "srun": ""})
	for _, name := range []string{"GOCCL_SECRET", "AWS_SECRET_ACCESS_KEY", "HF_TOKEN"} {
		t.Setenv(name, "planted")
	}
	hosts := nodefile(t, "h1", "h2")
	for _, launcher := range []string{"mpirun", "mpiexec"} {
		p, err := order(func(o *Order) { o.Hostfile, o.Launcher = hosts, launcher }).Plan(t.Context(), os.Getenv)
		require.NoError(t, err)
		var b strings.Builder
		require.NoError(t, p.Say(&b))
		require.NotContains(t, b.String(), "planted")
	}
}
