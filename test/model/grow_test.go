package model

import (
	"testing"

	"github.com/goccl/goccl/test/model/explore"
)

// A meeting in which a job grows counts for all or for none, whoever ends, is cut off, or does not hear the store.
func TestGrow(t *testing.T) {
	explore.Sound(t, &growing{n: 2, crashes: 1, breaks: 1, lost: 1})
	explore.Sound(t, &growing{n: 3, crashes: 2, breaks: 1, lost: 1})
	if !testing.Short() {
		explore.Sound(t, &growing{n: 4, crashes: 2, breaks: 1, lost: 1})
	}
}

func TestGrowFindsWhatIsPlanted(t *testing.T) {
	for _, tc := range []struct {
		name string
		sys  growing
		want string
	}{
		{"a lead that does not wait for the others", growing{n: 2, early: true}, "not all were there"},
		{"one that takes silence for a no", growing{n: 3, crashes: 1, breaks: 1, trusts: true}, "the meeting counts: true"},
		{"a number that tells everybody", growing{n: 3, crashes: 1, breaks: 1, sum: true}, "the meeting counts: "},
		{"a lead that takes silence for a yes", growing{n: 2, lost: 1, hopes: true, breaks: 1}, "the meeting counts: true"},
		{"nobody leaves word", growing{n: 4, breaks: 1, mute: true}, "waits for ever"},
	} {
		t.Run(tc.name, func(t *testing.T) { explore.Finds(t, &tc.sys, tc.want, 30) })
	}
}
