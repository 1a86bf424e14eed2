//go:build oneccl && cgo && linux

package oneccl_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/native/oneccl"
	"github.com/goccl/goccl/internal/engine"
)

func init() {
	roles["unmade"] = unmade
	roles["destroy hangs"] = destroyHangs
}

// twins is a library of two ranks that do the same, one of which is this process. WRONG names the function that fails, and HANGS the
// one that never returns.
const twins = `
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
typedef struct { char data[4096]; } id;
static int meet(const char *name) {
	const char *wrong = getenv("WRONG"), *hangs = getenv("HANGS");
	while (hangs && !strcmp(hangs, name)) pause();
	return wrong && !strcmp(wrong, name);
}
#define F(name) int oneccl##name(void) { return meet(#name); }
F(GetUniqueId) F(SetDevice) F(CommDestroy) F(AllReduce) F(Reduce) F(Broadcast) F(ReduceScatter) F(AllToAll) F(Send) F(Recv)
const char *onecclGetErrorString(int rc) { return "wrong"; }
const char *onecclGetLastError(void *c) { return ""; }
int onecclGetVersion(int *v) { *v = 20211702; return 0; }
int onecclCommInitRank(void **c, size_t n, id i, int rank) { *c = &meet; return meet("CommInitRank"); }
int onecclAllGather(const void *src, void *dst, size_t n, int type, void *c, void *q) {
	n *= (const size_t[]){1, 1, 4, 4, 8, 8, 2, 4, 8, 2}[type];
	memcpy(dst, src, n), memcpy((char *)dst + n, src, n);
	return meet("AllGather");
}`

// twin plays a role with twins.
func twin(t *testing.T, role string, env ...string) {
	t.Helper()
	t.Setenv("GOCCL_ONECCL_LIB", fake(t, "libccl.so.2", twins))
	ranks(t, role, 1, append(env, "GOCCL_XPU_LIB=", "CCL_PLUGIN=ONECCL_LEGACY_CPU")...)
}

// pair makes a communicator of two ranks.
func (r *rank) pair(ctx context.Context) (engine.Engine, error) {
	id, err := r.lib.ID()
	if err != nil {
		return nil, err
	}
	return r.lib.New(ctx, engine.Group{Size: 2, Device: -1, Locals: 1}, id)
}

// A communicator whose ranks cannot tell each other what they have left is not returned beside the error: nobody would close it.
func unmade(r *rank) {
	e, err := r.pair(r.ctx)
	require.Nil(r, e)
	require.Zero(r, oneccl.Left(), "communicators wait to be destroyed, and no rank knows of any")
	require.ErrorContains(r, err, "onecclAllGather")
}

func TestUnmade(t *testing.T) { twin(t, "unmade", "WRONG=AllGather") }

// A communicator that is destroyed in the course of New does not hold it: New's context ends that, and so does Check.
func destroyHangs(r *rank) {
	first, err := r.pair(r.ctx)
	require.NoError(r, err)
	began := time.Now()
	require.NoError(r, first.Close()) // which itself destroys nothing that others are in
	r.prompt(began)
	ctx, cancel := context.WithTimeout(r.ctx, 100*time.Millisecond)
	defer cancel()
	e, err := r.pair(ctx)
	require.Nil(r, e)
	require.ErrorIs(r, err, context.DeadlineExceeded)
	_, err = r.pair(r.ctx)
	require.ErrorContains(r, err, "still inside oneCCL")
	r.prompt(began)
}

func TestDestroyHangs(t *testing.T) { twin(t, "destroy hangs", "HANGS=CommDestroy") }
