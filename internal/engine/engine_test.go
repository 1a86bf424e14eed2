package engine

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
)

// least is an Engine that has only what none may lack.
type least struct{ Lacking }

func (least) Supports(op.Kind, op.Type, op.Op, bool) error { return nil }
func (least) Run(context.Context, []*op.Call) error        { return nil }
func (least) Abort()                                       {}
func (least) Close() error                                 { return nil }

// What an Engine lacks it answers with ErrUnsupported, as does a version that lacks a call.
func TestLacking(t *testing.T) {
	var e Engine = least{}
	_, isMemory := e.(Memory)
	require.False(t, isMemory)
	ctx := t.Context()
	_, issue := e.Issue(0, nil, 0)
	_, mark := e.Mark(0)
	_, split := e.Split(ctx, Group{})
	_, shrink := e.Shrink(ctx, Group{}, nil)
	for _, err := range []error{issue, mark, split, shrink, e.Shrinks(ctx), e.CloseApart(), &Lacks{}} {
		require.ErrorIs(t, err, ErrUnsupported)
	}
	require.NotErrorIs(t, &Lacks{}, ErrCapturing)
	require.NoError(t, e.Agree(nil))
	require.NoError(t, e.InPlace(op.AllToAll))
	require.NoError(t, e.Err())
	require.Zero(t, e.Native())
}
