package ccl

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/engine"
)

// A rank takes the device of its place, if nobody has it; else the first that is free; where none is, it is left to the backend to say so.
func TestFirstFree(t *testing.T) {
	of := func(count int) []*engine.Backend {
		return []*engine.Backend{{Choose: func(want, local, _ int) (int, error) {
			if want < 0 {
				want = local
			}
			if want >= count {
				return 0, errors.New("there is no such device")
			}
			return want, nil
		}}}
	}
	one := []*engine.Backend{{Choose: func(want, _, _ int) (int, error) { // a launcher has given each process one
		if want > 0 {
			return 0, errors.New("there is no such device")
		}
		return 0, nil
	}}}
	host := []*engine.Backend{{Choose: func(int, int, int) (int, error) { return -1, nil }}}
	for _, tc := range []struct {
		name     string
		backends []*engine.Backend
		local    int
		taken    []int
		device   int
		ok       bool
	}{
		{"its own", of(4), 2, []int{0, 1}, 2, true},
		{"another has it", of(4), 2, []int{0, 2}, 1, true},
		{"a device beyond the places", of(4), 1, []int{0, 1, 2}, 3, true},
		{"a place without a device, and one is free", of(2), 2, []int{1}, 0, true},
		{"none is free", of(2), 1, []int{0, 1}, 0, false},
		{"each process has one of its own", one, 1, []int{0}, 0, false},
		{"host memory", host, 1, nil, 0, false},
		{"no device of the first backend", append(of(0), of(3)...), 1, []int{1}, 0, true},
		{"no backend", nil, 0, nil, 0, false},
	} {
		taken := map[int]bool{}
		for _, d := range tc.taken {
			taken[d] = true
		}
		device, ok := firstFree(tc.backends, tc.local, tc.local+1, taken)
		require.Equal(t, tc.ok, ok, tc.name)
		require.Equal(t, tc.device, device, tc.name)
	}
}
