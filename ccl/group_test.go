package ccl

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
)

// The memory of a group that has succeeded serves the next one; a Work of the earlier one then says that it is over.
func TestGroupReuse(t *testing.T) {
	c := new(Comm)
	c.backlog.c = c
	g := c.backlog.newGroup()
	assert.EqualValues(t, 1, g.use)
	k := g.add(&args{})
	k.Dst, k.DC = []byte{1}, g.keep([]int{1, 2})
	assert.Equal(t, []int{3}, g.keep([]int{3}))
	assert.Equal(t, []int{1, 2}, k.DC)
	assert.Nil(t, g.keep(nil))
	g.ticket = 7
	at, err := g.issued(1)
	require.NoError(t, err)
	assert.EqualValues(t, 7, at)

	g.free()
	assert.Nil(t, k.Dst, "the caller's memory is let go")
	again := c.backlog.newGroup()
	assert.Same(t, g, again)
	assert.EqualValues(t, 2, again.use)
	assert.Zero(t, again.ticket)
	assert.Empty(t, again.calls)
	assert.Same(t, k, again.add(&args{}), "its calls are used again")
	at, err = g.issued(1)
	require.NoError(t, err)
	assert.Zero(t, at, "a Work of the first use is long over")
	done, err := g.test(1)
	assert.True(t, done)
	require.NoError(t, err)
	require.NoError(t, g.wait(t.Context(), 1))
}

// A group that has failed is kept for its Works.
func TestGroupKept(t *testing.T) {
	c := new(Comm)
	c.backlog.c = c
	refused := &Error{Code: ErrArgument}
	for _, g := range []*group{{c: c, failure: refused}, {c: c, reject: refused}} {
		g.free()
		assert.NotSame(t, g, c.backlog.newGroup())
	}
	_, err := (&group{c: c, reject: refused}).issued(0)
	assert.Same(t, refused, err)
}

// A group of one call is named after it.
func TestGroupKind(t *testing.T) {
	g := &group{}
	assert.Equal(t, call.Group, g.kind())
	g.add(&args{}).Record = call.Record{Kind: call.Send}
	assert.Equal(t, call.Send, g.kind())
	g.add(&args{})
	assert.Equal(t, call.Group, g.kind())
}
