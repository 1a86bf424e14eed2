package boot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// recorded is the environment that a real launcher gave a process.
func recorded(t testing.TB, name string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "env", name+".env"))
	require.NoError(t, err)
	env := map[string]string{}
	for line := range strings.Lines(string(text)) {
		k, v, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		require.True(t, ok, line)
		env[k] = v
	}
	return env
}

// with returns env with some variables changed; "" unsets.
func with(env map[string]string, changes ...string) map[string]string {
	changed := map[string]string{}
	for k, v := range env {
		changed[k] = v
	}
	for _, c := range changes {
		k, v, _ := strings.Cut(c, "=")
		changed[k] = v
	}
	return changed
}

// varsOf reads env and, as files, files.
func varsOf(env map[string]string, files map[string][]byte) *vars {
	var environ []string
	for name, value := range env {
		environ = append(environ, name+"="+value)
	}
	return &vars{
		getenv:  func(k string) string { return env[k] },
		environ: environ,
		readFile: func(path string) ([]byte, error) {
			if b, ok := files[path]; ok {
				return b, nil
			}
			return nil, fs.ErrNotExist
		},
	}
}

// makeAPInfo writes a file as PALS does, for ranks on nodes.
func makeAPInfo(hosts []string, nodes []int) []byte {
	const header, rankSize, nodeSize = 160, 12, 68
	b := make([]byte, header+len(nodes)*rankSize+len(hosts)*nodeSize)
	put := func(at int, v uint64) { binary.NativeEndian.PutUint64(b[at:], v) }
	put(0, 5)
	put(apRankSize, rankSize)
	put(apRankAt, header)
	put(apRanks, uint64(len(nodes)))
	put(apNodeSize, nodeSize)
	put(apNodeAt, uint64(header+len(nodes)*rankSize))
	put(apNodes, uint64(len(hosts)))
	for r, n := range nodes {
		binary.NativeEndian.PutUint32(b[header+r*rankSize+apRankNode:], uint32(n))
	}
	for n, h := range hosts {
		copy(b[header+len(nodes)*rankSize+n*nodeSize+apNodeName:], h)
	}
	return b
}

// palsFiles are the files that the recorded environments of PALS name.
func palsFiles(env map[string]string) map[string][]byte {
	return map[string][]byte{
		env["PALS_APINFO"]:  makeAPInfo([]string{"x1", "x2"}, []int{0, 0, 1, 1}),
		env["PBS_NODEFILE"]: []byte("x1.hsn.cm.test\nx2.hsn.cm.test\nx1.hsn.cm.test\nx2.hsn.cm.test\n"),
	}
}

func TestDetectRecorded(t *testing.T) {
	alone := Launch{Launcher: "none", Size: 1, Locals: 1, Nodes: 1}
	want := map[string]Launch{
		"salloc-shell.none":            alone,
		"sbatch-shell.none":            alone,
		"salloc-interactive-step.none": alone,
		"fakepals-aurora-shell.none":   alone,
		"fakepals-polaris-shell.none":  alone,
		"salloc-srun1.0":               {"slurm", 0, 1, 0, 1, 0, 1, "5.0"},
		"srun-uneven.0":                {"slurm", 0, 3, 0, 2, 0, 2, "2.0"},
		"srun-uneven.1":                {"slurm", 1, 3, 1, 2, 0, 2, "2.0"},
		"srun-uneven.2":                {"slurm", 2, 3, 0, 1, 1, 2, "2.0"},
	}
	two := func(name string, l Launch) { // two ranks on each of two hosts, which not all launchers number
		for r := range 4 {
			l.Rank, l.Local, l.Node = r, r%2, r/2
			if l.Nodes <= 0 {
				l.Node, l.Nodes = -1, -1
			}
			want[fmt.Sprint(name, ".", r)] = l
		}
	}
	two("srun", Launch{Launcher: "slurm", Size: 4, Locals: 2, Nodes: 2, Job: "1.0"})
	two("srun-pmix", Launch{Launcher: "slurm", Size: 4, Locals: 2, Nodes: 2, Job: "4.0"})
	two("srun-pmi2", Launch{Launcher: "pmi", Size: 4, Locals: 2, Nodes: 2, Job: "3.0"})
	two("torchrun-c10d", Launch{Launcher: "torchrun", Size: 4, Locals: 2, Nodes: 2, Job: "job7@h1.lab.test:41407.0"})
	two("torchrun-static", Launch{Launcher: "torchrun", Size: 4, Locals: 2, Nodes: 2, Job: "none@10.77.0.1:29501.0"})
	two("fakepals-aurora", Launch{Launcher: "pals", Size: 4, Locals: 2, Nodes: 2, Job: "af64f894-db8a-4d59-b652-b0d368275eb0"})
	two("fakepals-polaris", Launch{Launcher: "pals", Size: 4, Locals: 2, Nodes: 2, Job: "cbe3062c-0fc2-4529-acff-857072c265f5"})
	two("hydra", Launch{Launcher: "pmi", Size: 4, Locals: 2})
	two("sbatch-hydra", Launch{Launcher: "pmi", Size: 4, Locals: 2})
	two("openmpi", Launch{Launcher: "openmpi", Size: 4, Locals: 2, Job: "4261019649"})
	two("sbatch-openmpi", Launch{Launcher: "openmpi", Size: 4, Locals: 2, Job: "4230807553"})

	files, err := filepath.Glob("testdata/env/*.env")
	require.NoError(t, err)
	require.Len(t, files, 53)
	require.Len(t, want, 53)
	for name, l := range want {
		t.Run(name, func(t *testing.T) {
			env := recorded(t, name)
			got, err := detect(varsOf(env, palsFiles(env)))
			require.NoError(t, err)
			require.Equal(t, l, got)
		})
	}
}

