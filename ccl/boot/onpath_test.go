package boot

import (
	"bytes"
	"fmt"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/onpath"
)

// TestChangedOnTheWay is somebody between the hosts of two ranks who passes the handshake on, and then changes what a rank says of
// itself, such as the address where others reach it. No rank takes what was changed, and all learn between whom it was.
func TestChangedOnTheWay(t *testing.T) {
	addr := netip.MustParseAddrPort("192.0.2.1:29500")
	said, err := addr.MarshalBinary()
	require.NoError(t, err)
	value := append(said, bytes.Repeat([]byte{'x'}, 1000)...)
	for _, tc := range []struct {
		name     string
		up       bool
		from, to int
	}{
		{"to rank 0", true, 1, 0},
		{"from rank 0", false, 0, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			noLeaks(t)
			root := freeRoot(t)
			var changed atomic.Int32
			path, err := onpath.To(root, func(p onpath.Piece) []byte {
				if p.Up != tc.up || len(p.Bytes) < len(value) {
					return p.Bytes // it joins
				}
				changed.Add(1)
				if at := bytes.Index(p.Bytes, said); at >= 0 {
					p.Bytes[at] ^= 1 // in the open: an address of its own
				} else {
					p.Bytes[len(p.Bytes)/2] ^= 1
				}
				return p.Bytes
			})
			require.NoError(t, err)
			defer path.Close()
			boots := joined(t, 2, func(r int) (*Boot, error) {
				at := root
				if r == 1 {
					at = path.Addr().String()
				}
				return TCP(within(t, long), at, r, 2, &TCPOptions{Job: "j", Secret: []byte(sesame), HostID: fmt.Sprint(r)})
			})
			errs := make([]error, 2)
			_, _ = all(2, func(r int) (*Boot, error) {
				if _, errs[r] = boots[r].AllGather(t.Context(), value); errs[r] != nil {
					boots[r].Close() // so that rank 0 need not wait for it to confirm
				}
				return nil, nil
			})
			require.EqualValues(t, 1, changed.Load())
			for r, err := range errs {
				peer := 1 // which has sent what was changed, or says what has come so
				if r == tc.to {
					peer = tc.from
				}
				e := wantError(t, err, Unauthorized, r, peer)
				require.Contains(t, e.Text, fmt.Sprintf("bytes were changed on the way from rank %d (%s) to rank %d (%s)", tc.from, who(tc.from), tc.to, who(tc.to)))
			}
		})
	}
}
