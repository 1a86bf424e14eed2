package ccl_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/internal/inet"
	"github.com/goccl/goccl/internal/onpath"
)

// between is somebody on the path between two hosts, who has all connections but those of the bootstrap go through its own
// machine.
type between struct {
	t      *testing.T
	change func(onpath.Piece) []byte
	mu     sync.Mutex
	paths  map[netip.AddrPort]*onpath.Path
}

// reached is a rank's Bootstrap, in which others are reached through b.
type reached struct {
	*boot.Boot
	b *between
}

// AllGather is that of the rank, with other addresses in the place of those that all tell each other.
func (r reached) AllGather(ctx context.Context, mine []byte) ([][]byte, error) {
	values, err := r.Boot.AllGather(ctx, mine)
	for i, v := range values {
		var to netip.AddrPort
		if len(v) == 7 && v[0] == 0 && to.UnmarshalBinary(v[1:]) == nil {
			addr, _ := r.b.path(to).MarshalBinary()
			values[i] = append([]byte{0}, addr...)
		}
	}
	return values, err
}

// path is where the way to an address begins.
func (b *between) path(to netip.AddrPort) netip.AddrPort {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.paths[to] == nil {
		p, err := onpath.To(to.String(), b.change)
		if !assert.NoError(b.t, err) {
			return to
		}
		b.t.Cleanup(p.Close)
		b.paths[to] = p
	}
	return b.paths[to].Addr()
}

// hosts runs f as two ranks, of a host each, with somebody on the path between them.
func hosts(t *testing.T, wire string, change func(onpath.Piece) []byte, f func(ctx context.Context, c *ccl.Comm)) {
	b := &between{t: t, change: change, paths: map[netip.AddrPort]*onpath.Path{}}
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	var all, open sync.WaitGroup
	open.Add(2)
	for _, each := range boot.Local(2, "a", "b") {
		all.Go(func() {
			c, err := ccl.NewComm(ctx, reached{each, b}, &ccl.Options{Backend: "cpu", Wire: wire})
			each.Close()
			if assert.NoError(t, err) {
				f(ctx, c)
			}
			open.Done()
			open.Wait()
			if c != nil {
				c.Close()
			}
		})
	}
	all.Wait()
}

// isControl says whether a connection is one of the control plane.
func isControl(p onpath.Piece) bool { return binary.BigEndian.Uint32(p.Hello[8:]) == 0xc0 }

// TestControlChangedOnTheWay changes one byte of what a host tells another of its state, where only the secret of the job
// protects it: no rank believes that, and all learn between whom it was.
func TestControlChangedOnTheWay(t *testing.T) {
	var mu sync.Mutex
	var from uint32
	changed, passed := false, 0
	hosts(t, "plain", func(p onpath.Piece) []byte {
		mu.Lock()
		defer mu.Unlock()
		if !isControl(p) || !p.Up {
			return p.Bytes
		}
		if passed += len(p.Bytes); !changed && passed-len(p.Bytes) > 25 { // after the end of joining
			changed, from = true, binary.BigEndian.Uint32(p.Hello[20:])
			p.Bytes[len(p.Bytes)-2] ^= 0x40 // in the open: the kind of a frame
		}
		return p.Bytes
	}, func(ctx context.Context, c *ccl.Comm) {
		x := []int64{int64(c.Rank())}
		for {
			sum := []int64{0}
			err := ccl.AllReduce(ctx, c, sum, x, ccl.Sum)
			if err == nil {
				require.Equal(t, []int64{1}, sum)
				time.Sleep(time.Millisecond)
				continue
			}
			mu.Lock()
			defer mu.Unlock()
			assert.ErrorIs(t, err, ccl.ErrRankLost)
			assert.ErrorContains(t, err, fmt.Sprintf("bytes were changed on the way from rank %d (host %[1]d) to rank %d (host %[2]d)", from, 1-from))
			return
		}
	})
	require.True(t, changed)
}

