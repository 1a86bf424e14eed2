//go:build fault && linux

package ccl_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/internal/inject"
)

func init() { roles["linkbreaks"], roles["linkbreakslast"] = linkBreaks, linkBreaksLast }

// linkBreaks: the connection for messages from rank 0 to rank 1 is reset with a small message on it, whose Send has returned nil.
// Another Comm has nothing on its way.
func linkBreaks(ctx context.Context, t *testing.T, _ string) {
	world, err := ccl.Join(ctx, &ccl.Options{Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	other, err := world.Split(ctx, 0, world.Rank())
	require.NoError(t, err)
	me, peer := world.Rank(), 1-world.Rank()
	exchange := func(c *ccl.Comm) {
		got := make([]int32, 10000)
		sent := ccl.LinkTo(c, peer, 0).Send(ccl.BufOf(ramp(len(got), me)))
		require.NoError(t, ccl.LinkTo(c, peer, 0).Recv(ccl.BufOf(got)).Wait(ctx))
		require.NoError(t, sent.Wait(ctx)) // so large a message is complete once it is answered
		require.Equal(t, ramp(len(got), peer), got)
	}
	exchange(world)
	exchange(other)
	require.NoError(t, ccl.Barrier(ctx, world))
	l, x := ccl.LinkTo(world, peer, 1), make([]int, 1)
	if me == 0 {
		require.NoError(t, inject.Plan("mail.send:1:cut"))
		require.NoError(t, l.Send(ccl.BufOf([]int{1})).Wait(ctx))
		err = l.Send(ccl.BufOf([]int{2})).Wait(ctx)
	} else {
		err = l.Recv(ccl.BufOf(x)).Wait(ctx)
	}
	wants(t, err, ccl.ErrBackend)
	<-world.Done()
	fmt.Printf("rank %d: %v; %v\n", me, x[0], world.Err())
	require.Error(t, l.Send(ccl.BufOf(x)).Wait(ctx))
	require.NoError(t, ccl.Barrier(ctx, other))
	exchange(other)
	anew, err := world.Shrink(ctx)
	require.NoError(t, err)
	exchange(anew)
	require.Equal(t, 2, anew.Size())
	for _, c := range []*ccl.Comm{anew, other} {
		require.NoError(t, ccl.Barrier(ctx, c))
		require.NoError(t, c.Close())
	}
	world.Close()
}

// A connection of messages that breaks while both ranks live fails the Comm of what may be lost, on both, with what happened.
func TestLinkBreaks(t *testing.T) {
	for _, hosts := range []int{0, 2} {
		text := processes(t, 2, hosts, "linkbreaks", "")
		for r := range 2 {
			want := fmt.Sprintf("rank %d: 0; ccl: rank %d: Comm: the connection for messages from world rank 0 to 1 broke: ", r, r)
			require.Equal(t, 1, strings.Count(text, want), "%s in\n%s", want, text)
		}
	}
}

// linkBreaksLast: the connection for messages of rank 1 breaks as that closes its last Comm. It looks for the reason when the job has
// ended there.
func linkBreaksLast(ctx context.Context, t *testing.T, _ string) {
	c, err := ccl.Join(ctx, &ccl.Options{Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	l, x := ccl.LinkTo(c, 1-c.Rank(), 0), []int{0}
	if c.Rank() == 0 {
		require.NoError(t, l.Recv(ccl.BufOf(x)).Wait(ctx))
		wants(t, ccl.LinkTo(c, 1, 1).Recv(ccl.BufOf(x)).Wait(ctx), ccl.ErrClosed)
		require.NoError(t, c.Close())
		return
	}
	require.NoError(t, l.Send(ccl.BufOf(x)).Wait(ctx))
	severed := make(chan struct{})
	inject.Set("abort", func() {
		close(severed)
		time.Sleep(300 * time.Millisecond)
	})
	require.NoError(t, inject.Plan("mail.send:1:cut,mail.severed:1:abort"))
	require.NoError(t, l.Send(ccl.BufOf(x)).Wait(ctx))
	<-severed
	require.NoError(t, c.Close())
	fmt.Println("closed well")
}

// What is done about a broken connection uses nothing that Close has given back.
func TestLinkBreaksAsTheJobEnds(t *testing.T) {
	for _, hosts := range []int{0, 2} {
		require.Contains(t, processes(t, 2, hosts, "linkbreakslast", ""), "closed well")
	}
}
