package plane

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl/internal/call"
)

func TestFaultIsAnError(t *testing.T) {
	cause := errors.New("disk full")
	f := call.NewFault(call.Backend, 2, "rank %d: %w", 2, cause)
	assert.EqualError(t, f, "rank 2: disk full")
	assert.ErrorIs(t, f, cause)
	assert.EqualError(t, call.NewFault(call.Closed, 2, ""), "code 11, rank 2")
}
