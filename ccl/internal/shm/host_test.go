package shm

import (
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPages(t *testing.T) {
	p := uint64(Page)
	for _, tc := range []struct {
		n    int
		want uint64
	}{{0, 0}, {1, p}, {Page, p}, {Page + 1, 2 * p}} {
		assert.Equal(t, tc.want, pages(tc.n), "%d", tc.n)
	}
}

func TestAligned(t *testing.T) {
	for n := range 200 {
		b := Aligned(n + 1)
		assert.Len(t, b, n+1)
		assert.Equal(t, n+1, cap(b))
		assert.Zero(t, uintptr(unsafe.Pointer(&b[0]))%64)
	}
}

// Regions are zero, apart from each other, and one memory for all who look.
func TestPrivateHost(t *testing.T) {
	testRegions(t, NewPrivate(64))
}

// Memory of one process has no descriptor: a region that is not there is called that, and not a bad descriptor.
func TestPrivateHostHasNoSuchRegion(t *testing.T) {
	h := NewPrivate(64)
	_, err := h.View(0, 8<<10)
	assert.EqualError(t, err, "shared memory: no region of 8 KiB lies at offset 0 of this host's memory")
	off, err := h.Alloc(8 << 10)
	require.NoError(t, err)
	h.Free(off, 8<<10)
	_, err = h.View(off, 8<<10)
	assert.ErrorContains(t, err, "no region of 8 KiB lies at offset")
}

func testRegions(t *testing.T, h *Host) {
	var mu sync.Mutex
	seen := map[uint64]bool{0: true}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				off, err := h.Alloc(1000)
				require.NoError(t, err)
				mu.Lock()
				assert.False(t, seen[off], "region %d was handed out twice", off)
				seen[off] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()

	off, err := h.Alloc(5000)
	require.NoError(t, err)
	a, err := h.View(off, 5000)
	require.NoError(t, err)
	b, err := h.View(off, 5000)
	require.NoError(t, err)
	require.Len(t, a, 5000)
	for _, x := range a {
		require.Zero(t, x)
	}
	a[4999] = 7
	assert.Equal(t, byte(7), b[4999])
	h.Drop(PlaceAt(off, 5000))
	assert.Equal(t, byte(7), b[4999]) // the other view stays
	h.Drop(PlaceAt(off, 5000))
	c, err := h.View(off, 5000) // who looks late still sees it
	require.NoError(t, err)
	assert.Equal(t, byte(7), c[4999])
	h.Drop(PlaceAt(off, 5000))
	h.Drop(PlaceAt(off+1<<30, 5000)) // what is not there is no matter
	h.Free(off, 5000)
}
