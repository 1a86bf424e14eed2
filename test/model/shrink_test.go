package model

import (
	"flag"
	"testing"

	"github.com/goccl/goccl/test/model/explore"
)

// How much `make model` explores.
var (
	ranks   = flag.Int("ranks", 3, "ranks")
	crashes = flag.Int("crashes", 2, "ranks that end, are given up or cannot connect")
	breaks  = flag.Int("breaks", 2, "connections that break")
	quits   = flag.Int("quits", 1, "ranks that give up")
)

func TestShrink(t *testing.T) {
	explore.Sound(t, &shrinking{n: 2, crashes: 2, breaks: 2, quits: 2})
	if testing.Short() {
		explore.Sound(t, &shrinking{n: 3, crashes: 2, breaks: 1, quits: 1})
		return
	}
	explore.Sound(t, &shrinking{n: *ranks, crashes: *crashes, breaks: *breaks, quits: *quits})
}

// branching is a tree of ranks, each of which has so many others below it.
type branching struct{ ranks, width int }

func (w branching) Above(r int, gone func(int) bool) int {
	for r > 0 {
		if r = (r - 1) / w.width; !gone(r) {
			return r
		}
	}
	return -1
}

func (w branching) Below(r int) (list []int32) {
	for x := range w.ranks {
		if up := x; up > r {
			for up > r {
				up = (up - 1) / w.width
			}
			if up == r {
				list = append(list, int32(x))
			}
		}
	}
	return list
}

var (
	chain3, chain4 = branching{3, 1}, branching{4, 1} // 0, 1, 2, ...
	fork4          = branching{4, 2}                  // 1 and 2 speak through 0, 3 through 1
)

// Ranks that speak with the lead through others agree, whatever happens to those.
func TestShrinkThroughOthers(t *testing.T) {
	explore.Sound(t, &shrinking{n: 3, crashes: 1, breaks: 1, quits: 1, tree: chain3})
	explore.Sound(t, &shrinking{n: 3, crashes: 2, tree: chain3})
	explore.Sound(t, &shrinking{n: 4, crashes: 1, begun: true, tree: chain4})
	explore.Sound(t, &shrinking{n: 4, crashes: 1, begun: true, tree: fork4})
	explore.Sound(t, &shrinking{n: 3, crashes: 1, closes: 1, tree: chain3})
	explore.Sound(t, &shrinking{n: 4, closes: 2, tree: fork4})
	if !testing.Short() {
		explore.Sound(t, &shrinking{n: 3, crashes: 2, breaks: 2, quits: 1, tree: chain3})
		explore.Sound(t, &shrinking{n: 3, crashes: 1, breaks: 1, closes: 1, tree: chain3})
		explore.Sound(t, &shrinking{n: 4, crashes: 2, begun: true, ends: true, tree: fork4})
		explore.Sound(t, &shrinking{n: 4, crashes: 1, breaks: 1, quits: 1, begun: true, ends: true, tree: fork4})
	}
}

// Ranks in the middle say up who has come, at any time. Nothing but the words of errors depends on it.
func TestShrinkReports(t *testing.T) {
	explore.Sound(t, &shrinking{n: 3, crashes: 1, breaks: 1, tree: chain3, reports: true})
	explore.Sound(t, &shrinking{n: 4, crashes: 1, ends: true, tree: fork4, reports: true})
	if !testing.Short() {
		explore.Sound(t, &shrinking{n: 4, crashes: 1, begun: true, tree: chain4, reports: true})
	}
}

func TestShrinkFindsWhatIsPlanted(t *testing.T) {
	t.Run("a rank that cannot connect goes on alone", func(t *testing.T) {
		explore.Finds(t, &shrinking{n: 3, crashes: 1, alone: true}, "has a Comm without rank", 20)
	})
	t.Run("a rank gives up though it is ready", func(t *testing.T) {
		explore.Finds(t, &shrinking{n: 3, crashes: 1, quits: 1, hasty: true}, "waits for ever", 30)
	})
	t.Run("a rank answers for those that speak through it, before they have", func(t *testing.T) {
		explore.Finds(t, &shrinking{n: 3, crashes: 1, tree: chain3, boasts: true}, "has not made what it needs", 30)
	})
	t.Run("a rank that reports does not say when the others have come", func(t *testing.T) {
		explore.Finds(t, &shrinking{n: 3, tree: chain3, reports: true, once: true}, "waits for ever", 20)
	})
	t.Run("an answer to an earlier lead counts", func(t *testing.T) {
		explore.Finds(t, &shrinking{n: 3, crashes: 1, tree: chain3, ageless: true}, "waits for ever", 40)
	})
	t.Run("a rank that was given up is told nothing", func(t *testing.T) {
		explore.Finds(t, &shrinking{n: 3, crashes: 1, forgets: true}, "has a Comm without rank", 30)
	})
}
