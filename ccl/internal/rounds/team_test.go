package rounds

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl/internal/call"
)

// The parts of a Team lie in it, and what they point to is a part, the rank, its memory, or what all ranks of the host share: so no
// call goes from pointer to pointer on its way to a flag. No part embeds another: all embed the seat alone, which embeds nothing.
func TestTeamIsFlat(t *testing.T) {
	team := reflect.TypeFor[Team]()
	parts := map[string]bool{"Region": true, "Member": true, "Reach": true, "Workspace": true}
	for f := range fields(team) {
		if f.Type.Kind() == reflect.Struct {
			parts[f.Type.Name()] = true
		}
	}
	for f := range fields(team) {
		assert.Equal(t, f.Name == "seat", f.Anonymous, f.Name)
		in := []reflect.StructField{f}
		if f.Type.Kind() == reflect.Struct {
			in = nil
			for g := range fields(f.Type) {
				in = append(in, g)
			}
		}
		for _, g := range in {
			assert.Equal(t, g.Name == "seat", g.Anonymous, "%s.%s", f.Name, g.Name)
			if g.Type.Kind() == reflect.Pointer {
				assert.Contains(t, parts, g.Type.Elem().Name(), "%s.%s", f.Name, g.Name)
			}
		}
	}
	assert.Len(t, parts, 4+6+1)
}

// fields are those of a struct.
func fields(t reflect.Type) func(yield func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if !yield(t.Field(i)) {
				return
			}
		}
	}
}

// What a plan calls inline goes in one round, and what it does not in more, or by offers.
func TestInline(t *testing.T) {
	for _, n := range []int{2, 4} {
		for _, count := range []int{1, 8, 64 << 10} {
			all := ranksOf(t, n, byStage)
			k := callOf(call.AllGather, -1, count, make([]int32, n*count), make([]int32, count))
			inline := all[0].Inline(k)
			assert.Equal(t, count < 1<<10, inline, "%d ranks, %d elements", n, count)
			before := all[0].rank.Order.Round
			atOnce(t, all, func(c *Team) *call.Fault {
				return run(t, c, callOf(call.AllGather, -1, count, make([]int32, n*count), vector(c.me, 0, count)))
			})
			assert.Equal(t, inline, all[0].rank.Order.Round == before+1, "%d ranks, %d elements", n, count)
		}
	}
}
