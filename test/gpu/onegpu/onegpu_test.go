//go:build (nccl || rccl) && cgo && linux

package onegpu

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// TestOneGPU: two ranks on one device give the right values and the right errors.
func TestOneGPU(t *testing.T) {
	lost := func(peer int) string { return fmt.Sprintf("%v peer %d\n", ccl.ErrRankLost, peer) }
	mismatch := func(peer int) string { return fmt.Sprintf("%v peer %d\n", ccl.ErrMismatch, peer) }
	for _, tc := range []struct {
		do, check string
		want      [2]string // what the ranks say
	}{
		{"values", "", [2]string{"right, 48 calls\n", "right, 48 calls\n"}},
		{"values", "strict", [2]string{"right, 48 calls\n", "right, 48 calls\n"}},
		{"graph", "", [2]string{"right\n", "right\n"}},
		{"register", "", [2]string{"right\n", "right\n"}},
		{"operator", "", [2]string{mismatch(1), mismatch(0)}},
		{"operator", "strict", [2]string{mismatch(1), mismatch(0)}},
		{"count", "", [2]string{mismatch(1), mismatch(0)}},
		{"kind", "", [2]string{mismatch(1), mismatch(0)}},
		{"killed", "", [2]string{lost(1), ""}},
		{"stopped", "", [2]string{lost(1), lost(1)}},
		{"abort", "", [2]string{fmt.Sprintf("%v peer 0\n", ccl.ErrAborted), fmt.Sprintf("%v peer 0\n", ccl.ErrAborted)}},
	} {
		name := tc.do
		if tc.check != "" {
			name += " " + tc.check
		}
		t.Run(name, func(t *testing.T) {
			backends(t, func(t *testing.T, backend string) {
				out := "\n" + ranks(t, backend, tc.do, checkVariable+"="+tc.check)
				for rank, want := range tc.want {
					if want == "" {
						require.NotContains(t, out, fmt.Sprintf("\nrank %d: ", rank), "it was killed")
						continue
					}
					require.Contains(t, out, fmt.Sprintf("\nrank %d: %s", rank, want))
				}
			})
		})
	}
}

// TestSharing: the library takes two ranks on one device for the variable of 2.30.3 and for a host of each rank's own, and for
// nothing else.
func TestSharing(t *testing.T) {
	if real() {
		t.Skip("hardware: the versions are the fake's")
	}
	backends(t, func(t *testing.T, backend string) {
		for _, tc := range []struct {
			name string
			env  []string
			ok   bool
		}{
			{"host of its own", nil, true},
			{"one host", []string{hostID + "=here"}, false},
			{"2.30.3", []string{multiRank + "=1", hostID + "=here", "FAKE_NCCL_VERSION=23003"}, true},
			{"2.29.7", []string{multiRank + "=1", hostID + "=here", "FAKE_NCCL_VERSION=22907"}, false},
		} {
			t.Run(tc.name, func(t *testing.T) {
				os.Unsetenv(hostID)
				out := ranks(t, backend, "graph", tc.env...)
				if tc.ok {
					require.Contains(t, out, "rank 0: right\n")
					require.Contains(t, out, "rank 1: right\n")
					return
				}
				require.Contains(t, out, "rank 0: failed: ")
				require.Contains(t, out, "Duplicate GPU detected")
			})
		}
	})
}