func TestDetectPALSSize(t *testing.T) {
	aurora := recorded(t, "fakepals-aurora.3")
	all := palsFiles(aurora)
	onlyNodes := map[string][]byte{aurora["PBS_NODEFILE"]: all[aurora["PBS_NODEFILE"]]}
	for _, tc := range []struct {
		name  string
		env   map[string]string
		files map[string][]byte
		size  int // 0: cannot be told
	}{
		{"the application's file", aurora, all, 4},
		{"hosts by ranks on each", aurora, onlyNodes, 4},
		{"our own variable", with(aurora, "GOCCL_SIZE=5"), all, 5},
		{"Cray's PMI", with(aurora, "PMI_RANK=3", "PMI_SIZE=6"), all, 6},
		{"hosts that do not fit", with(aurora, "PALS_RANKID=2"), onlyNodes, 0},
		{"a node file inside Slurm", with(aurora, "SLURM_JOB_ID=1"), onlyNodes, 0},
		{"nothing", aurora, nil, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l, err := detect(varsOf(tc.env, tc.files))
			if tc.size == 0 {
				require.ErrorIs(t, err, Argument)
				require.ErrorContains(t, err, "set GOCCL_SIZE")
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.size, l.Size)
		})
	}
}

// detection is what an environment, and the files that it names, mean.
type detection struct {
	name  string
	env   map[string]string
	files map[string][]byte
	want  Launch
}

func requireDetected(t *testing.T, all []detection) {
	for _, tc := range all {
		t.Run(tc.name, func(t *testing.T) {
			got, err := detect(varsOf(tc.env, tc.files))
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
		})
	}
}

