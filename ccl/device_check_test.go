package ccl

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/cuda"
	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/rocm"
)

// lane is a stream of a package of devices.
type lane struct {
	device   int
	platform string
}

func (lane) Handle() (uintptr, bool) { return 0, true }
func (l lane) Device() int           { return l.device }
func (l lane) Platform() string      { return l.platform }

// silentLane is a stream that says nothing of its device.
type silentLane struct{}

func (silentLane) Handle() (uintptr, bool) { return 0, true }

// What the compiler cannot tell apart, as it sees a Stream or a Buf, is told apart when it is used.
func TestOwns(t *testing.T) {
	c := &Comm{lib: &library{backend: &engine.Backend{Name: "nccl", Platform: "cuda"}, device: 1}}
	for _, tc := range []struct {
		s    Stream
		want string
	}{
		{lane{1, "cuda"}, ""},
		{silentLane{}, ""},
		{lane{0, "cuda"}, "the ccl.lane is on device 0, the Comm on device 1"},
		{lane{1, "rocm"}, "the ccl.lane is from package rocm, but the Comm's backend nccl works with package cuda"},
	} {
		d, err := c.devices.stream(c, tc.s)
		if tc.want != "" {
			require.EqualError(t, err, tc.want)
			continue
		}
		require.NoError(t, err)
		again, err := c.devices.stream(c, tc.s)
		require.NoError(t, err)
		require.Same(t, d, again)
	}
}

// asked counts how often it is asked for its device.
type asked struct{ times int }

func (*asked) Ptr() (uintptr, bool) { return 8, true }
func (a *asked) Device() int        { a.times++; return 0 }

// The two Memories of a call that is made again and again are checked once.
func TestOwnsOnce(t *testing.T) {
	var dst, src, third asked
	l := &library{backend: &engine.Backend{Name: "nccl"}}
	for range 10 {
		for _, m := range []*asked{&dst, &src} {
			_, err := (&Buf{mem: m, typ: TypeInt8, count: 1}).deviceArea(l)
			require.NoError(t, err)
		}
	}
	require.Equal(t, []int{1, 1}, []int{dst.times, src.times})
	for _, m := range []*asked{&third, &src, &dst} { // src is still known, dst is not
		_, err := (&Buf{mem: m, typ: TypeInt8, count: 1}).deviceArea(l)
		require.NoError(t, err)
	}
	require.Equal(t, []int{2, 1, 1}, []int{dst.times, src.times, third.times})
}

func TestTypeName(t *testing.T) {
	for want, v := range map[string]any{
		"*ccl.HostStream": &HostStream{}, "ccl.lane": lane{platform: "cuda"}, "*gpu.Stream": (*cuda.Stream)(nil), "*gpu.Mem": &rocm.Mem[int8]{},
	} {
		require.Equal(t, want, typeName(v), "%T", v)
	}
}
