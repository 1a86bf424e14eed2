package model

import (
	"testing"

	"github.com/goccl/goccl/test/model/explore"
)

func TestReplace(t *testing.T) {
	explore.Sound(t, &shrinking{n: 3, spares: 1, crashes: 2, cuts: 1, begun: true})
	if testing.Short() {
		return
	}
	explore.Sound(t, &shrinking{n: 3, spares: 1, crashes: 1, breaks: 1, cuts: 1})
	for side := 1; side < 1<<4-1; side += 2 {
		explore.Sound(t, &shrinking{n: 4, spares: 1, crashes: 1, begun: true, apart: side})
	}
}

func TestReplaceFindsWhatIsPlanted(t *testing.T) {
	for _, tc := range []struct {
		name string
		sys  shrinking
		want string
	}{
		{"numbers by a rank's own view", shrinking{n: 3, spares: 1, crashes: 1, replacingErrors: replacingErrors{ownView: true}}, "the numbers are of"},
		{"a majority of survivors", shrinking{n: 3, spares: 1, cuts: 1, replacingErrors: replacingErrors{survivors: true}}, "two sides go on"},
		{"a spare that believes a proposal", shrinking{n: 4, spares: 2, crashes: 2, ends: true, replacingErrors: replacingErrors{believes: true}}, "have number"},
		{"an end on the other side that is certain", shrinking{n: 4, spares: 1, crashes: 1, ends: true, apart: 3, replacingErrors: replacingErrors{late: true}}, "two sides go on"},
		{"a generation that does not stand", shrinking{n: 3, spares: 1, crashes: 1, cuts: 1, replacingErrors: replacingErrors{unstood: true}}, "two sides go on"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.sys.begun = true
			explore.Finds(t, &tc.sys, tc.want, 40)
		})
	}
}
