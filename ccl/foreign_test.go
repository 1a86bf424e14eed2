package ccl

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl/internal/engine"
)

// ender is an Engine whose library can end its job.
type ender struct {
	engine.Engine
	status int
	block  chan struct{} // closed when it may return
}

func (e *ender) EndJob(status int) { e.status = status; <-e.block }

// The launcher is told once what was said can have been read; a library that does not answer is not waited for.
func TestEndJob(t *testing.T) {
	(&library{Engine: struct{ engine.Engine }{}}).endJob() // one that cannot
	e := &ender{block: make(chan struct{})}
	close(e.block)
	began := time.Now()
	(&library{Engine: e}).endJob()
	assert.Equal(t, ExitStuck, e.status)
	assert.GreaterOrEqual(t, time.Since(began), readFor)
	e = &ender{block: make(chan struct{})}
	defer close(e.block)
	(&library{Engine: e}).endJob()
}
