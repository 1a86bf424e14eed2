// Package pp is pipeline parallelism: the ranks of a Comm are the stages of a model, and pass micro
// batches on. A schedule says in which order a stage runs the forward and backward passes; Check
// proves it, and a Pipeline runs it.
//
// A pipeline has p stages, one a rank, and v model chunks on each: chunk c of stage s is part c*p+s
// of the model. A step of m micro batches is idle for (p-1)/(v*m+p-1) of its time, which is called
// the bubble.
//
// A Pipeline has a Comm of two ranks for each of its neighbors and directions: 2 of them at the ends, 4 between, with
// interleaving 4 everywhere, since the queues of one Comm share one order. Run sends 2*v*m messages a stage.
package pp

import (
	"fmt"
	"iter"
	"slices"
)

// Step is one piece of a stage's work: the forward or backward pass of one micro batch through one
// chunk, or the gradients of the weights alone.
type Step struct {
	Backward bool
	// Weights is the step that computes the gradients of the chunk's weights by a micro batch, where a
	// schedule has it apart, as ZBH1: then the backward pass computes those of the chunk's input alone.
	// Nothing comes in and nothing goes out.
	Weights bool
	// Micro is the micro batch.
	Micro int
	// Chunk is the model chunk, for interleaved schedules; else 0.
	Chunk int
	// In and Out, 0 or 1, say which of two buffers has what comes in, and which is for what goes out. Schedules leave
	// them 0; a Pipeline sets them.
	In, Out int
}

// A Schedule yields the work of one stage, in order: the same whenever it is asked. A program that
// keeps what Interleaved returns spares each Run the layout of its steps.
type Schedule func(stages, stage, micros int) iter.Seq[Step]

// GPipe (Huang et al. 2019) runs all forward passes, then all backward ones: a stage holds the activations of all m
// micro batches.
func GPipe(stages, stage, micros int) iter.Seq[Step] {
	return func(yield func(Step) bool) {
		for i := range 2 * max(micros, 0) {
			if !yield(Step{Backward: i >= micros, Micro: i % micros}) {
				return
			}
		}
	}
}

// OneFOneB (PipeDream-Flush, Narayanan et al. 2019) alternates after a warm-up: the bubble of GPipe, and stage s holds
// at most p-s micro batches.
func OneFOneB(stages, stage, micros int) iter.Seq[Step] {
	return alternate(min(stages-stage-1, micros), micros, func(k int, backward bool) Step {
		return Step{Backward: backward, Micro: k}
	})
}

// Interleaved (Narayanan et al. 2021) is OneFOneB with v model chunks a rank: a bubble about v
// times smaller, for v times the messages. Micro batches go through the chunks in groups of as many
// as there are stages. Where they do not divide, groups are as equal as can be and have fewer than
// twice as many, so that stages hold more of them. If several groups would have more than 3 more,
// for which it takes 8 stages, all forward passes come first, as in GPipe.
func Interleaved(v int) Schedule {
	return func(stages, stage, micros int) iter.Seq[Step] {
		if v < 1 || stages < 1 || micros < 1 {
			return func(func(Step) bool) {}
		}
		total, groups := micros*v, max(micros/stages, 1)
		largest := (micros + groups - 1) / groups
		warm := min((stages-stage-1)*2+(v-1)*largest, total)
		if groups > 1 && largest > stages+2*buffers-1 {
			// what is on its way to the next chunk fills the link, and forward waits for backward
			warm = total
		}
		return alternate(warm, total, func(k int, backward bool) Step {
			g := ((k/v+1)*groups - 1) / micros // which begins with the micro batch lo
			lo, hi := g*micros/groups, (g+1)*micros/groups
			in := k - lo*v
			chunk := in / (hi - lo)
			if backward {
				chunk = v - 1 - chunk
			}
			return Step{Backward: backward, Micro: lo + in%(hi-lo), Chunk: chunk}
		})
	}
}

// ZBH1 (Qi et al. 2023, section 2.1) is OneFOneB with the gradients of the weights apart, which nobody
// waits for and which fill the bubble: where the three passes take as long it is a third of OneFOneB's.
// Stage s runs them s micro batches late, and so holds p of them, as stage 0 of OneFOneB does.
func ZBH1(stages, stage, micros int) iter.Seq[Step] {
	return func(yield func(Step) bool) {
		done := 0 // micro batches that have gone backward
		for x := range OneFOneB(stages, stage, micros) {
			if !yield(x) {
				return
			}
			if !x.Backward {
				continue
			}
			if done++; done > stage && !yield(Step{Weights: true, Micro: done - 1 - stage}) {
				return
			}
		}
		for k := max(done-stage, 0); k < done; k++ {
			if !yield(Step{Weights: true, Micro: k}) {
				return
			}
		}
	}
}