// TestJoinChangedOnTheWay changes one byte of what rank 0 and rank 1 tell each other as they join: each piece in turn, to the last,
// with which one of them has its Comm. Every rank, the one on a host that nobody changes anything for too, gets an error that
// says so: of NewComm, or of the first call of its Comm.
func TestJoinChangedOnTheWay(t *testing.T) {
	for _, up := range []bool{true, false} {
		t.Run(map[bool]string{true: "to rank 0", false: "from rank 0"}[up], func(t *testing.T) {
			t.Parallel()
			nth := 1
			for ; joinChanged(t, up, nth) && !t.Failed(); nth++ {
			}
			assert.Greater(t, nth, 4, "what ends the joining, and three allgathers")
		})
	}
}

// joinChanged has three ranks, of a host each, join with the nth piece that goes by on the way between ranks 0 and 1 changed. It is
// false if there was none: all have joined.
func joinChanged(t *testing.T, up bool, nth int) bool {
	l, err := inet.Listen("127.0.0.1:0")
	require.NoError(t, err)
	var pieces atomic.Int32
	way := func(change func(onpath.Piece) []byte) string {
		p, err := onpath.To(l.Addr().String(), change)
		require.NoError(t, err)
		t.Cleanup(p.Close)
		return p.Addr().String()
	}
	roots := []string{l.Addr().String(), way(func(p onpath.Piece) []byte {
		if p.Up == up && int(pieces.Add(1)) == nth {
			p.Bytes[len(p.Bytes)-1] ^= 0x40
		}
		return p.Bytes
	}), way(func(p onpath.Piece) []byte { return p.Bytes })}
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	errs := make([]error, 3)
	var all sync.WaitGroup
	for r := range errs {
		all.Go(func() {
			o := &boot.TCPOptions{Secret: []byte(oneSecret), HostID: fmt.Sprint(r)}
			if r == 0 {
				o.Listener = l
			}
			b, err := boot.TCP(ctx, roots[r], r, 3, o)
			if err != nil {
				errs[r] = err
				return
			}
			c, err := ccl.NewComm(ctx, b, &ccl.Options{Backend: "cpu"})
			b.Close()
			if err == nil {
				err = ccl.Barrier(ctx, c)
				c.Close()
			}
			errs[r] = err
		})
	}
	all.Wait()
	if int(pieces.Load()) < nth {
		for r, err := range errs {
			assert.NoError(t, err, "rank %d", r)
		}
		return false
	}
	for r, err := range errs {
		assert.ErrorContains(t, err, "bytes were changed on the way from rank ", "rank %d, piece %d", r, nth)
	}
	return true
}

// TestDataChangedOnTheWay changes one byte of a payload. In the open the sum is wrong on a rank, and nobody knows; this is what
// docs/secret.md says. Else no rank gets a wrong sum, and all learn between whom it was.
func TestDataChangedOnTheWay(t *testing.T) {
	const count = 1000
	for _, tc := range []struct {
		wire          string
		open, visible bool
	}{{"plain", true, true}, {"auth", false, true}, {"encrypt", false, false}} {
		t.Run(tc.wire, func(t *testing.T) {
			var mu sync.Mutex
			var seen []byte
			from := -1
			hosts(t, tc.wire, func(p onpath.Piece) []byte {
				mu.Lock()
				defer mu.Unlock()
				if isControl(p) {
					return p.Bytes
				}
				seen = append(seen, p.Bytes...)
				if from < 0 && len(p.Bytes) > 1000 {
					if from = int(binary.BigEndian.Uint32(p.Hello[20:])); !p.Up {
						from = 1 - from
					}
					p.Bytes[800] ^= 0x40
				}
				return p.Bytes
			}, func(ctx context.Context, c *ccl.Comm) {
				src, dst, want := make([]int32, count), make([]int32, count), make([]int32, count)
				for i := range src {
					src[i], want[i] = 0x3ec2e700+int32(c.Rank()), 0x7d85ce01
				}
				err := ccl.AllReduce(ctx, c, dst, src, ccl.Sum)
				for !tc.open && err == nil && assert.Equal(t, want, dst) { // the sender's may be right
					err = ccl.AllReduce(ctx, c, dst, src, ccl.Sum)
				}
				mu.Lock()
				defer mu.Unlock()
				switch {
				case !tc.open:
					assert.ErrorIs(t, err, ccl.ErrBackend)
					assert.ErrorContains(t, err, fmt.Sprintf("bytes were changed on the way from rank %d to rank %d", from, 1-from))
				case assert.NoError(t, err) && c.Rank() == 1-from:
					assert.NotEqual(t, want, dst)
				}
			})
			mu.Lock() // a path may still pass a last word on
			defer mu.Unlock()
			require.GreaterOrEqual(t, from, 0)
			pattern := binary.LittleEndian.AppendUint32(nil, 0x3ec2e700)
			require.Equal(t, tc.visible, bytes.Contains(seen, bytes.Repeat(pattern, 3)))
		})
	}
}

