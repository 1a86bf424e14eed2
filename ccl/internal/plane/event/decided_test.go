package event

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// What has been decided takes no more memory in a job whose Comms fail again and again; losses are remembered.
func TestSettledIsBounded(t *testing.T) {
	var k decisions
	for i := range 3 * keptFailures {
		k.keep(subject{uint64(i + 1), -1})
		if i < 100 {
			k.keep(subject{0, int32(i)})
		}
	}
	assert.Len(t, k.all, keptFailures+100)
	assert.Len(t, k.list, keptFailures)
	for i := range 3 * keptFailures {
		assert.Equal(t, i >= 2*keptFailures, k.has(subject{uint64(i + 1), -1}), i)
	}
	for i := range 100 {
		assert.True(t, k.has(subject{0, int32(i)}))
	}
}
