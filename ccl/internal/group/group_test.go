package group

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/internal/algo"
)

// A Group answers what it was made of, and nothing outside this package can write it.
func TestGroup(t *testing.T) {
	g := New(7, MembersOf([]int{2, 5, 3, 9}), algo.Placed([]int{0, 1, 0, 1}), 3,
		Agreed{Timeout: time.Second, PeerTimeout: time.Minute, Strict: true, Unchecked: true, RankOrder: true, Table: algo.Table{{}}})
	assert.Equal(t, []any{uint64(7), 3, 4}, []any{g.ID(), g.Rank(), g.Size()})
	assert.Equal(t, []int{2, 5, 3, 9}, []int{g.World(0), g.World(1), g.World(2), g.World(3)})
	assert.Equal(t, []int{1, 3, -1}, []int{g.RankOf(5), g.RankOf(9), g.RankOf(4)})
	assert.Equal(t, []int{1, 3}, []int{g.LocalRank(0), g.LocalRank(1)})
	assert.Equal(t, 1, g.Topology().Node(3))
	assert.Equal(t, []any{time.Second, time.Minute, true, true, true, 1}, []any{g.Timeout(), g.PeerTimeout(), g.Strict(), g.Unchecked(), g.RankOrder(), len(g.Table())})
	of := reflect.TypeFor[Group]()
	for i := range of.NumField() {
		assert.False(t, of.Field(i).IsExported(), of.Field(i).Name)
	}
}
