package ccl

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/internal/engine"
)

// The launcher is told once what was said can have been read; a library that does not answer is not waited for.
func TestEndJob(t *testing.T) {
	(&library{loaded: &engine.Library{}}).endJob() // one that cannot
	told := 0
	began := time.Now()
	(&library{loaded: &engine.Library{EndJob: func(status int) { told = status }}}).endJob()
	assert.Equal(t, ExitStuck, told)
	assert.GreaterOrEqual(t, time.Since(began), readFor)
	block := make(chan struct{})
	defer close(block)
	(&library{loaded: &engine.Library{EndJob: func(int) { <-block }}}).endJob()
}
