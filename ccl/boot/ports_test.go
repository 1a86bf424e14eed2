package boot

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// freeRange returns n ports in a row that are free at all addresses of this host, as GOCCL_PORTS has them.
func freeRange(t *testing.T, n int) (from int, ports string) {
	t.Helper()
	for from = 15000; from < 30000; from += n {
		var all []net.Listener
		for i := range n {
			l, err := net.Listen("tcp", ":"+strconv.Itoa(from+i))
			if err != nil {
				break
			}
			all = append(all, l)
		}
		for _, l := range all {
			l.Close()
		}
		if len(all) == n {
			return from, fmt.Sprintf("%d-%d", from, from+n-1)
		}
	}
	require.Fail(t, "no range of ports is free")
	return 0, ""
}

// Where no port is named, all that listens takes one of the range: a hall, rank 0 that publishes its address,
// and one that ranks find by the job's name. A range that is used up is an error, and so is one that is none.
func TestPorts(t *testing.T) {
	noLeaks(t)
	from, ports := freeRange(t, 3)
	t.Setenv("GOCCL_PORTS", ports)
	within3 := func(addr string) {
		require.GreaterOrEqual(t, portOf(t, addr), from, addr)
		require.Less(t, portOf(t, addr), from+3, addr)
	}
	h, err := ListenHall("127.0.0.1:0", nil)
	require.NoError(t, err)
	defer h.Close()
	within3(h.Addr())
	m := &joinConfig{job: t.Name(), size: 2}
	l, at, err := m.announceAt(t.Context(), true)
	require.NoError(t, err)
	defer l.Close()
	within3(at.Addrs[0])
	m.derived([]string{"127.0.0.1"}, 0)
	byName, _, err := m.listen(t.Context())
	require.NoError(t, err)
	defer byName.Close()
	within3(byName.Addr().String())

	_, err = ListenHall("127.0.0.1:0", nil)
	require.ErrorIs(t, err, System)
	require.ErrorContains(t, err, "boot: the hall cannot listen at 127.0.0.1:0: GOCCL_PORTS="+ports+" is used up: address already in use: all 3 ports of it are taken at 127.0.0.1.")
	_, _, err = m.announceAt(t.Context(), true)
	require.ErrorContains(t, err, "boot: rank 0 cannot listen: GOCCL_PORTS="+ports+" is used up")
	_, _, err = m.listen(t.Context())
	require.ErrorContains(t, err, "boot: rank 0 cannot listen at any of ")

	t.Setenv("GOCCL_PORTS", fmt.Sprintf("%d-%[1]d", from)) // which a launcher has already
	m.derived([]string{"127.0.0.1"}, from)
	_, _, err = m.listen(t.Context())
	require.ErrorContains(t, err, fmt.Sprintf("boot: rank 0 cannot listen at any of 127.0.0.1:%d: ", from))
	require.ErrorContains(t, err, "address already in use")

	t.Setenv("GOCCL_PORTS", "1000")
	const why = "GOCCL_PORTS=1000: it takes from-to, such as 20000-20099"
	_, err = ListenHall("127.0.0.1:0", nil)
	require.ErrorIs(t, err, Argument)
	require.ErrorContains(t, err, why)
	_, err = Env(within(t, long))
	require.ErrorIs(t, err, Argument)
	require.ErrorContains(t, err, why)
}

// The ranks that Spawn starts, and what it listens at itself, have the range of the environment that it gives to ranks.
func TestSpawnPorts(t *testing.T) {
	_, ports := freeRange(t, 1)
	c, out := troupe(t, 2, "root")
	c.Env = append(c.Env, "GOCCL_PORTS="+ports)
	require.NoError(t, Spawn(within(t, long), c), out.String())
	root := "root 127.0.0.1:" + ports[:len(ports)/2] + "\n"
	require.Equal(t, root+root, out.String())
	c.Hall, c.Restart = "127.0.0.1:0", 1
	require.ErrorContains(t, Spawn(within(t, long), c), "boot: the hall cannot listen at 127.0.0.1:0: GOCCL_PORTS="+ports+" is used up")
	c.Env = append(c.Env, "GOCCL_PORTS=x")
	require.ErrorIs(t, Spawn(within(t, long), c), Argument)
}

func init() {
	roles["root"] = func(string) int {
		fmt.Println("root", os.Getenv("GOCCL_ROOT"))
		return 0
	}
}
