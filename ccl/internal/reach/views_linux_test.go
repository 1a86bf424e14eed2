package reach

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/shm"
)

// What a rank has mapped of the memory of others it keeps; it shows what lies there, from the offset on. An offset beyond
// the memory fails the Comm, in the name of the rank that told it.
func TestMapped(t *testing.T) {
	h, err := shm.NewShared()
	require.NoError(t, err)
	defer h.Close()
	all := ranksOn(t, 2, h)
	c := all[0]
	mem, err := all[1].MakeMemory(3 * shm.Page)
	require.NoError(t, err)
	p := h.SpanOf(mem[100:])
	require.True(t, p.Shared())
	require.EqualValues(t, 100, p.At)
	copy(mem[100:], "abc")
	at, f := c.mapped(1, &p)
	require.Nil(t, f)
	require.Equal(t, "abc", string(unsafe.Slice((*byte)(at), 3)))
	*(*byte)(at) = 'x'
	require.EqualValues(t, 'x', mem[100], "it is the same memory")
	again, f := c.touch(1, &p)
	require.Nil(t, f)
	require.Equal(t, at, again)
	require.Len(t, c.views.maps, 1)
	require.False(t, c.Untidy)

	p.At = p.Size
	_, f = c.mapped(1, &p)
	require.NotNil(t, f)
	assert.Equal(t, call.Backend, f.Code)
	assert.Equal(t, 1, f.Peer)
	assert.EqualError(t, f, "rank 1 offers memory that is not there")
	shm.FreeMemory(unsafe.Pointer(&mem[0]))
}

// Memory that has been freed is unmapped when something else is mapped after that: a mapping of what is free, and of two
// that overlap the older.
func TestSweep(t *testing.T) {
	h, err := shm.NewShared()
	require.NoError(t, err)
	defer h.Close()
	all := ranksOn(t, 2, h)
	c := all[0]
	made := func(n int) ([]byte, shm.Span) {
		mem, err := all[1].MakeMemory(n)
		require.NoError(t, err)
		p := h.SpanOf(mem)
		_, f := c.mapped(1, &p)
		require.Nil(t, f)
		return mem, p
	}
	place := func(p shm.Span) shm.Place { return shm.PlaceAt(p.Base, int(p.Size)) }
	kept, keptAt := made(4 * shm.Page)
	gone, goneAt := made(8 * shm.Page)
	require.Len(t, c.views.maps, 2)
	require.False(t, c.Untidy, "nothing has been freed")
	shm.FreeMemory(unsafe.Pointer(&gone[0]))

	next, nextAt := made(2 * shm.Page) // with rest it takes all that is free: the older mapping overlaps no free range
	rest, err := all[1].MakeMemory(6 * shm.Page)
	require.NoError(t, err)
	require.Equal(t, goneAt.Base, min(nextAt.Base, h.SpanOf(rest).Base), "it lies where the freed one lay")
	require.True(t, c.Untidy)
	require.Len(t, c.views.maps, 3, "the call under way may hold a pointer into it")
	c.Tidy(nil)
	require.False(t, c.Untidy)
	assert.Contains(t, c.views.maps, place(keptAt))
	assert.Contains(t, c.views.maps, place(nextAt))
	assert.NotContains(t, c.views.maps, place(goneAt))
	shm.FreeMemory(unsafe.Pointer(&kept[0]))
	shm.FreeMemory(unsafe.Pointer(&next[0]))
	shm.FreeMemory(unsafe.Pointer(&rest[0]))
}
