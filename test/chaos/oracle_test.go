//go:build fault

package chaos

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccl/goccl/ccl"
)

// said is what the ranks of a case have said.
type said struct {
	ends     map[int]end // the last of each rank
	left     map[int][]int
	closed   map[int]bool
	closing  map[int]bool
	fired    bool
	firedAt  time.Time
	wrong    []string // results
	broken   []string
	crashed  bool
	fullText string
}

type end struct {
	code ccl.Code
	peer int
	at   time.Time
	text string
}

var (
	endLine   = regexp.MustCompile(`end (\d+) code (\d+) peer (-?\d+) time (\d+)(.*)`)
	leftLine  = regexp.MustCompile(`left (\d+) \[([0-9 ]*)\]`)
	closeLine = regexp.MustCompile(`closed (\d+) `)
	faultLine = regexp.MustCompile(`fault: .* time (\d+)`)
	crashes   = regexp.MustCompile(`SIGSEGV|SIGBUS|fatal error|DATA RACE|--- FAIL`)
)

func parse(text string) *said {
	w := &said{ends: map[int]end{}, left: map[int][]int{}, closed: map[int]bool{}, closing: map[int]bool{}, fullText: text, crashed: crashes.MatchString(text)}
	number := func(s string) int { n, _ := strconv.Atoi(s); return n }
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if m := endLine.FindStringSubmatch(line); m != nil {
			w.ends[number(m[1])] = end{ccl.Code(number(m[2])), number(m[3]), time.Unix(0, int64(number(m[4]))), m[5]}
		} else if m := leftLine.FindStringSubmatch(line); m != nil {
			var ranks []int
			for _, f := range strings.Fields(m[2]) {
				ranks = append(ranks, number(f))
			}
			w.left[number(m[1])] = ranks
		} else if m := closeLine.FindStringSubmatch(line); m != nil || strings.HasPrefix(line, "closed ") {
			w.closed[number(strings.Fields(line)[1])] = true
		} else if strings.HasPrefix(line, "closing ") {
			w.closing[number(strings.Fields(line)[1])] = true
		} else if m := faultLine.FindStringSubmatch(line); m != nil {
			w.fired, w.firedAt = true, time.Unix(0, int64(number(m[1])))
		} else if strings.HasPrefix(line, "wrong ") {
			w.wrong = append(w.wrong, line)
		} else if strings.HasPrefix(line, "broken ") {
			w.broken = append(w.broken, line)
		}
	}
	return w
}

// judge is what is wrong with what the ranks have said; "" if nothing is.
func (s *scenario) judge(w *said) string {
	fired := w.fired || s.point == "" && s.wrong != nothing
	harmless := !fired && s.wrong != killInShrink
	gone := -1 // the rank that the others must do without
	var codes []ccl.Code
	switch s.wrong {
	case nothing, stopShort, pauseShort, gcStorm:
		harmless = true
	case dropControl: // harmless, but for a good-bye: who leaves without one is lost
		codes = []ccl.Code{ccl.ErrRankLost}
	case panics: // runs what was deferred, and so closes the Comm, which says that it is in a panic
		codes, gone = []ccl.Code{ccl.ErrRankLost, ccl.ErrAborted}, s.victim
	case kill, exit, stopLong, killInJoin, killInSplit, killInClose:
		codes, gone = []ccl.Code{ccl.ErrRankLost}, s.victim
	case killInShrink:
		codes = []ccl.Code{ccl.ErrAborted}
		if w.fired {
			gone = s.victim
		}
	case cutTCP:
		codes = []ccl.Code{ccl.ErrRankLost, ccl.ErrBackend}
	case flip, noMemory:
		codes = []ccl.Code{ccl.ErrBackend}
	case pauseLong:
		codes = []ccl.Code{ccl.ErrTimeout}
	case skip, repeat, swap, change:
		codes = []ccl.Code{ccl.ErrMismatch}
		harmless = s.sameAnyway()
	case cancel:
		codes = []ccl.Code{ccl.ErrCanceled}
	case abort:
		codes = []ccl.Code{ccl.ErrAborted}
	case leave:
		codes, gone = []ccl.Code{ccl.ErrClosed}, s.victim
	}
	var survivors, failed []int
	for r := range s.n {
		if r == s.victim && (gone == r || s.wrong.ends() && w.fired) {
			continue
		}
		survivors = append(survivors, r)
		e, ok := w.ends[r]
		switch {
		case !ok:
			return fmt.Sprintf("rank %d has not said how it ended", r)
		case !w.closed[r]:
			return fmt.Sprintf("rank %d has not come to its end", r)
		case e.code != 0:
			failed = append(failed, r)
		}
	}
	for _, b := range w.broken {
		if s.wrong == stopLong && strings.HasPrefix(b, fmt.Sprintf("broken %d ", s.victim)) {
			continue // it comes back too late, and hears so
		}
		return b
	}
	switch {
	case len(w.wrong) > 0:
		return w.wrong[0]
	case w.crashed && s.wrong != panics:
		return "a crash"
	case harmless && len(failed) > 0:
		return fmt.Sprintf("nothing was wrong, but rank %d says:%s", failed[0], w.ends[failed[0]].text)
	case harmless:
		return ""
	}
	return s.judgeFailed(w, survivors, failed, gone, codes)
}

