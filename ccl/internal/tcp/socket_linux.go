//go:build linux && !386 && !s390x

package tcp

import (
	"math"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls of the hot path. They never block (MSG_DONTWAIT), so the scheduler is
// not told of them, which saves it and them the work. (386 and s390x have
// one call for all of a socket's, and take the portable way.)

func send(fd int, b []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL, 0, 0)
	return count(n, errno)
}

func receive(fd int, b []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), syscall.MSG_DONTWAIT, 0, 0)
	return count(n, errno)
}

func sendBoth(fd int, a, b []byte) (int, syscall.Errno) {
	v := both(a, b)
	m := unix.Msghdr{Iov: &v[0]}
	m.SetIovlen(len(v))
	n, _, errno := syscall.RawSyscall(syscall.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&m)),
		syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL)
	return count(n, errno)
}

// receiveBoth needs no flag: the socket is non-blocking, and readv is cheaper than recvmsg.
func receiveBoth(fd int, a, b []byte) (int, syscall.Errno) {
	v := both(a, b)
	n, _, errno := syscall.RawSyscall(syscall.SYS_READV, uintptr(fd), uintptr(unsafe.Pointer(&v[0])), uintptr(len(v)))
	return count(n, errno)
}

func both(a, b []byte) (v [2]unix.Iovec) {
	v[0].Base, v[1].Base = unsafe.SliceData(a), unsafe.SliceData(b)
	v[0].SetLen(len(a))
	v[1].SetLen(len(b))
	return v
}

func count(n uintptr, errno syscall.Errno) (int, syscall.Errno) {
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// roundTrip is the shortest that the kernel has seen of late, 0 if it does not say.
func roundTrip(fd int) time.Duration {
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil || info.Min_rtt == math.MaxUint32 {
		return 0
	}
	return time.Duration(info.Min_rtt) * time.Microsecond
}

// tuneLocal fits a socket to a peer on this host. Some hosts have BBR as a default,
// which paces even loopback: 64 MiB took 42.6 ms, and 27.0 with reno. Where reno is not to be had
// the default does.
func tuneLocal(fd int) {
	unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, "reno")
}
