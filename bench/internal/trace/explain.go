package trace

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/goccl/goccl/bench/internal/prose"
)

// comm is a Comm, put together from what its ranks have written.
type comm struct {
	name     string
	size     int
	ranks    map[int]*line // by rank: the last that it has written of itself
	standing map[int]*line // where rank 0 says that each stood when a Comm of the job failed
}

// job is a job, by the ids of its Comms.
type job struct {
	id    string
	comms map[string]*comm
}

// group puts lines together by job and Comm.
func group(lines []*line) []*job {
	jobs := map[string]*job{}
	for _, l := range lines {
		j := jobs[l.Job]
		if j == nil {
			j = &job{id: l.Job, comms: map[string]*comm{}}
			jobs[l.Job] = j
		}
		c := j.comms[l.ID]
		if c == nil {
			c = &comm{name: l.Comm, size: l.Size, ranks: map[int]*line{}, standing: map[int]*line{}}
			j.comms[l.ID] = c
		}
		switch {
		case l.Size != c.size: // of another Comm, whatever its id says
		case l.Why == "standing":
			c.standing[l.Rank] = l
		case c.ranks[l.Rank] == nil || c.ranks[l.Rank].Why != "failure":
			c.ranks[l.Rank] = l
		}
	}
	return slices.SortedFunc(maps.Values(jobs), func(a, b *job) int { return strings.Compare(a.id, b.id) })
}

// explain says what went wrong in a job.
func (j *job) explain(say func(format string, args ...any)) {
	say("job %s:", short(j.id))
	wrong := false
	for _, id := range slices.Sorted(maps.Keys(j.comms)) {
		wrong = j.comms[id].explain(say) || wrong
	}
	if circle := j.circle(); circle != "" {
		say("  deadlock: %s", circle)
		wrong = true
	}
	if !wrong {
		say("  nothing went wrong: all Comms were closed normally")
	}
}

func short(id string) string { return id[:min(len(id), 12)] }

// explain says what went wrong in a Comm; false if nothing did.
func (c *comm) explain(say func(format string, args ...any)) bool {
	codes := map[string][]int{}
	for _, r := range slices.Sorted(maps.Keys(c.ranks)) {
		if l := c.ranks[r]; l.Code != "" {
			codes[l.Code] = append(codes[l.Code], r)
		}
	}
	if len(codes) == 0 {
		return false // it was well, though another Comm may have failed
	}
	say("  %s (%d ranks):", c.name, c.size)
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		first := c.ranks[codes[code][0]]
		say("    %s, by %s: %s", code, ranks(codes[code]), first.Error)
	}
	if len(c.ranks) < c.size {
		say("    nothing was written by %s: killed, or not failed", missing(c))
	}
	if seq, calls := c.firstDifference(); seq > 0 {
		say("    the ranks first differ in call #%d:", seq)
		for _, shape := range slices.Sorted(maps.Keys(calls)) {
			r := calls[shape]
			say("      %s: %s%s", ranks(r), shape, c.where(r[0], seq))
		}
		return true
	}
	c.explainLate(say)
	return true
}

// missing lists the ranks that have written nothing.
func missing(c *comm) string {
	var m []int
	for r := range c.size {
		if c.ranks[r] == nil {
			if m = append(m, r); len(m) > listed {
				break
			}
		}
	}
	return ranks(m)
}

// listed is how many ranks a sentence lists.
const listed = 16

func ranks(r []int) string {
	text := "rank "
	if len(r) > 1 {
		text = "ranks "
	}
	text += strings.Join(prose.Names(r[:min(len(r), listed)], strconv.Itoa), ", ")
	if len(r) > listed {
		text += " and more"
	}
	return text
}

// firstDifference is the first call that all recorders still hold in which ranks differ, and who made which.
func (c *comm) firstDifference() (seq uint64, calls map[string][]int) {
	by := map[uint64]map[string][]int{}
	for _, r := range slices.Sorted(maps.Keys(c.ranks)) {
		for i := range c.ranks[r].Calls {
			k := &c.ranks[r].Calls[i]
			if k.pairwise() {
				return 0, nil // numbers of calls are each rank's own then
			}
			if by[k.Seq] == nil {
				by[k.Seq] = map[string][]int{}
			}
			by[k.Seq][k.shape()] = append(by[k.Seq][k.shape()], r)
		}
	}
	for _, seq := range slices.Sorted(maps.Keys(by)) {
		if len(by[seq]) > 1 {
			return seq, by[seq]
		}
	}
	return 0, nil
}

// where is where a rank made a call, if that is known.
func (c *comm) where(rank int, seq uint64) string {
	for i := range c.ranks[rank].Calls {
		if k := &c.ranks[rank].Calls[i]; k.Seq == seq && k.Caller != "" {
			return " at " + k.Caller
		}
	}
	return ""
}

// last is the last call that a rank has begun.
func (l *line) last() *call {
	if len(l.Calls) == 0 {
		return nil
	}
	return &l.Calls[len(l.Calls)-1]
}

// explainLate says which ranks had not come to the call that the others were in.
func (c *comm) explainLate(say func(format string, args ...any)) {
	at := c.ranks
	if len(c.standing) > 0 {
		at = c.standing
	}
	var furthest uint64
	for _, l := range at {
		if k := l.last(); k != nil {
			if k.pairwise() {
				return
			}
			furthest = max(furthest, k.Seq)
		}
	}
	var in []int
	for _, r := range slices.Sorted(maps.Keys(at)) {
		l := at[r]
		k := l.last()
		switch {
		case k != nil && k.Seq == furthest:
			in = append(in, r)
		case k == nil:
			say("    rank %d on host %s had made no call", r, l.Host)
		case l.Doing == "outside" || l.Doing == "":
			say("    rank %d on host %s had not reached call #%d; its last is %v", r, l.Host, furthest, k)
		default:
			say("    rank %d on host %s was still in %v", r, l.Host, k)
		}
	}
	if len(in) > 0 {
		say("    in %v: %s", at[in[0]].last(), ranks(in))
	}
}

// circle finds ranks that waited for each other in different Comms.
func (j *job) circle() string {
	type edge struct {
		from, to int
		text     string
	}
	edges := map[int][]edge{}
	for _, id := range slices.Sorted(maps.Keys(j.comms)) {
		c := j.comms[id]
		for _, r := range slices.Sorted(maps.Keys(c.standing)) {
			l := c.standing[r]
			k := l.last()
			if l.Doing != "waits" || k == nil {
				continue
			}
			for _, o := range slices.Sorted(maps.Keys(c.standing)) {
				other := c.standing[o]
				behind := other.last() == nil || other.last().Seq < k.Seq
				if o != r && (k.pairwise() && l.For != nil && *l.For == o || !k.pairwise() && behind) {
					edges[l.World] = append(edges[l.World],
						edge{l.World, other.World, fmt.Sprintf("rank %d in %s %v on host %s waits for %d", l.World, c.name, k, l.Host,
							other.World)})
				}
			}
		}
	}
	done := map[int]bool{}
	var path []edge
	var visit func(w int) []edge
	visit = func(w int) []edge {
		for i, e := range path {
			if e.from == w {
				return path[i:]
			}
		}
		if done[w] {
			return nil
		}
		for _, e := range edges[w] {
			path = append(path, e)
			if found := visit(e.to); found != nil {
				return found
			}
			path = path[:len(path)-1]
		}
		done[w] = true
		return nil
	}
	for _, w := range slices.Sorted(maps.Keys(edges)) {
		if found := visit(w); found != nil {
			return strings.Join(prose.Names(found, func(e edge) string { return e.text }), "; ")
		}
	}
	return ""
}
