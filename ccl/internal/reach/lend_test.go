package reach

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// A rank that waits gives others what they ask for of what it has lent in its call, and nothing else. A request for other memory
// fails the Comm, in the name of the owner.
func TestAskAndGive(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes share memory on Linux alone")
	}
	const n = 2*tuning.LentPiece + 1000
	mem := make([]byte, n)
	for i := range mem {
		mem[i] = byte(i%251 + i>>16)
	}
	addr := uint64(uintptr(unsafe.Pointer(&mem[0])))
	for _, tc := range []struct {
		name     string
		src, dst []byte // lent
		off, n   int
		denied   bool
	}{
		{"all of it", mem, nil, 0, n, false},
		{"a part of the results", nil, mem, 777, n - 1000, false},
		{"the last byte", mem[:10], mem[n-1:], n - 1, 1, false},
		{"what begins before", mem[1:], nil, 0, 10, true},
		{"what goes on behind", mem[:9], nil, 0, 10, true},
		{"what lies behind", mem[:9], nil, 10, 10, true},
		{"nothing is lent", nil, nil, 0, 1, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h, err := shm.NewShared()
			require.NoError(t, err)
			defer h.Close()
			all := ranksOn(t, 3, h)
			owner, asks := all[1], all[2]
			owner.Lend(tc.src, tc.dst)
			require.True(t, owner.Untidy, "the call ends the loan")
			stop, ended := make(chan struct{}), make(chan struct{})
			go func() { // the owner waits in its call
				defer close(ended)
				for w := (plane.Waiter{}); ; w = (plane.Waiter{}) {
					select {
					case <-stop:
						return
					default:
						_ = owner.rank.Pause(t.Context(), &w, 0)
					}
				}
			}()
			got := make([]byte, tc.n)
			f := asks.ask(t.Context(), 1, got, addr+uint64(tc.off))
			close(stop)
			<-ended
			if tc.denied {
				require.NotNil(t, f)
				assert.Equal(t, call.Backend, f.Code)
				assert.Equal(t, 1, f.Peer)
				assert.EqualError(t, f, "the memory of rank 1 cannot be read")
				return
			}
			require.Nil(t, f)
			require.Equal(t, mem[tc.off:tc.off+tc.n], got)
			owner.Tidy(nil)
			require.Nil(t, owner.lending.lent[0])
			require.Nil(t, owner.lending.lent[1])
		})
	}
	runtime.KeepAlive(mem)
}

// A rank whose owner has given up learns why.
func TestAskOfAFailedComm(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes share memory on Linux alone")
	}
	h, err := shm.NewShared()
	require.NoError(t, err)
	defer h.Close()
	all := ranksOn(t, 2, h)
	cause := call.NewFault(call.Canceled, 1, "on purpose")
	all[0].rank.FailHere(cause)
	require.Same(t, cause, all[0].ask(t.Context(), 1, make([]byte, 1), 8))
}
