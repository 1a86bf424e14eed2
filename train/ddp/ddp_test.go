package ddp_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/ddp"
)

// The talks' GPT-2: 75 tensors, 13 buckets of 9.0, 27.0 x 11 and 21.2 MiB.
func TestBuckets(t *testing.T) {
	lens := []int{65 * 768, 1024 * 768}
	for range 12 {
		lens = append(lens, 768, 768*2304, 768*768, 768, 768*3072, 3072*768)
	}
	lens = append(lens, 768)
	ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
		_, bufs := gradients(true, lens...) // of which nothing is touched
		r := newReducer(t, c, bufs, nil)
		defer r.Close()
		var sizes []string
		for _, b := range r.Buckets() {
			n := 0
			for _, i := range b {
				n += 4 * lens[i]
			}
			sizes = append(sizes, fmt.Sprintf("%.1f", float64(n)/(1<<20)))
		}
		want := []string{"9.0"}
		for range 11 {
			want = append(want, "27.0")
		}
		require.Equal(t, append(want, "21.2"), sizes)
	})
}

func TestDiffering(t *testing.T) {
	ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		bufs := []ccl.Buf{ccl.BufOf(make([]float32, 3)), ccl.BufOf(make([]float32, 4+c.Rank()/2))}
		_, err := ddp.New(t.Context(), c, bufs, nil)
		require.EqualError(t, err, "ddp: ranks differ: rank 0 has gradient 1: 4 x float, rank 2 has gradient 1: 5 x float")
		other := append(bufs[:1:1], ccl.BufOf(make([]float64, 4)))
		if c.Rank() == 0 {
			other[1] = ccl.BufOf(make([]float32, 4))
		}
		_, err = ddp.New(t.Context(), c, other, nil)
		require.EqualError(t, err, "ddp: ranks differ: rank 0 has gradient 1: 4 x float, rank 1 has gradient 1: 4 x double")
		_, err = ddp.New(t.Context(), c, bufs[:1+c.Rank()/2], nil)
		require.EqualError(t, err, "ddp: ranks differ: rank 0 has no more, rank 2 has gradient 1: 5 x float")
		_, err = ddp.New(t.Context(), c, bufs[:1], &ddp.Options{Order: []int{1}})
		require.EqualError(t, err, "ddp: the Order [1] is not a permutation of 1 gradients")
		x, y := make([]float32, 9), make([]float64, 9)
		for _, bad := range []struct {
			grads []ccl.Buf
			text  string
		}{
			{[]ccl.Buf{bufs[0], {}}, "ddp: gradient 1 is not a buffer, or was cut out of one beyond its end"},
			{[]ccl.Buf{ccl.InPlace()}, "ddp: gradient 0 is not a buffer, or was cut out of one beyond its end"},
			{[]ccl.Buf{bufs[0].From(2, 4)}, "ddp: gradient 0 is not a buffer, or was cut out of one beyond its end"},
			{[]ccl.Buf{ccl.BufOf(x[:4]), bufs[0], ccl.BufOf(x[3:])}, "ddp: gradients 0 and 2 overlap: give what is shared once"},
			{[]ccl.Buf{bufs[0], ccl.BufOf(y), ccl.BufOf(x), ccl.BufOf(y)}, "ddp: gradients 1 and 3 overlap: give what is shared once"},
		} {
			_, err = ddp.New(t.Context(), c, bad.grads, nil)
			require.EqualError(t, err, bad.text)
		}
		r, err := ddp.New(t.Context(), c, []ccl.Buf{ccl.BufOf(x[4:]), ccl.BufOf(x[:4]), ccl.BufOf(x[2:2])}, nil)
		require.NoError(t, err, "side by side, and empty")
		require.NoError(t, r.All(t.Context()))
		require.NoError(t, r.Close())
		require.EqualError(t, r.Ready(0), "ddp: the Reducer is closed")
		require.EqualError(t, r.Wait(t.Context()), "ddp: the Reducer is closed")
	})
}

// Options that differ between ranks are named.
func TestOptionsDiffer(t *testing.T) {
	hook := ddp.Hook(ddp.BFloat16)
	for _, tc := range []struct {
		other ddp.Options // of rank 1
		text  string
	}{
		{ddp.Options{FirstBytes: 8}, "FirstBytes 1048576, rank 1 has FirstBytes 8"},
		{ddp.Options{Bytes: 8}, "Bytes 26214400, rank 1 has Bytes 8"},
		{ddp.Options{Sum: true}, "Sum false, rank 1 has Sum true"},
		{ddp.Options{Order: []int{0}}, "Order [], rank 1 has Order [0]"},
		{ddp.Options{Hook: hook}, "Hook false, rank 1 has Hook true"},
	} {
		ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
			var o ddp.Options
			if c.Rank() == 1 {
				o = tc.other
			}
			_, err := ddp.New(t.Context(), c, []ccl.Buf{ccl.BufOf(make([]float32, 3))}, &o)
			require.EqualError(t, err, "ddp: ranks differ: rank 0 has "+tc.text)
		})
	}
}

// After a failure every call says why, and not what the step before has left.
func TestReadyAfterFailure(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
		c := ccltest.Split(t, world, 0, 0)
		r := newReducer(t, c, []ccl.Buf{ccl.BufOf(make([]float32, 3))}, nil)
		defer r.Close()
		ccltest.Barrier(t, world) // all have a Reducer before the Comm fails
		if c.Rank() == 1 {
			c.Abort(errors.New("a test"))
		}
		for range 2 {
			require.ErrorContains(t, r.All(t.Context()), "a test")
		}
	})
}

func TestNeverReady(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
		c := ccltest.Split(t, world, 0, 0)
		r := newReducer(t, c, []ccl.Buf{ccl.BufOf(make([]float32, 3)), ccl.BufOf(make([]float32, 4))}, nil)
		defer r.Close()
		ccltest.Barrier(t, world) // all have a Reducer before the Comm fails
		require.NoError(t, r.Ready(1))
		if c.Rank() == 0 {
			require.NoError(t, r.Ready(0))
		}
		require.ErrorContains(t, r.Wait(t.Context()), "ddp: gradients [0] never became Ready in this step")
	})
}

// Gradients of one length that come in another order on a rank, as from a range over a map, are found by their names.
func TestNames(t *testing.T) {
	ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		a, b := []float32{1}, []float32{100}
		grads, names := []ccl.Buf{ccl.BufOf(a), ccl.BufOf(b)}, []string{"wte", "head"}
		r, err := ddp.New(t.Context(), c, grads, &ddp.Options{Names: names})
		require.NoError(t, err)
		require.NoError(t, r.All(t.Context()))
		require.NoError(t, r.Close())
		require.Equal(t, []float32{1, 100}, []float32{a[0], b[0]})
		if c.Rank() == 1 {
			grads, names = []ccl.Buf{grads[1], grads[0]}, []string{"head", "wte"}
		}
		_, err = ddp.New(t.Context(), c, grads, &ddp.Options{Names: names})
		require.EqualError(t, err, `ddp: ranks differ: rank 0 has gradient 0: 1 x float of "wte", rank 1 has gradient 0: 1 x float of "head"`)
		_, err = ddp.New(t.Context(), c, grads, &ddp.Options{Names: []string{"wte"}})
		require.EqualError(t, err, "ddp: 1 Names of 2 gradients")
	})
}
