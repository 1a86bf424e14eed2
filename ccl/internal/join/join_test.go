package join

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/plane/watch"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tcp"
	"github.com/goccl/goccl/internal/algo"
	"github.com/goccl/goccl/internal/lived"
)

// gathered is a bootstrap whose allgather returns what it is told to.
type gathered struct {
	said [][]byte
	err  error
	sent *[]byte
}

func (b gathered) Rank() int { return 0 }
func (b gathered) Size() int { return len(b.said) }
func (b gathered) AllGather(_ context.Context, mine []byte) ([][]byte, error) {
	*b.sent = mine
	return b.said, b.err
}

// siteOf is this process's part of a host.
func siteOf(node int) *plane.Site {
	s := &plane.Site{}
	s.Here.Node = node
	return s
}

// A verdict says how it went on this rank, and is an error on all ranks if it was one on some.
func TestVerdict(t *testing.T) {
	ok, no := []byte{well}, append([]byte{failed}, "disk full"...)
	for _, tc := range []struct {
		name string
		mine error
		more string
		said [][]byte
		err  error
		sent string
		want *call.Fault
	}{
		{"all are well", nil, "addr", [][]byte{ok, ok}, nil, "\x00addr", nil},
		{"some cannot share", fmt.Errorf("%w: x", watch.ErrCannotShare), "addr", [][]byte{{unshared}, ok}, nil, "\x02" + watch.ErrCannotShare.Error() + ": x", nil},
		{"this rank fails", errors.New("full"), "", [][]byte{no, ok}, nil, "\x01full", call.NewFault(call.Backend, 0, "rank 0: disk full")},
		{"this rank's variable is refused", fmt.Errorf("tcp: %w=x", tcp.ErrSelection), "", [][]byte{append([]byte{refused}, "tcp: x"...), ok}, nil,
			"\x04tcp: GOCCL_SOCKET_IFNAME=x", call.NewFault(call.Argument, 0, "rank 0: tcp: x")},
		{"another fails", nil, "", [][]byte{ok, no}, nil, "\x00", call.NewFault(call.Backend, 1, "rank 1: disk full")},
		{"one says nothing", nil, "", [][]byte{ok, {}}, nil, "\x00", call.NewFault(call.Backend, 1, "rank 1: ")},
		{"too few", nil, "", [][]byte{ok}, nil, "\x00", call.NewFault(call.Backend, -1, "the bootstrap gathered 1 values from 2 ranks")},
		{"the bootstrap is late", nil, "", nil, context.DeadlineExceeded, "\x00", &call.Fault{Code: call.Timeout, Peer: -1, Err: context.DeadlineExceeded}},
		{"the bootstrap is canceled", nil, "", nil, context.Canceled, "\x00", &call.Fault{Code: call.Canceled, Peer: -1, Err: context.Canceled}},
		{"the bootstrap fails", nil, "", nil, assert.AnError, "\x00", &call.Fault{Code: call.Backend, Peer: -1, Err: assert.AnError}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var sent []byte
			r := &exchanges{boot: gathered{said: tc.said, err: tc.err, sent: &sent}, all: make([][]byte, 2)}
			said, f := r.verdict(t.Context(), tc.mine, []byte(tc.more))
			assert.Equal(t, tc.sent, string(sent))
			if tc.want == nil {
				assert.Nil(t, f)
				assert.Equal(t, tc.said, said)
				return
			}
			if assert.NotNil(t, f) {
				assert.Equal(t, tc.want.Code, f.Code)
				assert.Equal(t, tc.want.Peer, f.Peer)
				assert.EqualError(t, f.Err, tc.want.Err.Error())
			}
		})
	}
}

// Two hosts that give one address do not reach each other there, unless they are one host under two names.
func TestOneEach(t *testing.T) {
	at := func(host byte, named bool, r int) []byte {
		h := [16]byte{host}
		if named {
			h[15] = 1
		}
		return HelloOf("", h, process, r)
	}
	a, b := netip.MustParseAddrPort("172.17.0.1:20000"), netip.MustParseAddrPort("172.17.0.1:20001")
	other := netip.MustParseAddrPort("10.0.0.2:20000")
	for _, tc := range []struct {
		name  string
		all   [][]byte
		addrs []netip.AddrPort
		err   string
	}{
		{"two", [][]byte{at(1, false, 0), at(2, false, 1)}, []netip.AddrPort{a, other}, ""},
		{"one host", [][]byte{at(1, false, 0), at(1, false, 1)}, []netip.AddrPort{a, b}, ""},
		{"one under two names", [][]byte{at(1, true, 0), at(2, true, 1)}, []netip.AddrPort{a, b}, ""},
		{"one has a name", [][]byte{at(1, false, 0), at(2, true, 1)}, []netip.AddrPort{a, b}, ""},
		{"one address", [][]byte{at(1, false, 0), at(1, false, 1), at(2, false, 2)}, []netip.AddrPort{a, b, b},
			"the hosts of ranks 0 and 2 have one address, 172.17.0.1, so neither reaches the other there: select an interface whose address no other host has with GOCCL_SOCKET_IFNAME"},
	} {
		err := oneEach(tc.all, tc.addrs)
		if tc.err == "" {
			require.NoError(t, err, tc.name)
		} else {
			require.EqualError(t, err, tc.err, tc.name)
		}
	}
	require.True(t, hello(newHello(nil, "", "a name", 0, false)).named())
	require.Equal(t, !shm.CanShare, hello(newHello(nil, "", "", 0, false)).named())
}

// What a rank finds out for the next AllGather it finds out before that is over.
func TestBeforeVerdict(t *testing.T) {
	left := func(ctx context.Context, b Bootstrap) time.Duration {
		ctx, cancel := beforeVerdict(ctx, b)
		defer cancel()
		if left, limited := lived.Left(ctx); limited {
			return left
		}
		return 0
	}
	limited, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	require.Less(t, left(limited, unlimited{}), time.Hour-forVerdict+time.Millisecond)
	require.Zero(t, left(t.Context(), unlimited{}), "the bootstrap does not say how long it may take")
	require.LessOrEqual(t, left(t.Context(), withLimit{}), 6*time.Second)
	require.Greater(t, left(t.Context(), withLimit{}), time.Second)
}

type unlimited struct{ Bootstrap }

type withLimit struct{ Bootstrap }

func (withLimit) Limit() time.Duration { return 8 * time.Second }

// Where a rank is reached is what it says: that is an address or an error.
func FuzzAddresses(f *testing.F) {
	for _, a := range []string{"10.0.0.1:7", "[fe80::1%eth0]:9", "[::1]:1"} {
		b, _ := netip.MustParseAddrPort(a).MarshalBinary()
		f.Add(append([]byte{well}, b...))
	}
	f.Add([]byte{well})
	f.Fuzz(func(t *testing.T, said []byte) {
		if len(said) == 0 { // which verdict refuses
			return
		}
		j := new(plane.Job)
		j.World.Topo = algo.Flat(1)
		if learn(j, nil, [][]byte{said}) == nil && j.Net.Addrs.Len() != 1 {
			t.Fatal(j.Net.Addrs)
		}
	})
}
