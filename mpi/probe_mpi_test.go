//go:build mpi && cgo

package mpi_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/mpi"
)

// TestProbe has each rank learn the length of a message before it makes room for it.
func TestProbe(t *testing.T) {
	c := mpi.World()
	n, me := c.Size(), c.Rank()
	next, prev := (me+1)%n, (me+n-1)%n
	for _, limit := range limits {
		for _, way := range ways(t) {
			t.Run(way.name, func(t *testing.T) {
				mpi.SetLimit(t, limit)
				within(t, func() {
					for _, k := range []int{0, 1, 13} {
						send, err := mpi.Isend(c, vector[int32](me, k), next, 5)
						require.NoError(t, err)
						st, err := mpi.Probe[int32](way.ctx, c, mpi.AnySource, mpi.AnyTag)
						require.NoError(t, err)
						require.Equal(t, mpi.Status{Source: prev, Tag: 5, Count: k}, st)
						found, st, err := mpi.Iprobe[int8](c, prev, 5)
						require.NoError(t, err)
						require.True(t, found)
						require.Equal(t, 4*k, st.Count)
						if k%2 == 1 {
							_, st, err = mpi.Iprobe[int64](c, prev, 5)
							require.NoError(t, err)
							require.Equal(t, -1, st.Count, "no whole number of them")
						}
						buf := make([]int32, k)
						_, err = mpi.Recv(way.ctx, c, buf, st.Source, st.Tag)
						require.NoError(t, err)
						require.Equal(t, vector[int32](prev, k), buf)
						_, err = send.Wait(way.ctx)
						require.NoError(t, err)
					}
					require.NoError(t, mpi.Barrier(way.ctx, c))
				})
			})
		}
	}
	found, _, err := mpi.Iprobe[int8](c, mpi.AnySource, 77)
	require.NoError(t, err)
	require.False(t, found)
	st, err := mpi.Probe[int8](context.Background(), c, mpi.ProcNull, 0)
	require.NoError(t, err)
	require.Equal(t, mpi.Status{Source: mpi.ProcNull, Tag: mpi.AnyTag}, st)

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = mpi.Probe[int8](ctx, c, mpi.AnySource, 77)
	require.EqualError(t, err, "mpi: Probe: no such message has come: context deadline exceeded")
	_, err = mpi.Probe[int8](ctx, c, mpi.AnySource, 77)
	require.EqualError(t, err, "mpi: Probe: not begun: context deadline exceeded")
	_, err = mpi.Probe[int8](t.Context(), c, n, 0)
	require.ErrorContains(t, err, "mpi: Probe: no rank ")
	_, err = mpi.Probe[int8](t.Context(), c, 0, -2)
	require.EqualError(t, err, "mpi: Probe: a tag of -2 (MPI_ERR_TAG)")
	require.NoError(t, mpi.Barrier(context.Background(), c))
}
