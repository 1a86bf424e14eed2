//go:build fault

package chaos

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// TestR6Corners runs jobs of many Comms in trouble.
func TestR6Corners(t *testing.T) {
	done := map[sort]int{}
	campaign(t, "TestR6Corners", func(seed uint64) trial { return newCorner(seed) }, func(c trial, verdict string) bool {
		done[c.(*corner).sort]++
		return verdict == ""
	})
	t.Log(done)
}

// told is what the ranks of a corner have said.
type told struct {
	ends, refused map[key]end
	left          map[key][]int
	done          map[int]bool
	began         time.Time
	fired         bool
	wrong         []string
}

// key is a rank and a Comm.
type key struct{ rank, comm int }

var (
	fateLine = regexp.MustCompile(`^(end|refused) (\d+) (-?\d+) code (\d+) peer (-?\d+) time (\d+)(.*)`)
	unitLine = regexp.MustCompile(`^left (\d+) (\d+) \[([0-9 ]*)\]`)
)

func listen(text string) *told {
	w := &told{ends: map[key]end{}, refused: map[key]end{}, left: map[key][]int{}, done: map[int]bool{}}
	number := func(s string) int { n, _ := strconv.Atoi(s); return n }
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if m := fateLine.FindStringSubmatch(line); m != nil {
			into := w.ends
			if m[1] == "refused" {
				into = w.refused
			}
			into[key{number(m[2]), number(m[3])}] = end{ccl.Code(number(m[4])), number(m[5]), time.Unix(0, int64(number(m[6]))), m[7]}
		} else if m := unitLine.FindStringSubmatch(line); m != nil {
			var ranks []int
			for _, f := range strings.Fields(m[3]) {
				ranks = append(ranks, number(f))
			}
			w.left[key{number(m[1]), number(m[2])}] = ranks
		} else if m, ok := strings.CutPrefix(line, "done "); ok {
			w.done[number(m)] = true
		} else if m, ok := strings.CutPrefix(line, "go "); ok {
			if at := time.Unix(0, int64(number(strings.Fields(m)[2]))); at.After(w.began) {
				w.began = at
			}
		} else if faultLine.MatchString(line) {
			w.fired = true
		} else if strings.HasPrefix(line, "wrong ") || strings.HasPrefix(line, "broken ") {
			w.wrong = append(w.wrong, line)
		}
	}
	return w
}

func (k *corner) verdict(text string) string {
	w := listen(text)
	killed := w.fired && k.action == "kill"
	switch {
	case crashes.MatchString(text):
		return "a crash"
	case len(w.wrong) > 0:
		return w.wrong[0]
	}
	for r := range k.n {
		if !w.done[r] && !(killed && r == k.victim) {
			return fmt.Sprintf("rank %d has not come to its end", r)
		}
		e, ok := w.ends[key{r, -1}]
		if text := k.judgeWorld(w, e); ok && text != "" {
			return fmt.Sprintf("rank %d: %s", r, text)
		}
	}
	for i := range k.comms {
		if text := k.judgeParty(w, i, killed); text != "" {
			return fmt.Sprintf("Comm %d of ranks %v: %s", i, k.comms[i].members, text)
		}
	}
	return ""
}

// judgeWorld judges what NewComm, or a call on the Comm of all ranks, has returned.
func (k *corner) judgeWorld(w *told, e end) string {
	switch {
	case w.fired && k.sort != givenUp && k.allowed(e, &k.comms[0], k.victim, true):
		return ""
	case w.fired && k.sort == givenUp && e.code == ccl.ErrRankLost:
		return ""
	case k.sort == descriptors && e.code == ccl.ErrBackend:
		return ""
	}
	return "the world ends with" + e.text
}

