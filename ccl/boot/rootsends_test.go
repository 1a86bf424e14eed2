package boot

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	meeting "github.com/goccl/goccl/ccl/internal/join"
	"github.com/goccl/goccl/internal/auth"
)

// What rank 0 sends while a job begins, and how many connections it holds for that, as a function
// of the number of ranks.

// settings are as long as those that ranks compare: their hash alone is sent.
const settings = `version 0.0.0-dev;Backend="";build tags="";Staged=false;Timeout=0s;PeerTimeout=5s;Check=async;RankOrder=false;Wire="plain";Hints="";GOCCL_ALGO=""`

// rounds are what rank r says in the AllGathers of NewComm, as package join has them: a hello, two
// verdicts, one of which has the address where the rank is reached, and the last one.
func rounds(r, perHost int) [][]byte {
	var host, process [16]byte
	binary.LittleEndian.PutUint64(host[:], hash(uint64(r/perHost)))
	binary.LittleEndian.PutUint64(host[8:], hash(uint64(r/perHost)+1<<40))
	binary.LittleEndian.PutUint64(process[:], hash(uint64(r)+1<<50))
	binary.LittleEndian.PutUint64(process[8:], hash(uint64(r)+1<<60))
	at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(r / perHost >> 16), byte(r / perHost >> 8), byte(r / perHost)}), uint16(32768+hash(uint64(r))%28000))
	addr, _ := at.MarshalBinary()
	return [][]byte{meeting.HelloOf(settings, host, process, r), {0}, append([]byte{0}, addr...), {0}}
}

