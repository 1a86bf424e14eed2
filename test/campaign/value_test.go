package campaign

import (
	"fmt"
	"reflect"

	"github.com/goccl/goccl/ccl"
)

// A thing is a value as programs have them.
type thing struct {
	Name   string
	Number *int
	Rate   *float64
	On     *bool
	List   []float64
	Map    map[string]int
	Inner  *thing
	Pair   [2]int16
	Raw    []byte
}

// newThing is the value of rank r.
func newThing(salt uint64, r int) thing {
	h := mix(salt, uint64(r))
	number, rate, on := int(h%3), float64(h>>8%3)/2, h>>16%2 == 1
	t := thing{Name: fmt.Sprint("rank ", r), Number: &number, Rate: &rate, On: &on, Pair: [2]int16{int16(r), -int16(r)}}
	if h>>20%2 == 1 {
		t.List, t.Map = []float64{0, 1.5, float64(r)}, map[string]int{"": 0, "r": r}
	}
	if h>>21%2 == 1 {
		t.Inner = &thing{Number: new(int), Raw: make([]byte, 1+h>>32%5000)}
	}
	return t
}

// values sends values by all the functions that there are.
func (s *scene) values() error {
	n, me, root, salt := s.c.Size(), s.c.Rank(), s.rnd.IntN(s.c.Size()), s.rnd.Uint64()
	all := make([]thing, n)
	for r := range all {
		all[r] = newThing(salt, r)
	}
	same := func(what string, got, want any, err error) error {
		if err != nil {
			return fmt.Errorf("step %d: %s: %w", s.step, what, err)
		}
		if !reflect.DeepEqual(got, want) {
			return s.wrongf("%s: %+v, not %+v", what, got, want)
		}
		return nil
	}
	switch s.rnd.IntN(5) {
	case 0:
		got, err := ccl.BroadcastValue(s.ctx, s.c, all[me], root)
		return same("BroadcastValue", got, all[root], err)
	case 1:
		got, err := ccl.AllGatherValues(s.ctx, s.c, all[me])
		return same("AllGatherValues", got, all, err)
	case 2:
		got, err := ccl.GatherValues(s.ctx, s.c, all[me], root)
		if me != root {
			return same("GatherValues", got, []thing(nil), err)
		}
		return same("GatherValues", got, all, err)
	case 3:
		var give []thing
		if me == root {
			give = all
		}
		got, err := ccl.ScatterValues(s.ctx, s.c, give, root)
		return same("ScatterValues", got, all[me], err)
	}
	peer := (root + 1) % n
	switch {
	case n > 1 && me == root:
		return same("SendValue", nil, nil, ccl.SendValue(s.ctx, s.c, all[me], peer))
	case n > 1 && me == peer:
		got, err := ccl.RecvValue[thing](s.ctx, s.c, root)
		return same("RecvValue", got, all[root], err)
	}
	return nil
}
