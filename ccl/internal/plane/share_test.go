package plane

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/shm"
)

// What other goroutines look at is there until the rank leaves, and not looked at after that. The last to leave is told so.
func TestLook(t *testing.T) {
	all := ranks(t, 2, Options{})
	looked := 0
	look, none := func() { looked++ }, func(*shm.Host, *region.Region) []shm.Place { return nil }
	require.True(t, all[0].Share.Look(look))
	require.False(t, Leave(all[0], false, none).Last(), "another is there")
	require.False(t, all[0].Share.Look(look))
	require.True(t, all[1].Share.Look(look))
	require.True(t, Leave(all[1], false, none).Last())
	require.Equal(t, 2, looked)
	var c Member
	require.Zero(t, testing.AllocsPerRun(10, func() {
		c.Share.Look(func() { looked++ })
	}))
}

// Memory that several ranks want at once is made once; what is not there is not made unless one wants it; and all that a rank has
// mapped is unmapped in the end.
func TestMap(t *testing.T) {
	h, err := shm.NewShared()
	if err != nil {
		t.Skip("hardware: no memory to share here: " + err.Error())
	}
	defer h.Close()
	var at atomic.Uint64
	shares := []*Share{{Host: h}, {Host: h}, {Host: h}}
	mem, err := shares[0].Map(&at, 4096, false)
	require.NoError(t, err)
	require.Nil(t, mem)
	var wg sync.WaitGroup
	for i, c := range shares {
		wg.Go(func() {
			mem, err := c.Map(&at, 4096, true)
			if err != nil || len(mem) != 4096 {
				t.Errorf("%d bytes, %v", len(mem), err)
				return
			}
			mem[i] = byte(1 + i)
		})
	}
	wg.Wait()
	mem, err = shares[0].Map(&at, 4096, false)
	require.NoError(t, err)
	require.Equal(t, []byte{1, 2, 3, 0}, mem[:4])
	require.Equal(t, []int{2, 1, 1}, []int{len(shares[0].views), len(shares[1].views), len(shares[2].views)})
	for _, c := range shares {
		c.Drop()
	}
	mem, err = h.View(at.Load(), 4096)
	require.NoError(t, err)
	require.Equal(t, byte(3), mem[2], "the memory is the host's")
}
