package environ

import (
	"net/netip"
	"strings"
	"time"
)

// The variables of a job: which rank a process is, and how the ranks find each other.
var (
	Rank = count(Var{Name: "GOCCL_RANK", Group: Job, Own: true, By: "boot, mpi", Vital: true,
		Default: "what the launcher says",
		Help:    "this process's rank. `boot.Spawn`, `bench` and `bench launch` set it; you can set it by hand"})
	Size = count(Var{Name: "GOCCL_SIZE", Group: Job, By: "boot", Vital: true, Default: "what the launcher says",
		Help: "the number of ranks, set as `GOCCL_RANK` is. Alone it says how many there are under PALS and in the pods of a Kubernetes Job; without a launcher that is an error"})
	LocalRank = count(Var{Name: "GOCCL_LOCAL_RANK", Group: Job, Own: true, By: "boot", Default: "unknown",
		Help: "this rank's number on its host. `boot.Spawn` sets it"})
	LocalSize = count(Var{Name: "GOCCL_LOCAL_SIZE", Group: Job, Own: true, By: "boot", Default: "unknown",
		Help: "the number of ranks on this host. `boot.Spawn` sets it"})
	Root = text(Var{Name: "GOCCL_ROOT", Group: Job, By: "boot", Takes: "host:port", Default: "what the launcher offers",
		Help: "where rank 0 listens; `:port` for all its interfaces. It takes precedence over `GOCCL_STORE`"})
	RootFD = count(Var{Name: "GOCCL_ROOT_FD", Group: Job, Own: true, By: "boot", Takes: "a descriptor", Default: "none",
		Help: "where rank 0 listens. `boot.Spawn` sets it"})
	BlameFD = text(Var{Name: "GOCCL_BLAME_FD", Group: Job, Own: true, By: "ccl", Takes: "a descriptor and an inode",
		Default: "none",
		Help:    "a pipe into which a rank writes which rank its failure names, and a spare that it was not needed. `boot.Spawn` sets it"})
	Ports = add(Var{Name: "GOCCL_PORTS", Group: Job, By: "boot, ccl, bench", Vital: true, Default: "any free port",
		Help: "the ports at which ranks listen, for firewalls: for data, control, halls, and where rank 0 waits at a port that nobody has named. The ports in `GOCCL_ROOT` and `GOCCL_HALL` need not be of the range. It must be the same on all ranks"},
		"from-to, such as 20000-20099", PortRange{}, portRange)
	Store = text(Var{Name: "GOCCL_STORE", Group: Job, By: "boot", Takes: "a directory", Default: "none",
		Help: "a directory that all ranks share, in which rank 0 says where it is"})
	Hall = text(Var{Name: "GOCCL_HALL", Group: Job, By: "boot, ccl", Takes: "host:port, several of one hall with commas between, or a directory",
		Default: "none; `bench launch -restart` sets it",
		Help:    "a store in which a process that starts late finds the job that runs, for `ccl.Grow`. `boot.Spawn` listens at the address that is set for it. A directory is one that all ranks share, and this job's alone"})
	Relay = add(Var{Name: "GOCCL_RELAY", Group: Job, By: "ccl, boot", Default: "none",
		Help: "a relay (`boot.ListenRelay`), through which two processes connect that do not reach each other. Set it on all ranks; it needs a secret in `GOCCL_SECRET_FILE` or `GOCCL_SECRET`"},
		"host:port", "", hostPort)
	Newcomer = text(Var{Name: "GOCCL_NEWCOMER", Group: Job, Own: true, By: "boot, ccl", Takes: "a name", Default: "none",
		Help: "this process is started while the job runs. `boot.Spawn` sets it for a rank that it starts again"})
	JobName = text(Var{Name: "GOCCL_JOB", Group: Job, By: "boot", Takes: "a name", Default: "none",
		Help: "tells jobs apart that share a store, a hall or a port, with `GOCCL_RANK` or `RANK`; the same for all processes of a job"})
	Launcher = choice(Var{Name: "GOCCL_LAUNCHER", Group: Job, By: "boot, mpi",
		Default: "the first in the table of launchers below",
		Help:    "the launcher that counts: `env` for `RANK` and `WORLD_SIZE`, `none` to run alone"},
		"goccl", "torchrun", "openmpi", "pmi", "pals", "slurm", "env", "pet", "kubernetes", "none")
	HostID = text(Var{Name: "GOCCL_HOSTID", Group: Job, By: "boot, ccl", Takes: "a name",
		Default: "what the system says; on Linux the kernel's boot and the network namespace",
		Help:    "ranks with the same value share a host, which is called so, and ranks with different values do not"})
	BootTimeout = add(Var{Name: "GOCCL_BOOT_TIMEOUT", Group: Job, By: "boot, bench", Default: "`5m`; in `bench` a minute",
		Help: "how long joining may take when the context has no deadline"},
		"a duration such as 30s or 5m, or a number of seconds", time.Duration(0), some)
)

