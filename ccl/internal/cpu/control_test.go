package cpu

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/region"
)

// A Comm is made of its parts: they lie in it, and it embeds none. engine.Lacking has none, and answers for it.
func TestCommIsFlat(t *testing.T) {
	c := reflect.TypeFor[Comm]()
	structs := map[string]bool{}
	for i := range c.NumField() {
		f := c.Field(i)
		require.False(t, f.Anonymous && f.Type.Size() > 0, f.Name)
		structs[f.Name] = f.Type.Kind() == reflect.Struct
	}
	for _, part := range []string{"rank", "mem", "local", "links", "shrink"} {
		require.True(t, structs[part], part)
	}
}

// What package ccl asks is what the control plane knows.
func TestControl(t *testing.T) {
	j := plane.EnterJob(t.Name(), 0)
	defer j.Leave()
	s := j.Site(0)
	s.Job.World.Topo, s.Here.Host = group.Topology([]int{0, 0}, 1), plane.PrivateHost()
	off, err := s.Here.Host.Alloc(region.Bytes(2))
	require.NoError(t, err)
	all := make([]*Comm, 2)
	for r := range all {
		all[r], err = newComm(s, group.WorldID, group.MembersOf([]int{0, 1}), s.Job.World.Topo, r, off, plane.Options{})
		require.NoError(t, err)
		defer j.Remove(all[r].Control())
	}
	c := all[1]
	require.Same(t, &c.rank, c.Control())
	require.Equal(t, []int{1, 2, 1, 0, 1}, []int{c.Rank(), c.Size(), c.World(1), c.Topology().Node(1), c.rank.Standing.RanksHere()})
	require.Equal(t, []string{t.Name(), "memory"}, []string{c.rank.Standing.Job(), c.Transport()})
	c.SetName("tp")
	require.Equal(t, []string{"tp", "comm"}, []string{c.Name(), all[0].Name()})
	require.False(t, c.rank.Standing.InCall())
	_, asleep := c.rank.Standing.Sleeping()
	require.False(t, asleep)
	require.Nil(t, c.Failure())
	require.Nil(t, c.Odd())
	f := call.NewFault(call.Aborted, 0, "no")
	c.Fail(f)
	require.Equal(t, f, c.Failure())
	require.NotNil(t, all[0].Failure(), "ranks of one process hear at once")
}
