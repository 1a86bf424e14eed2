package auth

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// peers are the two ends of a connection at an abstract socket.
func peers(t *testing.T) (a, b *net.UnixConn) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: fmt.Sprint("@goccl-test-", os.Getpid(), t.Name()), Net: "unix"})
	require.NoError(t, err)
	defer l.Close()
	a, err = net.DialUnix("unix", nil, l.Addr().(*net.UnixAddr))
	require.NoError(t, err)
	b, err = l.AcceptUnix()
	require.NoError(t, err)
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

func TestSameUser(t *testing.T) {
	a, b := peers(t)
	require.NoError(t, SameUser(a, secretOf(nil)))
	require.NoError(t, SameUser(b, secretOf(nil)))
	c, d := net.Pipe()
	defer c.Close()
	defer d.Close()
	require.NoError(t, SameUser(c, secretOf(nil)))
}

// What the kernel's answer means. An unknown user is not told from another by a number.
func TestJudgePeer(t *testing.T) {
	untold := errors.New("untold")
	for _, tc := range []struct {
		name     string
		peer     syscall.Ucred
		nameless error
		want     error
	}{
		{"this user", syscall.Ucred{Uid: 7, Pid: 1}, nil, nil},
		{"another", syscall.Ucred{Uid: 8, Pid: 1}, nil, ErrUser},
		{"root", syscall.Ucred{Uid: 0, Pid: 1}, nil, ErrUser},
		{"this user, in a container beside", syscall.Ucred{Uid: 7}, nil, ErrUntold},
		{"the number of all that have none", syscall.Ucred{Uid: 7, Pid: 1}, untold, untold},
		{"another, where this one has none", syscall.Ucred{Uid: 8, Pid: 1}, untold, ErrUser},
	} {
		err := judge(&tc.peer, 7, func() error { return tc.nameless })
		require.ErrorIs(t, err, tc.want, tc.name)
		if tc.want == nil {
			require.NoError(t, err, tc.name)
		}
	}
}

func TestMapsAll(t *testing.T) {
	for text, want := range map[string]bool{
		"         0          0 4294967295\n": true,
		"0 0 1000\n1000 1000 4294966295\n":   true,
		"65534 1000 1\n":                     false,
		"0 1000 1\n1 100000 65536\n":         false,
		"":                                   false,
		"no map\n":                           false,
		"0 0 99999999999999999999\n":         false,
		"0 0 4294967294\n":                   false,
	} {
		require.Equal(t, want, mapsAll([]byte(text)), text)
	}
}

func FuzzMapsAll(f *testing.F) {
	f.Add([]byte("0 0 4294967295\n"))
	f.Add([]byte("0 1000 1\n1 100000 65536\n"))
	f.Fuzz(func(t *testing.T, text []byte) { mapsAll(text) })
}

// inNamespaces starts this test's binary again, for the test of that name alone, in namespaces of its own.
func inNamespaces(t *testing.T, test, role string, attr *syscall.SysProcAttr) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, "-test.run=^"+test+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), "AUTH_TEST_ROLE="+role)
	cmd.SysProcAttr = attr
	out, err := cmd.CombinedOutput()
	if cmd.Process == nil {
		t.Skipf("hardware: no namespaces of its own: %v", err)
	}
	require.NoError(t, err, "%s", out)
	return string(out)
}

// asNobody maps this user to the number of those that have none.
func asNobody() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 65534, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 65534, HostID: os.Getgid(), Size: 1}},
	}
}

// Two processes that are each the overflow user of a namespace of their own are not one user, unless a secret says so.
func TestOverflowUserIsNobody(t *testing.T) {
	a, b := peers(t)
	switch os.Getenv("AUTH_TEST_ROLE") {
	case "nobody":
		require.ErrorIs(t, SameUser(a, secretOf(nil)), ErrUntold)
		require.ErrorIs(t, Nameless(), ErrUntold)
		require.NoError(t, SameUser(a, secretOf([]byte("a secret of some length"))))
	default:
		require.NoError(t, Nameless())
		out := inNamespaces(t, t.Name(), "nobody", asNobody())
		require.True(t, strings.HasPrefix(out, "PASS"), out)
	}
	_ = b
}

// A process of this user in another PID namespace may be in a container of somebody else.
func TestContainerBeside(t *testing.T) {
	name := "@goccl-test-beside-" + os.Getenv("AUTH_TEST_NAME")
	if os.Getenv("AUTH_TEST_ROLE") == "inside" {
		c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: name, Net: "unix"})
		require.NoError(t, err)
		require.ErrorIs(t, SameUser(c, secretOf(nil)), ErrUntold) // who listens has no number in here
		require.NoError(t, SameUser(c, secretOf([]byte("a secret of some length"))))
		require.NoError(t, c.Close())
		return
	}
	t.Setenv("AUTH_TEST_NAME", fmt.Sprint(os.Getpid()))
	name += fmt.Sprint(os.Getpid())
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	require.NoError(t, err)
	defer l.Close()
	out := inNamespaces(t, t.Name(), "inside", &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
	})
	require.True(t, strings.HasPrefix(out, "PASS"), out)
	c, err := l.AcceptUnix()
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, SameUser(c, secretOf(nil)), "what this process can see is in no container beside it")
}