// allowed reports whether rank r of a Comm may end so.
func (k *corner) allowed(e end, p *party, r int, hit bool) bool {
	if e.code == 0 {
		// Who computes with a Comm that fails goes on until it does.
		return !p.fails || k.sort == closings
	}
	switch k.sort {
	case storm:
		return p.fails && e.code == ccl.ErrAborted && e.peer == p.culprit
	case arenas:
		if k.action == "kill" {
			return hit && e.code == ccl.ErrRankLost && e.peer == k.victim
		}
		return p.fails && (e.code == ccl.ErrAborted || e.code == ccl.ErrCanceled) && e.peer == p.culprit || p.fails && r == p.culprit && e.code == ccl.ErrCanceled
	case closings:
		gaveUp := p.way == closeShrink && e.code == ccl.ErrCanceled // which is what Close does to the closing rank's Shrink
		return p.fails && (e.code == ccl.ErrClosed || e.code == ccl.ErrAborted || gaveUp) && (e.peer == p.culprit || r == p.culprit)
	case descriptors, mappings, memory:
		// The others hear of it from the rank itself, or meet it having closed what it could not use; or one that has
		// heard of it in a part of the Comm aborts the rest: see branch.
		return hit && (e.code == ccl.ErrAborted || (e.code == ccl.ErrBackend || e.code == ccl.ErrClosed) && (r == k.victim || e.peer == k.victim))
	case kills:
		return hit && e.code == ccl.ErrRankLost && e.peer == k.victim || p.fails && e.code == ccl.ErrAborted && e.peer == p.culprit
	case givenUp:
		// The rank that comes back may meet the end of a connection before it hears what it is itself.
		return hit && e.code == ccl.ErrRankLost && (e.peer == k.victim || r == k.victim)
	}
	return false
}

// judgeParty judges what the ranks of Comm i have said.
func (k *corner) judgeParty(w *told, i int, killed bool) string {
	p := &k.comms[i]
	hit := p.has(k.victim) && (w.fired || k.sort == descriptors)
	var failed []int
	for _, r := range p.members {
		_, ok := w.ends[key{r, i}]
		if _, before := w.ends[key{r, -1}]; !ok && before && !(killed && r == k.victim) {
			return "" // there never was such a Comm for r, which has closed it: the others may meet that
		}
	}
	for _, r := range p.members {
		if killed && r == k.victim {
			continue
		}
		e, ok := w.ends[key{r, i}]
		switch {
		case !ok:
			return fmt.Sprintf("rank %d has not said how it ended", r)
		case !k.allowed(e, p, r, hit):
			return fmt.Sprintf("rank %d should not end with code %d, peer %d%s", r, e.code, e.peer, e.text)
		case p.fails && e.at.Sub(w.began) > k.delay+heard:
			return fmt.Sprintf("rank %d has heard of its end only after %v", r, e.at.Sub(w.began))
		case e.code != 0:
			failed = append(failed, r)
		}
	}
	return k.judgeShrink(w, i, failed)
}

// A rank is killed just after a Barrier of the world in which another still was: that closes its Comms unused, which the
// ranks that came through the Barrier may meet. A rank that has used its Comm may not.
func TestCornerOfAnUnusedComm(t *testing.T) {
	k := &corner{sort: kills, victim: 2, comms: []party{{members: []int{1, 3}}}}
	closed, lost := end{code: ccl.ErrClosed, peer: 3}, end{code: ccl.ErrRankLost, peer: 2}
	for _, tc := range []struct {
		ends map[key]end
		want string
	}{
		{map[key]end{{1, 0}: closed, {3, -1}: lost}, ""},
		{map[key]end{{1, 0}: closed, {3, 0}: {}}, "rank 1 should not end with code 11, peer 3"},
	} {
		require.Equal(t, tc.want, k.judgeParty(&told{ends: tc.ends, fired: true}, 0, true))
	}
}

// heard is how long the end of a Comm may take to reach all: ten times and more what is promised.
const heard = 5 * time.Second

// judgeShrink judges the Comms that Shrink has made of Comm i.
func (k *corner) judgeShrink(w *told, i int, failed []int) string {
	var first []int
	for _, r := range failed {
		e, refused := w.refused[key{r, i}]
		left, ok := w.left[key{r, i}]
		switch {
		case refused && k.sort == givenUp && r == k.victim:
			if e.code != ccl.ErrRankLost || e.peer != r {
				return fmt.Sprintf("Shrink of rank %d, which was given up, should name itself:%s", r, e.text)
			}
		case refused:
			return fmt.Sprintf("Shrink of rank %d returned%s", r, e.text)
		case !ok:
		case !slices.Contains(left, r):
			return fmt.Sprintf("rank %d has a Comm of %v, without itself", r, left)
		case first == nil:
			first = left
		case !slices.Equal(first, left):
			return fmt.Sprintf("rank %d has a Comm of %v, another one of %v", r, left, first)
		}
	}
	if first == nil {
		return ""
	}
	want := slices.DeleteFunc(slices.Clone(failed), func(r int) bool { return r == k.victim && k.sort == givenUp })
	if !slices.Equal(sorted(first), sorted(want)) {
		return fmt.Sprintf("Shrink made a Comm of %v, not of %v", first, want)
	}
	return ""
}