// Forward is s without its backward passes: for evaluation, and for generation, in which a step has
// one token. A stage holds nothing behind a step. A program that keeps what Forward returns spares
// each Run the layout of its steps.
func Forward(s Schedule) Schedule {
	if s == nil {
		s = OneFOneB
	}
	return func(stages, stage, micros int) iter.Seq[Step] {
		return func(yield func(Step) bool) {
			for x := range s(stages, stage, micros) {
				if !x.Backward && !x.Weights && !yield(x) {
					return
				}
			}
		}
	}
}

// lets is the last step that needs the activations of a micro batch.
func lets(steps []Step) func(x Step) bool {
	switch {
	case slices.ContainsFunc(steps, func(x Step) bool { return x.Weights }):
		return func(x Step) bool { return x.Weights }
	case slices.ContainsFunc(steps, func(x Step) bool { return x.Backward }):
		return func(x Step) bool { return x.Backward }
	}
	return func(Step) bool { return true }
}

// alternate yields total forward and backward steps in turn, after warm forward ones.
func alternate(warm, total int, at func(k int, backward bool) Step) iter.Seq[Step] {
	return func(yield func(Step) bool) {
		for f, b := 0, 0; b < total; {
			forward := f < total && f-b <= warm
			if forward && !yield(at(f, false)) || !forward && !yield(at(b, true)) {
				return
			}
			if forward {
				f++
			} else {
				b++
			}
		}
	}
}

// Bubble is the share of a step in which a stage is idle: (p-1)/(v*m+p-1). With ZBH1 it is
// (p-1)*x/(m*(f+b+w)+(p-1)*x), where x = f+b-w, of passes that take f, b and w, if w is no longer than
// the others and there are as many micro batches as stages; with fewer of them it is more.
func Bubble(stages, micros, chunks int) float64 {
	return float64(stages-1) / float64(max(chunks*micros+stages-1, 1))
}

// Check proves a schedule for p stages, m micro batches and v chunks: every stage runs each forward and
// each backward pass once, and the gradients of the weights if they are apart, none before what it
// needs, messages come in the order in which they are awaited, and nothing deadlocks where each link has
// two buffers at either end. A schedule without any backward pass, as Forward makes one, needs each
// forward pass once. It returns the most micro batches, of all chunks, that each stage holds. It takes a
// time of order p*m*v. A nil Schedule is OneFOneB, as in Run.
func Check(s Schedule, stages, micros, chunks int) (held []int, err error) {
	if s == nil {
		s = OneFOneB
	}
	if held, err = check(s, stages, micros, chunks); err != nil {
		return nil, fmt.Errorf("pp: %w", err)
	}
	return held, nil
}

// check is Check of a schedule that is not nil.
func check(s Schedule, stages, micros, chunks int) (held []int, err error) {
	if stages < 1 || micros < 0 || chunks < 1 {
		return nil, fmt.Errorf("%d stages, %d micro batches and %d chunks: there must be a stage and a chunk, and no number is negative", stages, micros, chunks)
	}
	m := &model{p: stages, v: chunks, todo: make([][]Step, stages)}
	backward, weights := 0, 0
	for r := range stages {
		seen := map[Step]bool{}
		for x := range s(stages, r, micros) {
			x.In, x.Out = 0, 0 // which the Pipeline sets
			if x.Micro < 0 || x.Micro >= micros || x.Chunk < 0 || x.Chunk >= chunks || seen[x] || x.Backward && x.Weights {
				return nil, fmt.Errorf("stage %d runs %v twice, or has no such step", r, x)
			}
			seen[x] = true
			m.todo[r] = append(m.todo[r], x)
			if x.Backward {
				backward++
			}
			if x.Weights {
				weights++
			}
		}
	}
	want := 2 * micros * chunks
	switch {
	case weights > 0:
		want += micros * chunks
	case backward == 0 && len(m.todo[0]) > 0:
		want = micros * chunks
	}
	for r := range stages {
		if len(m.todo[r]) != want {
			return nil, fmt.Errorf("stage %d has %d steps, not the %d of %d micro batches in %d chunks", r, len(m.todo[r]),
				want, micros, chunks)
		}
	}
	held, _, err = m.run(1, 2, 1)
	return held, err
}

// String reads like: forward of micro batch 3, chunk 0
func (s Step) String() string {
	what := "forward"
	switch {
	case s.Backward:
		what = "backward"
	case s.Weights:
		what = "gradients of the weights"
	}
	return fmt.Sprintf("%s of micro batch %d, chunk %d", what, s.Micro, s.Chunk)
}
