package mirror

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/goccl/goccl/ccl"
)

// errDone is why the Comm of all ranks ends when the work is done: spares wait for its end.
var errDone = errors.New("the job is done")

// errFew is what ranks return that are too few.
var errFew = errors.New("fewer ranks than the job has")

// toy is a training run whose exact states are known: integers, each step of which depends on all
// ranks, on the step and on the place.
type toy struct {
	n, steps int
	o        Options
	// alike gives all ranks the same state.
	alike bool
	// at is called at the points of the run, as Mirror.at is at those of a Save.
	at func(role, step int, point string)
}

// begin returns the state of a rank before the first step: of other lengths on other ranks.
func (j toy) begin(role int) []int64 {
	if j.alike {
		role = 0
	}
	s := make([]int64, 1000+role)
	for i := range s {
		s[i] = int64(role*7919 + i)
	}
	return s
}

// update makes a step, of which sum is what all ranks together have.
func update(s []int64, step int, sum int64) {
	for i := range s {
		s[i] = s[i]*6364136223846793005 + sum ^ int64(step+i)
	}
}

// least is the step that Restore comes back to at least, on a rank whose last Save was that of a
// step: of a mirrored state the one before is whole on all ranks.
func (j toy) least(saved int) int {
	switch every := max(j.o.Every, 1); {
	case saved < 0:
		return -1
	case j.alike:
		return saved
	default:
		return saved - saved%every - every
	}
}

// want returns the states of all ranks after the last step of an undisturbed run.
func (j toy) want() [][]int64 {
	states := make([][]int64, j.n)
	for r := range states {
		states[r] = j.begin(r)
	}
	for step := range j.steps {
		sum := int64(0)
		for _, s := range states {
			sum += s[0]
		}
		for _, s := range states {
			update(s, step, sum)
		}
	}
	return states
}

// run is a rank: of the job, or a spare that may become one. It returns which rank of the job it
// was at the end, -1 for a spare that was not needed, and its state.
func (j toy) run(ctx context.Context, pool *ccl.Comm) (role int, state []int64, err error) {
	role = pool.Rank()
	m := New(&j.o)
	defer func() { err = errors.Join(err, m.Close()) }()
	defer func() { pool.Close() }()
	var fresh []int
	saved := -1 // the last step of which Save has returned
	m.at = j.at
	for {
		color := 0
		if role >= j.n {
			color = -1
		}
		work, err := pool.Split(ctx, color, role)
		if err == nil {
			if color < 0 {
				<-pool.Done()
				err = pool.Err()
			} else {
				if len(state) != len(j.begin(role)) { // else what it has worked with
					state = make([]int64, len(j.begin(role)))
				}
				err = j.train(ctx, work, m, fresh, state, &saved)
				if err == nil {
					pool.Abort(errDone)
				}
				work.Close()
			}
		}
		if err == nil {
			return role, state, nil
		}
		if isDone(pool.Err()) {
			if color < 0 {
				role = -1
			}
			return role, nil, nil
		}
		if !errors.Is(err, ccl.ErrRankLost) && !errors.Is(err, ccl.ErrAborted) {
			pool.Abort(err) // so that no spare waits
			return role, nil, err
		}
		<-pool.Done()
		j.at(role, -1, "shrink")
		if pool, fresh, role, err = replace(ctx, pool, role, j.n); err != nil {
			return role, nil, err
		}
	}
}

func isDone(err error) bool {
	var e *ccl.Error
	return errors.As(err, &e) && e.Err != nil && e.Err.Error() == errDone.Error()
}

// replace is what Comm.Replace is to be: a Comm of all that are left, and which of the n ranks of
// the job are new, by what all of them know.
func replace(ctx context.Context, pool *ccl.Comm, role, n int) (next *ccl.Comm, fresh []int, now int, err error) {
	for {
		next, err = pool.Shrink(ctx)
		if err != nil {
			return pool, nil, role, err
		}
		pool.Close()
		pool = next
		roles := make([]int, next.Size())
		err = ccl.AllGather(ctx, next, roles, []int{role})
		if errors.Is(err, ccl.ErrRankLost) {
			continue
		}
		if err != nil {
			return next, nil, role, err
		}
		for r := range n {
			if !slices.Contains(roles, r) {
				fresh = append(fresh, r)
			}
		}
		spares := slices.DeleteFunc(roles, func(r int) bool { return r < n })
		slices.Sort(spares)
		if len(spares) < len(fresh) {
			return next, nil, role, errFew
		}
		if i := slices.Index(spares, role); i >= 0 && i < len(fresh) {
			role = fresh[i]
		}
		return next, fresh, role, nil
	}
}

// train brings state from where Restore finds the job to its last step.
func (j toy) train(ctx context.Context, c *ccl.Comm, m *Mirror, fresh []int, state []int64, saved *int) error {
	from, err := m.Restore(ctx, c, fresh, ccl.BufOf(state[:10]), ccl.BufOf(state[10:]))
	if err != nil {
		return err
	}
	if least := j.least(*saved); from < least {
		return fmt.Errorf("back at step %d, and step %d was whole", from, least)
	}
	if from < 0 {
		copy(state, j.begin(c.Rank()))
	}
	for step := from + 1; step < j.steps; step++ {
		j.at(c.Rank(), step, "step")
		sum := []int64{state[0]}
		if err := ccl.AllReduce(ctx, c, sum, sum, ccl.Sum); err != nil {
			return err
		}
		update(state, step, sum[0])
		j.at(c.Rank(), step, "update")
		if err := m.Save(ctx, step, ccl.BufOf(state[:10]), ccl.BufOf(state[10:])); err != nil {
			return err
		}
		*saved = step
	}
	j.at(c.Rank(), j.steps, "end")
	if err := ccl.Barrier(ctx, c); err != nil {
		return err
	}
	return m.Wait(ctx)
}

// outcome is what a rank of a job has returned.
type outcome struct {
	rank  int // in the Comm of all ranks
	role  int
	state []int64
	err   error
}

// judge says what is wrong with the outcomes of all ranks that were not killed.
func (j toy) judge(got []outcome, killed ...int) error {
	want := j.want()
	have := make([]bool, j.n)
	few := 0
	for _, o := range got {
		switch {
		case slices.Contains(killed, o.rank) && errors.Is(o.err, ccl.ErrRankLost): // a goroutine that should be dead
		case errors.Is(o.err, errFew):
			few++
		case o.err != nil:
			return fmt.Errorf("rank %d: %w", o.role, o.err)
		case o.state != nil:
			if !slices.Equal(o.state, want[o.role]) {
				return fmt.Errorf("rank %d has another state than in an undisturbed run", o.role)
			}
			have[o.role] = true
		}
	}
	if n := slices.Index(have, false); n >= 0 && few == 0 {
		return fmt.Errorf("no rank %d at the end: %+v", n, got)
	}
	if few > 0 && !slices.Contains(have, true) {
		return fmt.Errorf("%d ranks were too few, and none was done", few)
	}
	return nil
}