// hash makes numbers that have nothing in common (splitmix64).
func hash(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// meter counts what goes out through the connections that a listener accepts, and how many there
// are.
type meter struct {
	net.Listener
	bytes, writes, now, most atomic.Int64
}

type metered struct {
	net.Conn
	m    *meter
	once sync.Once
}

func (m *meter) Accept() (net.Conn, error) {
	c, err := m.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if now := m.now.Add(1); now > m.most.Load() {
		m.most.Store(now) // one goroutine accepts
	}
	return &metered{Conn: c, m: m}, nil
}

func (c *metered) Write(b []byte) (int, error) {
	c.m.bytes.Add(int64(len(b)))
	c.m.writes.Add(1)
	return c.Conn.Write(b)
}

func (c *metered) Close() error {
	c.once.Do(func() { c.m.now.Add(-1) })
	return c.Conn.Close()
}

// TestRootSends starts jobs in which every rank is a host of its own, the most that rank 0 can have
// to do with. It is the real thing, handshakes and encryption included.
func TestRootSends(t *testing.T) {
	for _, tc := range []struct{ n, branches, bytes int }{
		{8, 7, 30_000},
		{64, 63, 1_000_000},
		{512, branches, 2_000_000},
	} {
		t.Run(fmt.Sprint(tc.n), func(t *testing.T) {
			if tc.n > 64 && testing.Short() {
				t.Skip("-short: 512 hosts")
			}
			noLeaks(t)
			root := freeRoot(t)
			var m meter
			boots := joined(t, tc.n, func(r int) (*Boot, error) {
				c := &joinConfig{rank: r, size: tc.n, secret: secretOf("secret"), hostID: fmt.Sprint(r), limit: long}
				if err := c.at(root); err != nil {
					return nil, err
				}
				listen := c.listen
				c.listen = func(ctx context.Context) (net.Listener, auth.Secret, error) {
					l, secret, err := listen(ctx)
					m.Listener = l
					return &m, secret, err
				}
				return c.join(within(t, 4*long))
			})
			require.Eventually(t, func() bool {
				now := int(m.now.Load())
				return now >= tc.branches && now <= tc.branches+astray
			}, long, time.Millisecond)
			for i := range rounds(0, 1) {
				values := make([][]byte, tc.n)
				for r := range values {
					values[r] = rounds(r, 1)[i]
				}
				got, errs := gather(within(t, long), boots, values)
				for r := range boots {
					require.NoError(t, errs[r])
					require.Equal(t, len(values), len(got[r]))
				}
				require.Equal(t, values, got[tc.n-1])
			}
			t.Logf("%d ranks: rank 0 sends %d bytes in %d writes, and had %d connections at once, %d at the end",
				tc.n, m.bytes.Load(), m.writes.Load(), m.most.Load(), m.now.Load())
			require.LessOrEqual(t, m.bytes.Load(), int64(tc.bytes))
			require.LessOrEqual(t, m.most.Load(), int64(tc.branches+auth.MaxStrangers+1)) // one is accepted, and waits for a place
		})
	}
}

// TestRootOfAurora is rank 0's own server with the relays that it takes, whose ranks are made up:
// 12 on a host. What it sends for the largest job stays below 100 MB.
func TestRootOfAurora(t *testing.T) {
	for _, tc := range []struct{ n, bytes int }{
		{768, 700_000},
		{6144, 5_000_000},
		{120_960, 100_000_000},
	} {
		t.Run(fmt.Sprint(tc.n), func(t *testing.T) {
			if tc.n > 6144 && testing.Short() {
				t.Skip("-short: 120,960 ranks")
			}
			noLeaks(t)
			const perHost = 12
			h, _, mine := rootFor(t, tc.n, "job", "")
			sent, messages := make([]int, branches), make([]int, branches)
			var wg sync.WaitGroup
			// Ranks 1 to n-1 in blocks of whole hosts, the first of which has rank 0's.
			first := func(b int) int { return max(1, b*(tc.n/perHost)/branches*perHost) }
			for b := range branches {
				here, there := auth.Pipe()
				h.admit(there)
				h.serve(newChild(there, selfJoin(first(b), tc.n), false), there)
				wg.Go(func() { sent[b], messages[b] = serveMadeUp(t, here, first(b), first(b+1), tc.n, perHost) })
			}
			_, _ = serveMadeUp(t, mine, 0, 1, tc.n, perHost)
			wg.Wait()
			all, count := 0, 0
			for b := range branches {
				all += sent[b]
				count += messages[b]
			}
			t.Logf("%d ranks: rank 0 sends %d bytes in %d messages to %d relays", tc.n, all, count, branches)
			require.Equal(t, branches*(1+len(rounds(0, 1))), count, "a verdict and the tables, each once to each relay")
			require.LessOrEqual(t, all, tc.bytes)
		})
	}
}

// serveMadeUp plays ranks first to end-1 on conn, and counts what comes.
func serveMadeUp(t *testing.T, conn *auth.Stream, first, end, n, perHost int) (bytes, messages int) {
	in := bufio.NewReader(conn)
	answer := func() []byte {
		f, err := readFrame(in, maxTable(n))
		if err != nil {
			t.Error(err)
			return nil
		}
		bytes += frameHead + len(f.data)
		messages++
		conn.Write(frame{kind: frameAck}.encode())
		return f.data
	}
	var up []byte
	for r := first; r < end; r++ {
		up = joinOf(r, n).append(up)
	}
	conn.Write(up)
	if v, err := parseVerdict(answer()); err != nil || v.Code != 0 || v.Taken != end-first {
		t.Errorf("verdict %+v, %v", v, err)
	}
	for i := range rounds(0, 1) {
		up = up[:0]
		for r := first; r < end; r++ {
			up = frame{kind: frameValue, rank: r, data: append(make([]byte, valueHead), rounds(r, perHost)[i]...)}.append(up)
		}
		conn.Write(up)
		values, err := parseTable(answer(), n)
		if err != nil {
			t.Error(err)
			return bytes, messages
		}
		for _, r := range []int{0, 1, perHost - 1, perHost, n / 2, n - 1} {
			if (i > 0 || r > 0) && string(values[r]) != string(rounds(r, perHost)[i]) { // the seed of rank 0 is another each time
				t.Errorf("round %d: rank %d said %x, which came as %x", i, r, rounds(r, perHost)[i], values[r])
			}
		}
	}
	return bytes, messages
}
