package boot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/internal/inet"
)

func init() {
	roles["denied"] = func(string) int { // a rank to which a seccomp filter denies a call of the kernel
		nr, _ := strconv.Atoi(os.Getenv("BOOT_TEST_DENIED"))
		if err := deny(uint32(nr)); err != nil {
			fmt.Println("no filter:", err)
			return 3
		}
		_, err := TCP(context.Background(), "127.0.0.1:29500", 1, 2, nil)
		fmt.Println(err)
		return 0
	}
	roles["few ports"] = func(string) int { // in a network that has two ports for connections, of which one is rank 0's
		loopbackIs(unix.IFF_UP)
		if err := os.WriteFile("/proc/sys/net/ipv4/ip_local_port_range", []byte("40000 40001"), 0); err != nil {
			panic(err)
		}
		const root = "127.0.0.1:40000"
		for range 20 { // a rank that tries before rank 0 listens is given that port by every second attempt
			dialer := &dialer{job: "", self: selfJoin(1, 2)}
			if r := dialer.reach(context.Background(), "tcp", root, noSecret); !errors.Is(r.err, unix.ECONNREFUSED) {
				fmt.Println(r.err)
			}
		}
		boots, errs := all(2, func(rank int) (*Boot, error) { return TCP(context.Background(), root, rank, 2, nil) })
		fmt.Println(errs[0], errs[1])
		closeAll(boots)
		return 0
	}
	roles["no port"] = func(string) int { // in a network that has one port for connections, which is taken
		loopbackIs(unix.IFF_UP)
		if err := os.WriteFile("/proc/sys/net/ipv4/ip_local_port_range", []byte("40000 40000"), 0); err != nil {
			panic(err)
		}
		l, err := inet.Listen("127.0.0.1:29500")
		if err != nil {
			panic(err)
		}
		defer l.Close()
		taken, err := inet.Listen("127.0.0.1:40000")
		if err != nil {
			panic(err)
		}
		defer taken.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err = TCP(ctx, "127.0.0.1:29500", 1, 2, nil)
		e := asError(err)
		fmt.Println(e.Peer, errors.Is(err, Timeout), e.Text)
		return 0
	}
}

// deny has the kernel refuse a call to this process from now on.
func deny(nr uint32) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: nr, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return errno
	}
	return nil
}

// What a sandbox denies is no passing trouble: the error comes long before the limit, and says which call it is.
func TestDenied(t *testing.T) {
	for call, nr := range map[string]int{"socket": unix.SYS_SOCKET, "getsockopt": unix.SYS_GETSOCKOPT, "getpeername": unix.SYS_GETPEERNAME} {
		t.Run(call, func(t *testing.T) {
			cmd, out := as(t, "denied", nil, append(os.Environ(), fmt.Sprint("BOOT_TEST_DENIED=", nr))...)
			if err := cmd.Run(); strings.Contains(out.String(), "no filter") {
				t.Skip("hardware: ", out)
			} else {
				require.NoError(t, err, out.String())
			}
			require.Equal(t, "boot: rank 1 of 2: rank 0 at 127.0.0.1:29500 cannot be reached: this process may not connect: "+call+": operation not permitted. A sandbox denies it, such as a seccomp filter\n", out.String())
		})
	}
}

// A rank's own attempts to find rank 0 do not keep that from its port, and where this host has no port for
// them the error says so.
func TestFewPorts(t *testing.T) {
	for role, want := range map[string]string{
		"few ports": "<nil> <nil>\n",
		"no port":   "1 true rank 0 was not looked for at 127.0.0.1:29500 within .*: this host has no free port for connections \\(net.ipv4.ip_local_port_range\\): those of connections that have ended are free again after a minute\n",
	} {
		t.Run(role, func(t *testing.T) {
			cmd, out := as(t, role, ownNetwork(), os.Environ()...)
			if err := cmd.Start(); err != nil {
				t.Skipf("hardware: no network of its own: %v", err)
			}
			require.NoError(t, cmd.Wait(), out.String())
			require.Regexp(t, "(?m)^"+want, out.String())
		})
	}
}