// The variables of the job's secret.
var (
	SecretFile = text(Var{Name: "GOCCL_SECRET_FILE", Group: Secret, By: "boot, ccl", Vital: true, Takes: "a file",
		Default: "none",
		Help:    "a file with the secret, which only its owner can read (mode 0600). It takes precedence over `GOCCL_SECRET`, under `bench launch` too"})
	SecretText = text(Var{Name: "GOCCL_SECRET", Group: Secret, By: "boot, ccl", Vital: true,
		Takes: "hex or text, of 16 bytes at least", Default: "none; `boot.Spawn` and `bench` make one",
		Help: "the secret itself"})
	RequireSecret = off(Var{Name: "GOCCL_REQUIRE_SECRET", Group: Secret, By: "boot, ccl", Vital: true,
		Default: "warn and run",
		Help:    "`1` to fail rather than run several ranks without a secret, however they meet"})
)

// The variables of the engine.
var (
	SocketIfname = text(Var{Name: "GOCCL_SOCKET_IFNAME", Group: Engine, By: "the CPU engine",
		Takes:   "prefixes with commas between; after `=` whole names; after `^` names to leave out",
		Default: "the interface that routes to rank 0; where that is not known, the oldest that is neither loopback nor Docker's",
		Help:    "the network interfaces to use in a job on several hosts, in the syntax of `NCCL_SOCKET_IFNAME`"})
	Advertise = add(Var{Name: "GOCCL_ADVERTISE", Group: Engine, By: "ccl, the CPU engine",
		Default: "the address of the interface",
		Help:    "the address at which the other hosts reach this one, where a router translates it: the ports of `GOCCL_PORTS` must lead here under the same numbers. This host then listens at all of its addresses"},
		"an IP address", netip.Addr{}, address)
	Sockets = add(Var{Name: "GOCCL_SOCKETS", Group: Engine, By: "the CPU engine",
		Default: "one for each 2 ms of a round trip, at least 1 and at most 8",
		Help:    "how many TCP connections a message of at least 1 MiB takes between two ranks; each carries at least 512 KiB. Set it where the network limits each flow"}, "1 to 16", -1, sockets)
	Algo = text(Var{Name: "GOCCL_ALGO", Group: Engine, By: "ccl", Takes: "collective=algorithm, with commas between",
		Default: "a table by size and placement",
		Help:    "algorithms for all sizes, such as `allreduce=ring,broadcast=tree`. It must be the same on all ranks, and counts where a Comm spans hosts"})
	SHMRead = asked(Var{Name: "GOCCL_SHM_READ", Group: Engine, By: "the CPU engine",
		Default: "on Intel's CPUs `1` if each rank has a core of its own, else `0`; on AMD's `1` for large blocks that a single rank receives, as in Scatter and AllToAll, else `0`; messages of 64 KiB and more also where ranks share cores",
		Help:    "`1` to read the memory of the host's other processes where that pays and the kernel allows it; `0` to stage. Memory that the kernel lets only its owner read (a driver's, memfd_secret) is copied by its owner, which takes longer"})
	HugePages = on(Var{Name: "GOCCL_HUGE_PAGES", Group: Engine, By: "the CPU engine",
		Default: "`1`, on Linux 6.1 and newer, if the system has transparent huge pages `always` or `madvise`",
		Help:    "`0` to leave memory that other processes read, and large results, as they are; `1` collapses them into huge pages"})
	Checksum = off(Var{Name: "GOCCL_CHECKSUM", Group: Engine, By: "the CPU engine", Vital: true, Default: "headers only",
		Help: "`1` to check a CRC32C of all payloads over TCP. It must be the same on all ranks"})
	Wire = choice(Var{Name: "GOCCL_WIRE", Group: Engine, By: "ccl", Vital: true, Default: "`plain`",
		Help: "how data travel between hosts where `Options.Wire` is empty: `auth` finds out if they were changed on the way, `encrypt` also hides them. It must be the same on all ranks, and needs a secret"}, "plain", "auth", "encrypt")
	Spares = count(Var{Name: "GOCCL_SPARES", Group: Engine, By: "ccl, bench launch", Vital: true, Default: "none",
		Help: "how many ranks, the last ones, wait in `ccl.Join` to take the place of one that is lost, where `Options.Spares` is 0. It must be the same on all ranks. To `bench launch` it is what `-spares` is"})
	StallWarn = add(Var{Name: "GOCCL_STALL_WARN", Group: Engine, By: "ccl", Default: "`10s`",
		Help: "how long a call waits before the log names the late rank"},
		"a duration such as 30s, or a number of seconds; 0 means never", 10*time.Second, span)
	Trace = text(Var{Name: "GOCCL_TRACE", Group: Engine, By: "ccl", Takes: "a directory", Default: "none",
		Help: "each rank writes its last calls there, as JSON lines, at a failure and at its end; `bench trace DIR` reads them"})
	PProf = off(Var{Name: "GOCCL_PPROF", Group: Engine, By: "ccl", Default: "`0`",
		Help: "`1` for runtime/trace regions and pprof labels around calls"})
	Log = add(Var{Name: "GOCCL_LOG", Group: Engine, By: "ccl, bench", Default: "warnings; in `bench`, rank 0 logs more",
		Help: "what is logged where `Options.Log` is nil: from which level on. `all` is everything, as `debug` is, and `quiet` errors alone, as `error`"},
		"one of "+strings.Join(logWords, ", "), nil, level)
	Fault = text(Var{Name: "GOCCL_FAULT", Group: Engine, By: "builds with the tag `fault`",
		Takes: "[rank@]point:hit:action[:arg], with commas between", Default: "none",
		Help: "faults to inject"})
)