func TestDetectByHand(t *testing.T) {
	requireDetected(t, []detection{
		{"nothing", nil, nil, Launch{"none", 0, 1, 0, 1, 0, 1, ""}},
		{"goccl", map[string]string{"GOCCL_RANK": "1", "GOCCL_SIZE": "2"}, nil, Launch{"goccl", 1, 2, -1, -1, -1, -1, ""}},
		{"goccl is the last word", map[string]string{"GOCCL_RANK": "1", "GOCCL_SIZE": "2", "RANK": "7", "WORLD_SIZE": "9", "GOCCL_JOB": "j"},
			nil, Launch{"goccl", 1, 2, -1, -1, -1, -1, "j"}},
		{"goccl on one host", map[string]string{"GOCCL_RANK": "1", "GOCCL_SIZE": "2", "GOCCL_LOCAL_RANK": "1", "GOCCL_LOCAL_SIZE": "2"},
			nil, Launch{"goccl", 1, 2, 1, 2, 0, 1, ""}},
		{"plain", map[string]string{"RANK": "1", "WORLD_SIZE": "2"}, nil, Launch{"env", 1, 2, -1, -1, -1, -1, ""}},
		{"plain that agrees", with(recorded(t, "srun.3"), "RANK=3", "WORLD_SIZE=4"), nil, Launch{"slurm", 3, 4, 1, 2, 1, 2, "1.0"}},
		{"torchrun under srun", with(recorded(t, "srun.3"), "TORCHELASTIC_RUN_ID=x", "RANK=5", "WORLD_SIZE=8", "MASTER_ADDR=a", "MASTER_PORT=1", "TORCHELASTIC_RESTART_COUNT=2"),
			nil, Launch{"torchrun", 5, 8, -1, -1, -1, -1, "x@a:1.2"}},
		{"openmpi and pmi that agree", with(recorded(t, "openmpi.3"), "PMI_RANK=3", "PMI_SIZE=4", "PMI_FD=5"),
			nil, Launch{"openmpi", 3, 4, 1, 2, -1, -1, "4261019649"}},
		{"pmi forced", with(recorded(t, "openmpi.3"), "PMI_RANK=1", "PMI_SIZE=2", "PMI_FD=5", "GOCCL_LAUNCHER=pmi"),
			nil, Launch{"pmi", 1, 2, -1, -1, -1, -1, ""}},
		{"slurm forced", with(recorded(t, "sbatch-hydra.3"), "GOCCL_LAUNCHER=slurm"), nil, Launch{"slurm", 1, 2, 0, 1, 1, 2, "6.1"}},
		{"plain forced", with(recorded(t, "srun.3"), "RANK=0", "WORLD_SIZE=2", "GOCCL_LAUNCHER=env"), nil, Launch{"env", 0, 2, -1, -1, -1, -1, ""}},
		{"none forced", with(recorded(t, "srun.3"), "GOCCL_LAUNCHER=none"), nil, Launch{"none", 0, 1, 0, 1, 0, 1, ""}},
		{"torchrun, started again", map[string]string{"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4", "GROUP_RANK": "1",
			"GROUP_WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "none", "MASTER_ADDR": "h", "MASTER_PORT": "29500", "TORCHELASTIC_RESTART_COUNT": "2"},
			nil, Launch{"torchrun", 5, 8, 1, 4, 1, 2, "none@h:29500.2"}},
		{"Open MPI 4", map[string]string{"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "0",
			"OMPI_COMM_WORLD_LOCAL_SIZE": "2", "OMPI_COMM_WORLD_NODE_RANK": "7", "OMPI_MCA_ess_base_jobid": "42", "PMIX_NAMESPACE": "n"},
			nil, Launch{"openmpi", 1, 4, 0, 2, -1, -1, "42"}},
		{"Open MPI 5", map[string]string{"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "1",
			"OMPI_COMM_WORLD_LOCAL_SIZE": "2", "PMIX_NAMESPACE": "n"}, nil, Launch{"openmpi", 1, 2, 1, 2, 0, 1, "n"}},
		{"hydra on one host", map[string]string{"PMI_RANK": "0", "PMI_SIZE": "2", "PMI_FD": "5", "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "2"},
			nil, Launch{"pmi", 0, 2, 0, 2, 0, 1, ""}},
		{"a step id of Slurm's own", with(recorded(t, "srun.3"), "SLURM_STEP_ID=4294967280"), nil, Launch{"none", 0, 1, 0, 1, 0, 1, ""}},
		{"the last step id of a user", with(recorded(t, "srun.3"), "SLURM_STEP_ID=4294967279"), nil, Launch{"slurm", 3, 4, 1, 2, 1, 2, "1.4294967279"}},
		{"PBS_JOBID alone", map[string]string{"PBS_JOBID": "1.pbs"}, nil, Launch{"none", 0, 1, 0, 1, 0, 1, ""}},
		{"Cray's PMI in a step", with(recorded(t, "srun.3"), "PMI_RANK=3", "PMI_SIZE=4", "PMI_CONTROL_PORT=1"), nil, Launch{"pmi", 3, 4, -1, -1, -1, -1, ""}},
	})
}

func TestDetectRejects(t *testing.T) {
	for _, tc := range []struct {
		name string
		env  map[string]string
		text string
	}{
		{"rank beyond size", map[string]string{"RANK": "3", "WORLD_SIZE": "2"},
			"boot: rank 3: RANK=3 but WORLD_SIZE=2; the launcher's variables are inconsistent"},
		{"rank without size", map[string]string{"RANK": "3"},
			"boot: WORLD_SIZE is not set, though RANK=3 is; set both, or set GOCCL_LAUNCHER to what started this process (none if nothing did)"},
		{"size without rank", map[string]string{"WORLD_SIZE": "3"},
			"boot: RANK is not set, though WORLD_SIZE=3 is; set both, or set GOCCL_LAUNCHER to what started this process (none if nothing did)"},
		{"torchrun without rank and size", map[string]string{"TORCHELASTIC_RUN_ID": "x"},
			"boot: neither RANK nor WORLD_SIZE is set, though TORCHELASTIC_RUN_ID=x is; set both, or set GOCCL_LAUNCHER to what started this process (none if nothing did)"},
		{"our rank without size", map[string]string{"GOCCL_RANK": "0"},
			"boot: GOCCL_SIZE is not set, though GOCCL_RANK=0 is; set both, or set GOCCL_LAUNCHER to what started this process (none if nothing did)"},
		{"our size without rank", map[string]string{"GOCCL_SIZE": "2"},
			"boot: GOCCL_SIZE=2, but GOCCL_RANK is not set, and no launcher says which rank this is"},
		{"no number", map[string]string{"RANK": "one", "WORLD_SIZE": "2"}, "boot: RANK=one is not a whole number of at least 0"},
		{"negative", map[string]string{"RANK": "-1", "WORLD_SIZE": "2"}, "boot: RANK=-1 is not a whole number of at least 0"},
		{"no ranks", map[string]string{"RANK": "0", "WORLD_SIZE": "0"}, "boot: rank 0: RANK=0 but WORLD_SIZE=0; the launcher's variables are inconsistent"},
		{"two launchers", with(recorded(t, "openmpi.3"), "PMI_RANK=1", "PMI_SIZE=2", "PMI_FD=5"),
			"boot: rank 3: two launchers contradict each other: rank 3 of 4 (openmpi), and PMI_RANK=1 PMI_SIZE=2 (pmi); set GOCCL_LAUNCHER to the one that started this process: openmpi or pmi"},
		{"plain that differs", with(recorded(t, "srun.3"), "RANK=2"),
			"boot: rank 3: the environment contradicts itself: rank 3 of 4 (slurm), and RANK=2; unset the wrong one, or set GOCCL_LAUNCHER to what started this process: slurm, env or none"},
		{"plain size that differs", with(recorded(t, "hydra.3"), "WORLD_SIZE=8"),
			"boot: rank 3: the environment contradicts itself: rank 3 of 4 (pmi), and WORLD_SIZE=8; unset the wrong one, or set GOCCL_LAUNCHER to what started this process: pmi, env or none"},
		{"forced, but absent", map[string]string{"GOCCL_LAUNCHER": "slurm"},
			"boot: GOCCL_LAUNCHER=slurm, but there is no SLURM_STEP_ID of a step with SLURM_PROCID and SLURM_STEP_NUM_TASKS: it did not start this process"},
		{"forced, but another's", map[string]string{"GOCCL_LAUNCHER": "torchrun", "RANK": "0", "WORLD_SIZE": "2"},
			"boot: GOCCL_LAUNCHER=torchrun, but there is no TORCHELASTIC_RUN_ID: it did not start this process"},
		{"forced, without a socket", map[string]string{"GOCCL_LAUNCHER": "pmi", "PMI_RANK": "0", "PMI_SIZE": "2"},
			"boot: GOCCL_LAUNCHER=pmi, but there is no PMI_RANK with PMI_FD or PMI_PORT: it did not start this process"},
		{"forced, but unknown", map[string]string{"GOCCL_LAUNCHER": "mpi\n"},
			`boot: GOCCL_LAUNCHER="mpi\n" is not one of goccl, torchrun, openmpi, pmi, pals, slurm, env, pet, kubernetes, none`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := detect(varsOf(tc.env, nil))
			require.ErrorIs(t, err, Argument)
			require.EqualError(t, err, tc.text)
			var e *Error
			require.True(t, errors.As(err, &e))
		})
	}
}

// The variables of a launcher, one NAME=VALUE a line, and the two files that PALS and PBS name in them.
func FuzzDetect(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "env", "*.env"))
	require.NoError(f, err)
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(string(text), makeAPInfo([]string{"x1", "x2"}, []int{0, 0, 1, 1}), "x1\nx2\nx1\nx2\n")
	}
	f.Add("OMPI_COMM_WORLD_RANK=0\nOMPI_COMM_WORLD_SIZE=2\nPMI_FD=3\nPMI_RANK="+strings.Repeat("9", 5000), []byte{}, "")
	f.Fuzz(func(t *testing.T, text string, apinfo []byte, nodefile string) {
		env := map[string]string{}
		for line := range strings.Lines(text) {
			name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
			env[name] = value
		}
		l, err := detect(varsOf(env, map[string][]byte{env["PALS_APINFO"]: apinfo, env["PBS_NODEFILE"]: []byte(nodefile)}))
		if err != nil {
			require.Less(t, len(err.Error()), 2000, "a message stays one, whatever a variable holds")
			return
		}
		require.GreaterOrEqual(t, l.Rank, 0)
		require.Less(t, l.Rank, l.Size)
		require.NotEmpty(t, l.Launcher)
	})
}
