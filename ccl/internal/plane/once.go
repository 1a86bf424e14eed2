package plane

import "github.com/goccl/goccl/internal/simhost"

// step is what one rank of this process does for all.
type step struct {
	mu   simhost.Mutex
	done bool
	err  error
}

// Once runs f for the first rank of this process that comes to the step of that name, and returns its error to all.
func (j *Job) Once(name string, f func() error) error {
	j.mu.Lock()
	s := j.Life.steps[name]
	if s == nil {
		s = new(step)
		j.Life.steps[name] = s
	}
	j.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.done {
		s.err, s.done = f(), true
	}
	return s.err
}
