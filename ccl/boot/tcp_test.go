package boot

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/ccltest/simnet"
	"github.com/goccl/goccl/internal/inet"
)

func TestTCP(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8, 50} {
		for _, hosts := range []int{1, 2, 5} {
			t.Run(fmt.Sprintf("%dranks%dhosts", n, hosts), func(t *testing.T) {
				noLeaks(t)
				root, secret := freeRoot(t), []byte("a secret of sixteen")
				boots := joined(t, n, func(r int) (*Boot, error) {
					return TCP(within(t, long), root, r, n, &TCPOptions{Secret: secret, HostID: fmt.Sprint("host-", r*hosts/n)})
				})
				for r, b := range boots {
					require.Equal(t, secret, b.Secret())
					require.Equal(t, loopback, b.Addr())
					require.Equal(t, fmt.Sprint("host-", r*hosts/n), b.HostID())
				}
				for range 3 {
					swap(t, boots)
				}
			})
		}
	}
}

// TestTCPWithoutMeeting is TCP as on systems whose ranks cannot meet on their host.
func TestTCPWithoutMeeting(t *testing.T) {
	noLeaks(t)
	root := freeRoot(t)
	boots := joined(t, 5, func(r int) (*Boot, error) {
		m := &joinConfig{rank: r, size: 5, secret: secretOf("secret")}
		if err := m.at(root); err != nil {
			return nil, err
		}
		m.host = ""
		return m.join(within(t, long))
	})
	swap(t, boots)
	swap(t, boots)
}

func TestTCPAllInterfaces(t *testing.T) {
	noLeaks(t)
	_, port, err := net.SplitHostPort(freeRoot(t))
	require.NoError(t, err)
	for _, host := range []string{"", "0.0.0.0"} {
		boots := joined(t, 3, func(r int) (*Boot, error) {
			return TCP(within(t, long), net.JoinHostPort(host, port), r, 3, nil)
		})
		require.Nil(t, boots[1].Secret())
		swap(t, boots)
		closeAll(boots)
	}
}

func TestTCPArguments(t *testing.T) {
	for _, tc := range []struct {
		root       string
		rank, size int
		text       string
	}{
		{"127.0.0.1:1", 2, 2, "boot: rank 2 of 2: a rank is at least 0 and less than the size"},
		{"127.0.0.1:1", -1, 2, "boot: rank -1 of 2: a rank is at least 0 and less than the size"},
		{"127.0.0.1:1", 0, 0, "boot: rank 0 of 0: a rank is at least 0 and less than the size"},
		{"127.0.0.1", 1, 2, `boot: rank 1 of 2: root "127.0.0.1": rank 0's address is host:port, with a port from 1 to 65535, such as c1:29500`},
		{"127.0.0.1:0", 1, 2, `boot: rank 1 of 2: root "127.0.0.1:0": rank 0's address is host:port, with a port from 1 to 65535, such as c1:29500`},
		{"127.0.0.1:x", 1, 2, `boot: rank 1 of 2: root "127.0.0.1:x": rank 0's address is host:port, with a port from 1 to 65535, such as c1:29500`},
	} {
		_, err := TCP(t.Context(), tc.root, tc.rank, tc.size, nil)
		require.EqualError(t, err, tc.text)
		require.ErrorIs(t, err, Argument)
	}
}