// The variables of libraries and devices.
var (
	MPILib = text(Var{Name: "GOCCL_MPI_LIB", Group: Library, By: "mpi, ccl", Takes: "a file, or `none`",
		Default: "what the launcher, `LD_LIBRARY_PATH` and the system offer",
		Help:    "MPI's library; nothing else is tried. `none` keeps MPI out of `ccl.Join`"})
	NCCLLib = text(Var{Name: "GOCCL_NCCL_LIB", Group: Library, By: "the nccl engine", Takes: "a file",
		Default: "what `LD_LIBRARY_PATH` and the system offer",
		Help:    "NCCL's library; nothing else is tried"})
	RCCLLib = text(Var{Name: "GOCCL_RCCL_LIB", Group: Library, By: "the rccl engine", Takes: "a file", Default: "as above",
		Help: "RCCL's library; nothing else is tried"})
	OneCCLLib = text(Var{Name: "GOCCL_ONECCL_LIB", Group: Library, By: "the oneccl engine", Takes: "a file",
		Default: "as above",
		Help:    "oneCCL's library; nothing else is tried"})
	CUDALib = text(Var{Name: "GOCCL_CUDART_LIB", Group: Library, By: "cuda, the nccl engine", Takes: "a file",
		Default: "as above",
		Help:    "the CUDA runtime"})
	HIPLib = text(Var{Name: "GOCCL_HIP_LIB", Group: Library, By: "rocm, the rccl engine", Takes: "a file",
		Default: "as above",
		Help:    "the HIP runtime"})
	XPULib = text(Var{Name: "GOCCL_XPU_LIB", Group: Library, By: "xpu, the oneccl engine", Takes: "a file",
		Default: "beside the program and where the system looks",
		Help:    "the SYCL shim that `make xpu-shim` builds"})
	XLAPlugin = text(Var{Name: "GOCCL_XLA_PLUGIN", Group: Library, By: "xla", Takes: "a file",
		Default: "none: a program names it",
		Help:    "XLA's plugin for the device, which `xla.Open` takes where it is given no path"})
	AllowFake = off(Var{Name: "GOCCL_ALLOW_FAKE", Group: Library, By: "cuda, rocm, the nccl and rccl engines",
		Default: "it is refused",
		Help:    "`1` to let these variables name the fake library of the tests"})
	Leaks = off(Var{Name: "GOCCL_LEAKS", Group: Library, By: "cuda, rocm, xpu", Default: "`0`",
		Help: "`1` to log memory, streams and events that were never released, and where they were made"})
)

