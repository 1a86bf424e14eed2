package files

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Descriptor returns the number of the descriptor that name stands for, and whether it stands for
// one: /dev/fd/N, as a shell gives a program for <(command), /proc/self/fd/N, /dev/stdin,
// /dev/stdout and /dev/stderr, exactly so.
func Descriptor(name string) (fd int, is bool) {
	switch name {
	case "/dev/stdin":
		return 0, true
	case "/dev/stdout":
		return 1, true
	case "/dev/stderr":
		return 2, true
	}
	number, is := strings.CutPrefix(name, "/dev/fd/")
	if !is {
		number, is = strings.CutPrefix(name, "/proc/self/fd/")
	}
	fd, err := strconv.Atoi(number)
	return fd, is && err == nil && fd >= 0 && strconv.Itoa(fd) == number
}

// given returns a duplicate of the descriptor that name stands for, if it does, and this process was
// given it: nothing is opened, so nothing can have been put in its place. What a Go program opens
// itself is closed as it starts another, and what it was given is not. not is the access,
// os.O_RDONLY or os.O_WRONLY, with which a descriptor is of no use here.
func given(name string, not int) (f *os.File, is bool) {
	fd, is := Descriptor(name)
	if !is {
		return nil, false
	}
	flags, err := fcntl(fd, syscall.F_GETFD, 0)
	if err != 0 || flags&syscall.FD_CLOEXEC != 0 {
		return nil, false
	}
	if flags, err = fcntl(fd, syscall.F_GETFL, 0); err != 0 || flags&syscall.O_ACCMODE == not {
		return nil, false
	}
	dup, err := fcntl(fd, syscall.F_DUPFD_CLOEXEC, 3)
	if err != 0 {
		return nil, false
	}
	f = os.NewFile(uintptr(dup), name)
	if info, err := f.Stat(); err != nil || info.IsDir() {
		f.Close()
		return nil, false
	}
	return f, true
}

func fcntl(fd, cmd, arg int) (int, syscall.Errno) {
	n, _, err := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), uintptr(cmd), uintptr(arg))
	return int(n), err
}
