package doctor

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// healthy is a job of two hosts with two ranks each, and nothing wrong.
func healthy() *exam {
	e := &exam{launcher: "slurm"}
	for r := range 4 {
		f := &facts{
			Rank: r, Host: []string{"h1", "h2"}[r/2], Leader: r%2 == 0, Local: r % 2, Program: "0123", Env: []string{"OMP_NUM_THREADS=1"},
			CPUs: []int{0, 1, 2, 3, 4, 5, 6, 7}, Procs: 8, Memlock: unlimited, Files: 65536, Cores: 8,
		}
		if f.Leader {
			f.Print = map[string]string{"cpu": "A", "cores": "8", "kernel": "6", "memory": "24 GiB", "huge pages": "madvise", "governor": "performance", "cgroup": "max 100000"}
			f.Interfaces = []iface{{Name: "eth0", Addrs: []string{"10.0.0." + string('1'+rune(r/2))}, MTU: 1500}}
			f.Resolves, f.Shm, f.Load = f.Interfaces[0].Addrs, space{2 << 30, 2 << 30}, "0.1"
			f.Libraries = []library{{"nccl", "/usr/lib/libnccl.so.2", "2.28.3 (9 bytes)"}}
			f.Devices = map[string]int{"NVIDIA": 4}
		}
		e.ranks = append(e.ranks, f)
	}
	e.routes = []route{{From: "h1", To: "h2", Addr: "10.0.0.2", Via: "10.0.0.1"}, {From: "h2", To: "h1", Addr: "10.0.0.1", Via: "10.0.0.2"}}
	return e
}

func TestHealthy(t *testing.T) {
	e := healthy()
	for _, f := range e.diagnose() {
		require.Equal(t, ok, f.Level, "%s: %s", f.Check, f.Text)
	}
	require.Greater(t, len(e.found), 12)
	require.Contains(t, e.found, Finding{Check: "environment", Level: ok, Text: "the one relevant variable is the same on all ranks"})
	e = healthy()
	for _, f := range e.ranks {
		f.Env = append(f.Env, "GOCCL_LOG=all")
	}
	require.Contains(t, e.diagnose(), Finding{Check: "environment", Level: ok, Text: "the 2 relevant variables are the same on all ranks"})
}