// The variables that bench sets for the ranks that it starts.
var (
	BenchParent = text(Var{Name: "GOCCL_BENCH_PARENT", Group: Bench, Own: true, By: "bench", Default: "none",
		Help: "who started the rank; `bench` sets it for its ranks, as it does the three below"})
	BenchSum = text(Var{Name: "GOCCL_BENCH_SUM", Group: Bench, Own: true, By: "bench", Takes: "a SHA-256", Default: "none",
		Help: "that of the program that was started"})
	BenchSpread = text(Var{Name: "GOCCL_BENCH_SPREAD", Group: Bench, Own: true, By: "bench", Takes: "a file",
		Default: "none",
		Help:    "the copy of the program on the node, to be removed"})
	BenchBind = choice(Var{Name: "GOCCL_BENCH_BIND", Group: Bench, Own: true, By: "bench", Default: "none",
		Help: "how to bind the rank"}, "rank", "local")
)

// The variables of tests, of which only the names are checked. Those that begin with GOCCL_TEST_ and
// are not here belong to one test each.
var _ = []*Value[string]{
	forTest("GOCCL_CCLTEST_CALL", "ccl/ccltest", "`ccl/ccltest` sets it for the processes that it starts"),
	forTest("GOCCL_REQUIRE", "make, test/skipreport, tests", "`all` makes what cannot run here a failure"),
	forTest("GOCCL_CACHE", "tests", "where the tests of `test/vendor`, `test/mpi`, `test/fake` and `train/ckpt` keep what they have fetched or built. Default: the user's cache directory"),
	forTest("GOCCL_REAL", "test/gpu, native", "`1` to run the tests of the engines on the real library and its devices"),
	forTest("GOCCL_TEST_GPU", "cuda, rocm", "`1` to run the tests of devices on the real ones"),
	forTest("GOCCL_TEST_LARGE", "test/mpi, mpi", "`1` for calls of more than 2^31 elements, with 9 GB of memory"),
	forTest("GOCCL_TEST_COST", "test/cost", "`test/cost` sets it for the processes that it starts"),
	forTest("GOCCL_TEST_SLOWDOWN", "test/benchab", "how much slower the planted build is"),
	forTest("GOCCL_TEST_ASAN", "test/mpi", "`1` where the C code is built with the address sanitizer"),
	forTest("GOCCL_PEERS_LAB", "test/peers",
		"the script that runs a command on a host of the lab, for comparisons between hosts"),
	forTest("GOCCL_LAB_SHARED", "test/lab/run.sh", "a directory that all hosts of the lab see. Default: `/var/lib`"),
	forTest("GOCCL_LAB_LIMIT", "test/lab/run.sh", "seconds for a case. Default: 90"),
	forTest("GOCCL_FAULTS_INSIDE", "test/faults", ""),
	forTest("GOCCL_FAULTS_NET", "test/faults", ""), forTest("GOCCL_FAULTS_GROW", "test/faults", ""),
	forTest("GOCCL_FAULTS_PART", "test/faults", ""),
	forTest("GOCCL_PROMISES_PART", "test/promises", ""), forTest("GOCCL_CKPT_CHILD", "train/ckpt", ""),
	forTest("GOCCL_CKPT_LOST", "train/ckpt", ""), forTest("GOCCL_CKPT_RESUME", "train/ckpt", ""),
	forTest("GOCCL_ZERO_TEST_DIR", "train/zero", ""), forTest("GOCCL_MPI_SCENE", "mpi, test/mpi", ""),
	forTest("GOCCL_MPI_TEST_DIR", "mpi, test/mpi", ""), forTest("GOCCL_MPI_TEST_LEVEL", "mpi, test/mpi", ""),
	forTest("GOCCL_MPI_TEST_FIXED", "mpi, test/mpi", ""), forTest("GOCCL_MPI_TEST_FULL", "mpi, test/mpi", ""),
	forTest("GOCCL_MPI_TEST_SEED", "mpi, test/mpi", ""), forTest("GOCCL_MPI_TEST_REFUSES", "mpi, test/mpi", ""),
	forTest("GOCCL_DL_TEST_LIB", "internal/dl", ""), forTest("GOCCL_ENVIRON_TEST", "test/fake/environ", ""),
}

func forTest(name, by, help string) *Value[string] {
	return text(Var{Name: name, Group: Test, By: by, Help: help})
}