// TestWire plays calls of all kinds and sizes between hosts whose data are protected.
func TestWire(t *testing.T) {
	share := uint64(shortShare)
	if raceDetector {
		share *= 4
	}
	for _, wire := range []string{"auth", "encrypt"} {
		t.Run(wire, func(t *testing.T) {
			world(t, 3, []string{"a", "b", "b"}, func(int) *ccl.Options { return &ccl.Options{Backend: "cpu", Wire: wire} }, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
				assert.Equal(t, "memory and TCP (lo, "+wire+")", c.Transport())
				play := func(e element, s shape) bool { return assert.NoError(t, e.play(ctx, c, s)) }
				for e, s := range cases(3, lengths) {
					if s.number%(4*share) == 0 && !play(e, s) {
						return
					}
				}
				number := uint64(0)
				thresholdCalls(3, []int{4 * kib, 64 * kib, 128 * kib}, func(e element, s shape) bool { // a record has 64 KiB
					number++
					return number%share != 0 || play(e, s)
				})
			})
		})
	}
}

// bare is a Bootstrap that knows no secret.
type bare struct{ b *boot.Boot }

func (b bare) Rank() int { return b.b.Rank() }
func (b bare) Size() int { return b.b.Size() }
func (b bare) AllGather(ctx context.Context, mine []byte) ([][]byte, error) {
	return b.b.AllGather(ctx, mine)
}

// here is one whose ranks are on a host each.
type here struct {
	bare
	host string
}

func (h here) HostID() string { return h.host }

// Data cannot be protected without a secret; on one host there is nothing to protect.
func TestWireWithoutSecret(t *testing.T) {
	for _, several := range []bool{true, false} {
		var all sync.WaitGroup
		for r, each := range boot.Local(2) {
			all.Go(func() {
				defer each.Close()
				host := "a"
				if several {
					host = fmt.Sprint(r)
				}
				c, err := ccl.NewComm(t.Context(), here{bare{each}, host}, &ccl.Options{Backend: "cpu", Wire: "auth"})
				if !several {
					if assert.NoError(t, err) {
						c.Close()
					}
					return
				}
				assert.ErrorContains(t, err, "Wire (GOCCL_WIRE)=auth, but the job has no secret to protect data with: give all ranks the same GOCCL_SECRET_FILE")
			})
		}
		all.Wait()
	}
}

// What a library sends between hosts nobody here can protect; within a host nothing is on the way.
func TestWireBesideALibrary(t *testing.T) {
	ccl.SetBackend(t, (&toyBackend{}).backend())
	o := onToy(ccl.Options{Wire: "encrypt"})
	world(t, 2, nil, func(int) *ccl.Options { return o }, works)
	var all sync.WaitGroup
	for _, each := range boot.Local(2, "a", "b") {
		all.Go(func() {
			defer each.Close()
			_, err := ccl.NewComm(t.Context(), each, o)
			assert.ErrorIs(t, err, ccl.ErrUnsupported)
			assert.ErrorContains(t, err, `mpi sends data between hosts itself, where Wire (GOCCL_WIRE)=encrypt does not protect them: take Backend "cpu"`)
		})
	}
	all.Wait()
}
