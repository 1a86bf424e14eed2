package imports

import (
	"go/ast"
	"slices"
	"strings"
)

// insideNames are functions of packages that reach the outside which do not: they work on names and numbers, or read
// what this process was started with.
var insideNames = map[string][]string{
	"net": {"JoinHostPort", "SplitHostPort", "ParseIP", "TCPAddrFromAddrPort", "UDPAddrFromAddrPort", "Pipe"},
	"os": {"Getenv", "LookupEnv", "Environ", "NewSyscallError", "IsNotExist", "Getpagesize", "Getpid", "Geteuid", "TempDir",
		"SameFile", "Exit"},
	"syscall": {"Errno", "Signal"},
	"unix": {"Errno", "Signal", "CmsgSpace", "NsecToTimespec", "ParseSocketControlMessage", "ParseUnixRights", "UnixRights",
		"Getpagesize"},
}

// What a process of a job does to the outside passes package simhost, so that a simulated host does it in virtual time and
// on its own network: it dials and listens by inet, and counts time by lived and by plane. What is listed here does
// without a simulated host, or asks the machine on which all of them run.
var passesTheSeam = rule{
	name: "the outside is behind simhost", dirs: []string{"ccl", "internal/auth", "internal/lived", "internal/lobby", "internal/simhost"},
	finds: func(src *source, bad func(string)) {
		for _, apart := range []string{"ccl/ccltest/", "ccl/internal/inject/", "ccl/internal/native/", "ccl/internal/mpiengine/"} {
			if strings.HasPrefix(src.name, apart) { // tests; a vendor's library
				return
			}
		}
		each(src.File, func(c *ast.CallExpr) {
			s, ok := c.Fun.(*ast.SelectorExpr)
			if !ok {
				return
			}
			p, ok := s.X.(*ast.Ident)
			if !ok {
				return
			}
			if inside, is := insideNames[p.Name]; is && !slices.Contains(inside, s.Sel.Name) {
				bad(src.name + " " + strings.Replace(p.Name, "unix", "syscall", 1))
			}
		})
		each(src.File, func(s *ast.SelectorExpr) {
			if isOf(s, "net", "DefaultResolver") {
				bad(src.name + " names")
			}
		})
	},
	allowed: []string{
		// A launcher, and what it starts: processes, their output, their input, their listeners.
		"ccl/boot/blamed_unix.go os", "ccl/boot/blamed_unix.go syscall", "ccl/boot/inherit_unix.go os",
		"ccl/boot/inherit_unix.go syscall", "ccl/boot/ranklog.go os", "ccl/boot/signal_unix.go syscall", "ccl/boot/stdin_unix.go syscall",
		// Files that the hosts of a job share, simulated ones too.
		"ccl/boot/file.go os", "ccl/boot/filestore.go os", "ccl/boot/hallfile.go os", "ccl/boot/lock_unix.go syscall", "ccl/boot/secretfile.go os", "ccl/boot/shared_linux.go syscall", "ccl/boot/storedir_unix.go os", "ccl/trace.go os",
		// The name of this machine, for people. A root and a host are addresses in a simulation: it has no resolver.
		"ccl/boot/dial.go os", "ccl/boot/joinconfig.go os", "ccl/boot/kubernetes.go os", "ccl/boot/publish.go names", "ccl/boot/publish.go os", "ccl/boot/tcp.go names",
		"ccl/join.go os",
		// A place that its user alone may use, where others have taken the names of this host's sockets.
		"ccl/boot/private_unix.go net", "ccl/boot/private_unix.go os",
		// Between processes of one host: a simulated host has one.
		"ccl/internal/join/server.go net", "ccl/internal/ordered/membarrier_linux.go syscall", "ccl/internal/plane/mail.go net", "ccl/internal/plane/watch/ringer_linux.go net",
		"ccl/internal/plane/watch/ringer_linux.go syscall", "ccl/internal/shm/fd_linux.go net", "ccl/internal/shm/fd_linux.go os", "ccl/internal/shm/fd_linux.go syscall", "ccl/internal/shm/memfd_linux.go syscall",
		"ccl/internal/shm/readmem_linux.go syscall", "ccl/internal/reach/offer.go syscall", "internal/auth/peer_linux.go os", "internal/auth/peer_linux.go syscall",
		// This machine's memory, cores, descriptors, clocks and threads.
		"ccl/internal/proc/core_linux.go syscall", "ccl/internal/proc/death_linux.go syscall", "ccl/internal/proc/fork_linux.go syscall", "ccl/internal/proc/nap_linux.go os", "ccl/internal/proc/nap_linux.go syscall",
		"ccl/internal/proc/runnable_linux.go syscall", "ccl/internal/proc/sleep_linux.go syscall", "ccl/internal/proc/starved_linux.go os", "ccl/internal/proc/starved_linux.go syscall", "ccl/internal/proc/uptime_linux.go syscall",
		"ccl/internal/proc/yield_linux.go syscall", "ccl/internal/shm/cgroup_linux.go os", "ccl/internal/shm/hugepages_linux.go os", "ccl/internal/shm/hugepages_linux.go syscall", "ccl/internal/tcp/files_unix.go syscall",
		"internal/auth/descriptors_unix.go syscall",
		// A connection that is a socket, which inet has made; that of a simulated host is a simhost.Polled.
		"ccl/internal/tcp/conn_unix.go syscall", "ccl/internal/tcp/pick.go net", "ccl/internal/tcp/socket_linux.go syscall", "ccl/internal/tcp/socket_unix.go syscall", "ccl/internal/tcp/waits_unix.go syscall",
	},
	planted: map[string]string{
		"ccl/a.go":                 "package ccl\nvar l, _ = net.Listen(\"unix\", \"@a\")\nvar h, _ = os.Hostname()\nvar e = os.Getenv(\"A\")\nfunc f() error { return unix.Kill(1, unix.SIGKILL) }\n",
		"ccl/b.go":                 "package ccl\nfunc f() { net.DefaultResolver.LookupHost(nil, \"\"); inet.Listen(\":0\") }\nvar p = net.JoinHostPort(\"a\", \"1\")\n",
		"ccl/c_test.go":            "package ccl\nvar l, _ = net.Listen(\"unix\", \"@a\")\n",
		"ccl/internal/native/n.go": "package native\nvar l, _ = net.Listen(\"unix\", \"@a\")\n",
	},
	want: []string{"ccl/a.go net", "ccl/a.go os", "ccl/a.go syscall", "ccl/b.go names"},
}
