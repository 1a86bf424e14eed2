package lent_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/lent"
)

func TestPoll(t *testing.T) {
	failed := errors.New("the stream is gone")
	ended, end := context.WithCancel(t.Context())
	end()
	for _, tc := range []struct {
		name string
		ctx  context.Context
		end  error // of the third query
		want error
	}{
		{"done", t.Context(), nil, nil},
		{"failed", t.Context(), failed, failed},
		{"given up", ended, nil, context.Canceled},
	} {
		t.Run(tc.name, func(t *testing.T) {
			queries := 0
			require.Equal(t, tc.want, lent.Poll(tc.ctx, func() (bool, error) {
				queries++
				return queries == 3, map[bool]error{true: tc.end}[queries == 3]
			}))
			if tc.ctx == ended {
				require.Equal(t, 1, queries, "what is done is asked before the context")
			} else {
				require.Equal(t, 3, queries)
			}
		})
	}
}
