package campaign

import (
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A socket is a connection of this process.
type socket struct {
	fd   int
	name string
}

// sentBy is how many bytes each TCP connection of this process has sent, by its descriptor and what the kernel calls it.
func sentBy() map[socket]uint64 {
	all := map[socket]uint64{}
	files, _ := os.ReadDir("/proc/self/fd")
	for _, f := range files {
		fd, _ := strconv.Atoi(f.Name())
		name, _ := os.Readlink("/proc/self/fd/" + f.Name())
		if !strings.HasPrefix(name, "socket:") {
			continue
		}
		if info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO); err == nil && info.State == 1 { // established
			all[socket{fd, name}] = info.Bytes_sent
		}
	}
	return all
}

// reset breaks a connection as a firewall does that has forgotten it: both ends get a RST.
func (s socket) reset() {
	if name, _ := os.Readlink("/proc/self/fd/" + strconv.Itoa(s.fd)); name == s.name {
		var none unix.RawSockaddrAny // of no family: the kernel disconnects
		unix.Syscall(unix.SYS_CONNECT, uintptr(s.fd), uintptr(unsafe.Pointer(&none)), unsafe.Sizeof(unix.RawSockaddrInet4{}))
	}
}