func TestTCPPortInUse(t *testing.T) {
	noLeaks(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	_, err = TCP(within(t, long), l.Addr().String(), 0, 2, nil)
	require.EqualError(t, err, "boot: rank 0 of 2: port "+port+" of 127.0.0.1 is in use by another job, or by the remains of an earlier one; choose another root")
	wantError(t, err, System, 0, -1)
}

// A port that is a connection's is none of another job: the error says what it is.
func TestTCPPortOfConnection(t *testing.T) {
	noLeaks(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	conn, err := net.Dial("tcp", l.Addr().String()) // of another program, which lets nobody have its port
	require.NoError(t, err)
	defer conn.Close()
	_, port, _ := net.SplitHostPort(conn.LocalAddr().String())
	_, err = TCP(within(t, long), "127.0.0.1:"+port, 0, 2, nil)
	require.EqualError(t, err, "boot: rank 0 of 2: port "+port+" of 127.0.0.1 is that of a connection, to which this host has given it by chance; choose a root whose port it gives to none (Linux: outside net.ipv4.ip_local_port_range)")
	wantError(t, err, System, 0, -1)
}

// Where the address of rank 0 is the own host's, and nobody listens there, the error says whose it is.
func TestRootLeadsHere(t *testing.T) {
	_, _, err := dialerTo(1, 2, "", "", closedPort(t)).dial(within(t, 300*time.Millisecond))
	require.ErrorContains(t, err, "connection refused. The address is this host's own: is it running here?")
}

func TestInterfaceOf(t *testing.T) {
	host, err := os.Hostname()
	require.NoError(t, err)
	const translated = "192.0.2.1" // TEST-NET-1, RFC 5737
	for name, want := range map[string]ground{
		"": {}, "localhost": {on: "127.0.0.1"}, "127.0.0.1": {on: "127.0.0.1"}, "::1": {on: "::1"}, "0.0.0.0": {on: "0.0.0.0"},
		translated: {note: "The root's host 192.0.2.1 is not this host, " + host + ": rank 0 listens at all addresses here, and is found only if that one leads to one of them; else run rank 0 there"},
		host:       {},
	} {
		at, err := interfaceOf(t.Context(), name)
		require.NoError(t, err)
		require.Equal(t, want, at, name)
	}
	for _, a := range inet.Ours(nil) {
		if a.Is4() && !a.IsLoopback() {
			at, err := interfaceOf(t.Context(), a.String())
			require.NoError(t, err)
			require.Equal(t, ground{a.String(), "Rank 0 listens at " + a.String() + " alone; a root without a host, :PORT, has it listen at all of its addresses"}, at)
		}
	}
}

// An address that is none of rank 0's host, and leads to it all the same, is a root like any other. Where
// nobody comes, all that rank 0 knows of the reason is in the error.
func TestTranslatedRoot(t *testing.T) {
	noLeaks(t)
	const translated = "192.0.2.1"
	_, port, _ := net.SplitHostPort(freeRoot(t))
	boots := joined(t, 2, func(r int) (*Boot, error) {
		root := net.JoinHostPort(translated, port)
		if r > 0 {
			root = net.JoinHostPort("127.0.0.1", port) // where the network leads what is sent there
		}
		return TCP(within(t, long), root, r, 2, nil)
	})
	swap(t, boots)
	closeAll(boots)
	synctest.Test(t, func(t *testing.T) {
		here := simnet.New(1, 1, simnet.Link{}).Host(0)
		_, err := TCP(here.Context(within(t, time.Second)), net.JoinHostPort(translated, port), 0, 2, nil)
		e := wantError(t, err, Timeout, 0, 1)
		require.Regexp(t, `^1 rank has not joined after .*: 1\. The root's host 192\.0\.2\.1 is not this host, .*: `+
			`rank 0 listens at all addresses here`, e.Text)
	})
}

func TestDerivePorts(t *testing.T) {
	ports := derivePorts("1.0", 0)
	require.Len(t, ports, tries)
	require.Equal(t, ports, derivePorts("1.0", 0))
	require.NotEqual(t, ports, derivePorts("1.1", 0))
	require.NotContains(t, derivePorts("1.0", ports[0]), ports[0])
	for _, p := range ports {
		require.GreaterOrEqual(t, p, 32768)
		require.Less(t, p, 32768+4096)
	}
	t.Setenv("GOCCL_PORTS", "20000-20002")
	require.ElementsMatch(t, []int{20000, 20001, 20002}, derivePorts("1.0", 0))
	require.ElementsMatch(t, []int{20000, 20002}, derivePorts("1.0", 20001))
}

// jobWithPort returns a job, and a listener at its first choice of ports.
func jobWithPort(t *testing.T) (job string, l net.Listener) {
	for i := range 100 {
		job = fmt.Sprint("job ", os.Getpid(), i)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(derivePorts(job, 0)[0])))
		if err == nil {
			return job, l
		}
	}
	t.Fatal("no job's port is free")
	return "", nil
}

// TestDerivedCollisions takes the first of the ports of a job: by one that says
// nothing, one that talks nonsense, and another job.
func TestDerivedCollisions(t *testing.T) {
	for _, tc := range []struct {
		name string
		take func(t *testing.T, l net.Listener)
	}{
		{"nonsense", func(t *testing.T, l net.Listener) {
			answering(t, l, func(c net.Conn) { c.Write([]byte("220 mail.example ESMTP at your service, whoever you are\r\n")) })
		}},
		{"silence", func(t *testing.T, l net.Listener) {
			t.Cleanup(func() { l.Close() })
		}},
		{"another job", func(t *testing.T, l net.Listener) {
			h := newRootServer(selfJoin(0, 2), "another job")
			h.start(l, noSecret)
			t.Cleanup(h.close)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			noLeaks(t)
			job, taken := jobWithPort(t)
			tc.take(t, taken)
			boots := joined(t, 3, func(r int) (*Boot, error) {
				m := &joinConfig{job: job, rank: r, size: 3, secret: noSecret}
				m.derived([]string{"127.0.0.1"}, 0)
				return m.join(within(t, long))
			})
			swap(t, boots)
		})
	}
}

func TestHere(t *testing.T) {
	if !meetLocally {
		t.Skip("the ranks of a host cannot meet at a socket here")
	}
	noLeaks(t)
	job := "here " + strconv.Itoa(os.Getpid())
	taken, err := net.Listen("unix", localName("test", job, "0"))
	require.NoError(t, err)
	defer taken.Close()
	boots := joined(t, 4, func(r int) (*Boot, error) {
		m := &joinConfig{job: job, rank: r, size: 4, secret: noSecret}
		m.here(os.Getenv, "test")
		return m.join(within(t, long))
	})
	for _, b := range boots {
		require.Len(t, b.Secret(), 32)
		require.Equal(t, boots[0].Secret(), b.Secret())
		require.Equal(t, loopback, b.Addr())
	}
	swap(t, boots)
}

func BenchmarkTCP1000(b *testing.B) {
	for b.Loop() {
		root := freeRoot(b)
		boots, errs := all(1000, func(r int) (*Boot, error) {
			return TCP(context.Background(), root, r, 1000, nil)
		})
		for _, err := range errs {
			require.NoError(b, err)
		}
		b.StopTimer()
		start := time.Now()
		values := make([][]byte, 1000)
		_, errs = gather(context.Background(), boots, values)
		for _, err := range errs {
			require.NoError(b, err)
		}
		b.ReportMetric(float64(time.Since(start).Milliseconds()), "ms/allgather")
		closeAll(boots)
		b.StartTimer()
	}
}