// judgeFailed looks at the ranks that have reported a failure.
func (s *scenario) judgeFailed(w *said, survivors, failed []int, gone int, codes []ccl.Code) string {
	must := map[wrong]bool{kill: true, exit: true, panics: true, stopLong: true, skip: true, repeat: true, swap: true, change: true, leave: true, killInSplit: true, pauseLong: true}
	// Who ends after the last Barrier, in Close, may harm nobody; nor need who ends within it, with all sent that the
	// others wait for.
	e, done := w.ends[s.victim]
	within := done && e.code == 0 && w.fired && s.point != "cpu.call"
	if len(failed) == 0 && must[s.wrong] && len(survivors) > 0 && !w.closing[s.victim] && !within {
		return fmt.Sprintf("rank %d did wrong, and nobody says so", s.victim)
	}
	noComm := strings.Contains(w.fullText, "without a Comm")
	var first *end
	for _, r := range failed {
		e := w.ends[r]
		if !slices.Contains(codes, e.code) {
			return fmt.Sprintf("rank %d should not say:%s", r, e.text)
		}
		if r == s.victim {
			continue // it has its own view
		}
		if s.wrong != cutTCP && e.peer != s.victim {
			return fmt.Sprintf("rank %d should name rank %d, but says:%s", r, s.victim, e.text)
		}
		if first == nil {
			first = &e
		} else if (first.code != e.code && s.wrong != panics) || first.peer != e.peer {
			return fmt.Sprintf("rank %d says:%s, but another:%s", r, e.text, first.text)
		}
		if limit := s.limit(); w.fired && limit > 0 && e.at.Sub(w.firedAt) > limit {
			return fmt.Sprintf("rank %d has heard of it only after %v", r, e.at.Sub(w.firedAt))
		}
		if noComm {
			continue
		}
		want := failed
		if s.wrong == killInShrink {
			want = survivors
		}
		want = slices.DeleteFunc(slices.Clone(want), func(r int) bool { return r == gone })
		if !slices.Equal(w.left[r], want) {
			return fmt.Sprintf("after Shrink rank %d has a Comm of %v, not of %v", r, w.left[r], want)
		}
	}
	return ""
}

// isMisnamed reports whether a verdict is that all have failed as they should, but one blames
// the wrong rank where that is hard to know: who has waited for the late rank, or who has
// made another call than a rank that has not made that call yet.
func (s *scenario) isMisnamed(verdict string) bool {
	switch s.wrong {
	case pauseLong, skip, repeat, swap, change:
		return strings.Contains(verdict, "should name")
	}
	return false
}

// limit is ten times what is promised, from the fault to the error on every other rank. Between hosts a call goes on for as long
// as a second after the end of a process, which may have sent what it needs.
func (s *scenario) limit() time.Duration {
	switch s.wrong {
	case kill, exit, panics, killInSplit:
		if s.hosts < 2 {
			return 500 * time.Millisecond * slower()
		}
		return 2 * time.Second * slower()
	case stopLong:
		return s.peer + 5*time.Second
	}
	return 0
}
