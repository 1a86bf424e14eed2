package gputest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/gpu"
)

// Platform is what a package of devices, cuda or rocm, makes of package gpu.
type Platform[P gpu.Platform] struct {
	Name, Runtime, Tag string

	Available           func() error
	Count               func() (int, error)
	Devices             func() ([]gpu.Device[P], error)
	At                  func(n int) (gpu.Device[P], error)
	Local               func(local, locals int) (gpu.Device[P], error)
	Versions            func() (driver, runtime int, err error)
	Library             func() string
	Alloc, AllocManaged func(gpu.Device[P], int) (*gpu.Mem[float32, P], error)
	AllocHost           func(gpu.Device[P], int) (*gpu.Host[float32, P], error)
}

// Test has the functions find a device, and data go from the host to it and back by each kind of memory. It returns
// memory of the device with 1, 2 and 3 in it.
func (p Platform[P]) Test(t *testing.T) *gpu.Mem[float32, P] {
	Use(t)
	if err := p.Available(); err != nil {
		t.Skip("hardware: " + err.Error())
	}
	n, err := p.Count()
	require.NoError(t, err)
	all, err := p.Devices()
	require.NoError(t, err)
	require.Len(t, all, n)
	d, err := p.Local(0, 1)
	require.NoError(t, err)
	first, err := p.At(0)
	require.NoError(t, err)
	require.Equal(t, first, d)
	require.Equal(t, p.Name+":0", d.String())
	driver, runtime, err := p.Versions()
	require.NoError(t, err)
	require.Positive(t, driver)
	require.Positive(t, runtime)
	require.NotEmpty(t, p.Library())

	x, err := p.Alloc(d, 3)
	require.NoError(t, err)
	t.Cleanup(func() { x.Free() })
	m, err := p.AllocManaged(d, 3)
	require.NoError(t, err)
	defer m.Free()
	h, err := p.AllocHost(d, 3)
	require.NoError(t, err)
	defer h.Free()
	s, err := d.NewStream()
	require.NoError(t, err)
	defer s.Close()
	copy(h.Slice(), []float32{1, 2, 3})
	require.NoError(t, x.PutOn(s, h))
	require.NoError(t, m.CopyOn(s, x))
	require.NoError(t, s.Synchronize())
	got, err := m.Slice()
	require.NoError(t, err)
	require.Equal(t, []float32{1, 2, 3}, got)
	return x
}

// TestAbsent has every function say, in a build without the tag, that the platform is not compiled in.
func (p Platform[P]) TestAbsent(t *testing.T) {
	want := p.Name + ": this program was built without " + p.Runtime + "; build it with -tags " + p.Tag
	var reason *gpu.Unavailable
	require.ErrorAs(t, p.Available(), &reason)
	require.Equal(t, p.Runtime, reason.Runtime)
	require.EqualError(t, p.Available(), want)
	_, noCount := p.Count()
	_, noDevices := p.Devices()
	_, notAt := p.At(0)
	_, noLocal := p.Local(0, 1)
	_, _, noVersions := p.Versions()
	for _, err := range []error{noCount, noDevices, notAt, noLocal, noVersions} {
		require.EqualError(t, err, want)
	}
	require.Empty(t, p.Library())
	_, noMem := p.Alloc(gpu.Device[P]{}, 1)
	_, noManaged := p.AllocManaged(gpu.Device[P]{}, 1)
	_, noHost := p.AllocHost(gpu.Device[P]{}, 1)
	for _, err := range []error{noMem, noManaged, noHost} {
		require.Error(t, err)
	}
}
