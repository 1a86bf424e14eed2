package boot

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fakePMI is a process manager for size ranks: it keeps values, and answers a
// barrier when all are there.
type fakePMI struct {
	most, size int
	mu         sync.Mutex
	values     map[string]string
	waiting    []net.Conn
	wg         sync.WaitGroup
}

func newFakePMI(size, most int) *fakePMI {
	return &fakePMI{most: most, size: size, values: map[string]string{}}
}

// connect returns the rank's end of a new connection.
func (f *fakePMI) connect() net.Conn {
	rank, manager := net.Pipe()
	f.wg.Go(func() {
		defer manager.Close()
		in := bufio.NewScanner(manager)
		for in.Scan() {
			if !f.answer(manager, in.Text()) {
				return
			}
		}
	})
	return rank
}

func (f *fakePMI) answer(conn net.Conn, line string) bool {
	cmd, err := parsePMI(line)
	if err != nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch cmd["cmd"] {
	case "init":
		fmt.Fprintf(conn, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n")
	case "get_maxes":
		fmt.Fprintf(conn, "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=%d\n", f.most)
	case "get_my_kvsname":
		fmt.Fprintf(conn, "cmd=my_kvsname kvsname=kvs_1\n")
	case "put":
		if len(cmd["value"]) >= f.most || len(cmd["key"]) > 64 {
			fmt.Fprintf(conn, "cmd=put_result rc=-1 msg=too long\n")
			break
		}
		f.values[cmd["key"]] = cmd["value"]
		fmt.Fprintf(conn, "cmd=put_result rc=0 msg=success\n")
	case "barrier_in":
		if f.waiting = append(f.waiting, conn); len(f.waiting) == f.size {
			for _, c := range f.waiting {
				fmt.Fprintf(c, "cmd=barrier_out rc=0\n")
			}
			f.waiting = nil
		}
	case "get":
		if v, ok := f.values[cmd["key"]]; ok {
			fmt.Fprintf(conn, "cmd=get_result rc=0 msg=success value=%s\n", v)
		} else {
			fmt.Fprintf(conn, "cmd=get_result rc=-1 msg=key_not_found value=unknown\n")
		}
	case "finalize":
		fmt.Fprintf(conn, "cmd=finalize_ack rc=0\n")
		return false
	default:
		return false
	}
	return true
}

func TestPMI(t *testing.T) {
	for _, most := range []int{64, 128, 1024, 4096} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			noLeaks(t)
			const n = 5
			manager := newFakePMI(n, most)
			boots := joined(t, n, func(r int) (*Boot, error) {
				m := &joinConfig{rank: r, size: n}
				conn := manager.connect()
				defer conn.Close()
				if err := m.throughPMI(within(t, long), conn, most < 1024); err != nil {
					return nil, err
				}
				return m.join(within(t, long))
			})
			manager.wg.Wait()
			require.Len(t, boots[0].Secret(), 32)
			for _, b := range boots {
				require.Equal(t, boots[0].Secret(), b.Secret())
			}
			swap(t, boots)
		})
	}
}

func TestPMIPutGet(t *testing.T) {
	noLeaks(t)
	for _, n := range []int{1, 47, 48, 49, 500, 1000} {
		manager := newFakePMI(1, 64)
		p, err := startPMI(manager.connect())
		require.NoError(t, err)
		value := bytes.Repeat([]byte("v"), n)
		require.NoError(t, p.put("key", value))
		got, err := p.get("key")
		require.NoError(t, err)
		require.Equal(t, value, got)
		_, err = p.get("none")
		require.EqualError(t, err, `boot: the process manager refuses get: cmd=get_result rc=-1 msg=key_not_found value=unknown`)
		require.ErrorContains(t, p.put("key", make([]byte, 10000)), "too many for the process manager")
		p.conn.Close()
		manager.wg.Wait()
	}
}

// TestPMIFailure is a rank 0 that cannot listen: the others hear of it.
func TestPMIFailure(t *testing.T) {
	noLeaks(t)
	manager := newFakePMI(2, 1024)
	var wg sync.WaitGroup
	wg.Go(func() {
		conn := manager.connect()
		defer conn.Close()
		p, err := startPMI(conn)
		if err == nil {
			err = p.put("goccl", rootAddr{Failed: "no port"}.encode())
		}
		if err == nil {
			_, err = p.call("barrier_in")
		}
		if err != nil {
			t.Error(err)
		}
	})
	conn := manager.connect()
	m := &joinConfig{rank: 1, size: 2}
	err := m.throughPMI(within(t, long), conn, true)
	require.EqualError(t, err, "boot: rank 0 failed: no port")
	conn.Close()
	wg.Wait()
	manager.wg.Wait()
}

func TestPMITimeout(t *testing.T) {
	noLeaks(t)
	manager := newFakePMI(2, 1024) // whose other rank never comes
	conn := manager.connect()
	m := &joinConfig{rank: 0, size: 2}
	err := m.throughPMI(within(t, 100*time.Millisecond), conn, true)
	require.ErrorIs(t, err, Timeout)
	conn.Close()
	manager.wg.Wait()
}

func FuzzPMI(f *testing.F) {
	f.Add("cmd=get_result rc=0 msg=success value=1.eyJ9\n")
	f.Add("cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\ncmd=my_kvsname kvsname=k\n")
	f.Add("cmd=x rc=1\n")
	f.Fuzz(func(t *testing.T, answers string) {
		if m, err := parsePMI(answers); err == nil {
			require.NotEmpty(t, m["cmd"])
		}
		here, there := net.Pipe()
		var wg sync.WaitGroup
		wg.Go(func() { // a manager that takes everything and answers this
			in := bufio.NewReader(there)
			for line := range strings.Lines(answers) {
				if _, err := in.ReadString('\n'); err != nil {
					break
				}
				if _, err := there.Write([]byte(line)); err != nil {
					break
				}
			}
			there.Close()
		})
		if p, err := startPMI(here); err == nil {
			if v, err := p.get("goccl"); err == nil {
				parseRootAddr(v)
			}
		}
		here.Close()
		wg.Wait()
	})
}
