package doctor

import (
	"net"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/goccl/goccl/bench/internal/machine"
	"github.com/goccl/goccl/bench/internal/report"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/internal/environ"
)

// facts are what one rank sees. Those of the host come from its first rank only.
type facts struct {
	Rank    int      `json:"rank"`
	Host    string   `json:"host"`
	Leader  bool     `json:"leader"` // the first rank of its host
	Local   int      `json:"local"`
	Program string   `json:"program"` // SHA-256, shortened
	Env     []string `json:"env"`
	Refused string   `json:"refused,omitempty"` // of the environment: what a job would refuse
	Strange []string `json:"strange,omitempty"` // variables that look like goccl's and are not
	CPUs    []int    `json:"cpus"`              // that this rank may use; nil: not known
	Procs   int      `json:"gomaxprocs"`
	Memlock uint64   `json:"memlock"` // bytes that may be locked; unlimited
	Files   uint64   `json:"nofile"`
	MPI     *world   `json:"mpi,omitempty"`

	Print      map[string]string   `json:"fingerprint,omitempty"`
	Libraries  []library           `json:"libraries,omitempty"`
	Devices    map[string]int      `json:"devices,omitempty"`
	Topology   []string            `json:"topology,omitempty"`
	Interfaces []iface             `json:"interfaces,omitempty"`
	Resolves   []string            `json:"resolves,omitempty"` // what this host's name leads to here
	Shm        space               `json:"shm"`
	RDMA       bool                `json:"rdma"`
	Load       string              `json:"load,omitempty"`
	Cores      int                 `json:"cores"`
	Wanted     map[string][]string `json:"wanted,omitempty"` // interfaces that variables name and that are not there
}

// space is a file system's.
type space struct{ Total, Free uint64 }

// unlimited is a limit that is none.
const unlimited = ^uint64(0)

// iface is a network interface that is up.
type iface struct {
	Name  string   `json:"name"`
	Addrs []string `json:"addrs"`
	MTU   int      `json:"mtu"`
}

// look collects the facts of this process.
func look(l boot.Launch, program string, environ []string) *facts {
	host, _ := os.Hostname()
	f := &facts{
		Rank: l.Rank, Host: host, Local: l.Local, Leader: l.Local == 0 || l.Local < 0 && l.Rank == 0,
		Program: program, Env: shown(environ), CPUs: affinity(), Procs: runtime.GOMAXPROCS(0),
		Cores: online("/"),
	}
	f.Memlock, f.Files = limits()
	f.Refused, f.Strange = unread(environ)
	if !f.Leader {
		return f
	}
	getenv := getenvOf(environ)
	f.Print = Fingerprint("/", environ)
	f.Libraries = libraries("/", getenv)
	f.Devices = machine.Devices("/")
	f.Topology = topology(f.Devices)
	f.Interfaces = interfaces()
	f.Resolves, _ = net.LookupHost(host)
	f.Shm = statfs("/dev/shm")
	f.RDMA = exists("/dev/infiniband/uverbs0") || exists("/dev/cxi0")
	f.Load, _, _ = strings.Cut(machine.Word("/", "/proc/loadavg"), " ")
	f.Wanted = absent(getenv, f.Interfaces)
	return f
}

// shown is the part of an environment that may leave this process and that should be
// alike on all ranks.
func shown(environ []string) []string {
	return slices.DeleteFunc(report.Allowed(environ), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return ofRank(name)
	})
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// online counts the host's processors, whatever this process may use of them.
func online(root string) int {
	n := 0
	for r := range strings.SplitSeq(machine.Word(root, "/sys/devices/system/cpu/online"), ",") {
		n += len(expand(r))
	}
	if n == 0 {
		return runtime.NumCPU()
	}
	return n
}

// interfaces are those that are up, the loopback left out.
func interfaces() (found []iface) {
	all, err := net.Interfaces()
	if err != nil {
		return nil
	}
	for _, i := range all {
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagLoopback != 0 {
			continue
		}
		f := iface{Name: i.Name, MTU: i.MTU}
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLinkLocalUnicast() {
				f.Addrs = append(f.Addrs, ip.IP.String())
			}
		}
		if len(f.Addrs) > 0 {
			found = append(found, f)
		}
	}
	return found
}

// absent are the interfaces that a variable names and that this host lacks.
func absent(getenv func(string) string, have []iface) map[string][]string {
	missing := map[string][]string{}
	for _, name := range []string{environ.SocketIfname.Name, "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "CCL_KVS_IFACE"} {
		value := getenv(name)
		if value == "" || strings.HasPrefix(value, "^") {
			continue
		}
		exact := strings.HasPrefix(value, "=")
		any := false
		for want := range strings.SplitSeq(strings.TrimPrefix(value, "="), ",") {
			if want == "" {
				continue
			}
			there := want == "lo" || slices.ContainsFunc(have, func(i iface) bool {
				return i.Name == want || !exact && strings.HasPrefix(i.Name, want)
			})
			any = any || there
			if !there {
				missing[name] = append(missing[name], want)
			}
		}
		if any {
			delete(missing, name) // those that are there are used
		}
	}
	return missing
}

// expand is the numbers of "3" or "0-7".
func expand(r string) (n []int) {
	first, last, isRange := strings.Cut(strings.TrimSpace(r), "-")
	if !isRange {
		last = first
	}
	from, to := atoi(first), atoi(last)
	for i := from; i >= 0 && i <= to && len(n) < 1<<16; i++ {
		n = append(n, i)
	}
	return n
}