// Each fault, planted alone, is the only finding that is not ok.
func TestFaults(t *testing.T) {
	for _, tc := range []struct {
		name  string
		plant func(e *exam)
		check string
		level string
		text  string
	}{
		{"uneven", func(e *exam) { e.ranks[3].Host, e.ranks[3].Leader = "h1", false }, "nodes", warning, "2 nodes have from 1 to 3 ranks"},
		{"another program", func(e *exam) { e.ranks[2].Program = "4567" }, "program", failure, "differs: 0123 on h1, h2; 4567 on h2"},
		{"a value that is refused", func(e *exam) {
			e.ranks[3].Refused, e.ranks[3].Strange = unread([]string{"GOCCL_CHECKSUM=maybe", "GOCCL_CHECKSUM_=1"})
		}, "environment", failure, "rank 3 on h2: GOCCL_CHECKSUM=maybe: it takes 1 or 0; GOCCL_CHECKSUM_ is not a variable of goccl; did you mean GOCCL_CHECKSUM?"},
		{"a misspelt variable", func(e *exam) {
			e.ranks[3].Refused, e.ranks[3].Strange = unread([]string{"GOCCL_TRAEC=/tmp", "GOCCL_TEST_X=1"})
		},
			"environment", warning, "rank 3 on h2: GOCCL_TRAEC is not a variable of goccl; did you mean GOCCL_TRACE?"},
		{"a variable that nobody reads", func(e *exam) { e.ranks[3].Refused, e.ranks[3].Strange = unread([]string{"GOCCL_COLOUR=blue"}) },
			"environment", warning, "rank 3 on h2: GOCCL_COLOUR is not a variable of goccl"},
		{"another processor", func(e *exam) { e.ranks[2].Print["cpu"] = "B" }, "cpu", warning, "differs: A on h1; B on h2"},
		{"a library of another version", func(e *exam) { e.ranks[2].Libraries[0].Version = "2.27.1 (8 bytes)" }, "library nccl", failure, "2.27.1 (8 bytes) on h2; 2.28.3 (9 bytes) on h1"},
		{"a library on one host", func(e *exam) { e.ranks[2].Libraries = nil }, "library nccl", failure, "none on h2"},
		{"another MPI than the launcher's", func(e *exam) {
			e.launcher = "pmi"
			for _, f := range e.leaders() {
				f.Libraries = append(f.Libraries, library{"mpi", "/usr/lib/libmpi.so.40", "40.30"})
			}
		}, "mpi", warning, "each rank would be alone"},
		{"a device is gone", func(e *exam) { e.ranks[2].Devices = map[string]int{"NVIDIA": 3} }, "devices", warning, "3 NVIDIA on h2; 4 NVIDIA on h1"},
		{"12 ranks on 6 devices", func(e *exam) {
			e.ranks[0].Devices, e.ranks[2].Devices = map[string]int{"Intel": 1}, map[string]int{"Intel": 1}
		}, "devices", warning, "h1: 2 ranks share 1 devices"},
		{"one name for two hosts", func(e *exam) {
			for _, f := range e.ranks {
				f.Host = "node"
			}
			e.routes = nil
		}, "names", warning, "two hosts are called node"},
		{"a name that leads home", func(e *exam) { e.ranks[2].Resolves = []string{"127.0.1.1"} }, "names", warning, "h2 resolves its own name to 127.0.1.1"},
		{"an interface that is not there", func(e *exam) { e.ranks[2].Wanted = map[string][]string{"NCCL_SOCKET_IFNAME": {"ib0"}} }, "interfaces", failure, "h2: NCCL_SOCKET_IFNAME names ib0"},
		{"no route", func(e *exam) { e.routes[0].Error, e.routes[1].Error = "no answer", "no answer" }, "routes", failure, "h1 does not reach h2 at 10.0.0.2: no answer"},
		{"a route one way", func(e *exam) { e.routes[1].Error = "connection refused" }, "routes", failure, "h2 does not reach h1 at 10.0.0.1: connection refused, though the other way works"},
		{"one of two networks", func(e *exam) {
			e.routes = append(e.routes, route{From: "h1", To: "h2", Addr: "192.168.0.2", Error: "no answer"})
		}, "routes", warning, "1 pairs of hosts reach each other, both ways, but not at every address"},
		{"/dev/shm of a container", func(e *exam) { e.ranks[2].Shm = space{64 << 20, 64 << 20} }, "/dev/shm", warning, "h2: /dev/shm has only 64 MiB"},
		{"/dev/shm is full", func(e *exam) { e.ranks[2].Shm.Free = 1 << 20 }, "/dev/shm", failure, "h2: /dev/shm has 1 MiB left of 2048"},
		{"memlock", func(e *exam) { e.ranks[2].Memlock, e.ranks[2].RDMA = 64<<10, true }, "memlock", failure, "h2: only 64 KiB can be locked"},
		{"open files", func(e *exam) { e.ranks[3].Files = 64 }, "open files", warning, "rank 3 on h2 may open 64 files"},
		{"all ranks on core 1", func(e *exam) { e.ranks[2].CPUs, e.ranks[3].CPUs = []int{1}, []int{1} }, "affinity", failure, "h2: ranks 2, 3 are all bound to core 1"},
		{"fewer cores than ranks", func(e *exam) { e.ranks[0].CPUs, e.ranks[1].CPUs = []int{3}, []int{3}; e.ranks[1].Host = "h1" }, "affinity", failure, "bound to core 3"},
		{"a core for each, of many", func(e *exam) { e.ranks[0].CPUs, e.ranks[1].CPUs = []int{0}, []int{1} }, "affinity", warning, "h1: 2 ranks have 2 cores of 8"},
		{"no huge pages", func(e *exam) { e.ranks[2].Print["huge pages"] = "never" }, "huge pages", warning, "h2: transparent huge pages are off"},
		{"powersave", func(e *exam) { e.ranks[0].Print["governor"] = "powersave" }, "frequency", warning, "h1: "},
		{"a quota", func(e *exam) { e.ranks[0].Print["cgroup"] = "150000 100000" }, "cpu quota", warning, "h1: the container may use the time of 1.5 cores"},
		{"others compute", func(e *exam) { e.ranks[2].Load = "31.0" }, "load", warning, "h2: the load is 31.0 on 8 cores"},
		{"a variable on one rank", func(e *exam) { e.ranks[3].Env = append(e.ranks[3].Env, "NCCL_CROSS_NIC=1") }, "environment", warning, `NCCL_CROSS_NIC differs: rank 0 on h1 has none, rank 3 on h2 has "1"`},
		{"a variable that hurts", func(e *exam) {
			for _, f := range e.ranks {
				f.Env = append(f.Env, "NCCL_P2P_DISABLE=1")
			}
		}, "environment", warning, "NCCL_P2P_DISABLE=1 on rank 0: GPUs of a node talk through host memory"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := healthy()
			tc.plant(e)
			var bad []Finding
			for _, f := range e.diagnose() {
				if f.Level != ok {
					bad = append(bad, f)
				}
			}
			require.NotEmpty(t, bad)
			require.Equal(t, tc.check, bad[0].Check)
			require.Equal(t, tc.level, bad[0].Level)
			require.Contains(t, bad[0].Text, tc.text)
			for _, f := range bad {
				require.Equal(t, tc.check, f.Check, f.Text)
				require.NotEmpty(t, f.Remedy, f.Text)
			}
		})
	}
}
