package mpi

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestYieldNow(t *testing.T) {
	now := time.Now().Add(time.Hour)
	assert.True(t, yieldNow(now))
	assert.False(t, yieldNow(now.Add(yieldAfter-1)))
	assert.True(t, yieldNow(now.Add(yieldAfter)))
	process.yielded.Store(0)
}
