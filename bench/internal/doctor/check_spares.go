package doctor

import (
	"slices"

	"github.com/goccl/goccl/bench/internal/prose"
	"github.com/goccl/goccl/internal/environ"
)

// spares tells which ranks of the job wait to take the place of a lost one, and whether the spares
// of a host can keep its shape.
func (e *exam) spares() {
	n, err := environ.Spares.From(getenvOf(e.ranks[0].Env)) // that all ranks have the same is checked elsewhere
	switch {
	case err != nil || n < 1: // a value that is refused is told elsewhere
		return
	case n >= len(e.ranks):
		e.say("spares", failure, "start more ranks, or set "+environ.Spares.Name+" to fewer",
			"%s=%d, and the job has %s: at least one of them works", environ.Spares.Name, n, prose.Count(len(e.ranks), "rank"))
		return
	}
	workers := len(e.ranks) - n
	var on, without []string // hosts with spares, and those with ranks that work and no spare
	several := false         // a host has several ranks that work
	for i, f := range e.ranks {
		if i >= workers && !slices.Contains(on, f.Host) {
			on = append(on, f.Host)
		}
		several = several || i > 0 && i < workers &&
			slices.ContainsFunc(e.ranks[:i], func(g *facts) bool { return g.Host == f.Host })
	}
	for _, f := range e.ranks[:workers] {
		if !slices.Contains(on, f.Host) && !slices.Contains(without, f.Host) {
			without = append(without, f.Host)
		}
	}
	if several && without != nil {
		e.say("spares", warning, "start the ranks in turn over the hosts (srun --distribution=cyclic); with Options.RankOrder sums keep their bits wherever a spare is",
			"the last %d of %d ranks wait, on %s, and none on %s: a rank lost there is replaced on another host, and sums may differ in their last bits", n, len(e.ranks), short(on), short(without))
		return
	}
	e.say("spares", ok, "", "the last %d of %d ranks wait, on %s", n, len(e.ranks), short(on))
}
