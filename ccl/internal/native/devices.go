//go:build nccl || rccl

package native

import (
	"errors"

	"github.com/goccl/goccl/gpu"
	"github.com/goccl/goccl/internal/engine"
)

// devicesOf are the devices of CUDA or ROCm.
func devicesOf[P gpu.Platform]() engine.Devices {
	return engine.Devices{Count: gpu.Count[P], Open: func(at, local, locals int) (*engine.Device, error) {
		g, err := gpu.At[P](max(at, 0))
		if at < 0 {
			g, err = gpu.Local[P](local, locals)
		}
		if err != nil {
			return nil, err
		}
		return openDevice(g)
	}}
}

func openDevice[P gpu.Platform](g gpu.Device[P]) (*engine.Device, error) {
	d, s, err := engine.OpenDevice(g, g.NewStream, g.NewEvent)
	if err != nil {
		return nil, err
	}
	d.Alloc = func(managed bool, bytes int) (engine.Block, error) {
		if managed {
			return engine.BlockOf(gpu.AllocManaged[uint8, P](g, bytes))
		}
		return engine.BlockOf(gpu.Alloc[uint8, P](g, bytes))
	}
	d.At = func(addr uintptr, bytes int) (engine.Block, error) {
		return engine.BlockOf(gpu.MemOf[uint8, P](g, addr, bytes))
	}
	d.Capture = func(issue func() error) (launch, close func() error, err error) { return capture(s, issue) }
	return d, nil
}

// capture makes a graph of what issue puts on s.
func capture[P gpu.Platform](s *gpu.Stream[P], issue func() error) (launch, close func() error, err error) {
	if err := s.BeginCapture(); err != nil {
		return nil, nil, err
	}
	issued := issue()
	g, err := s.EndCapture()
	if err != nil || issued != nil {
		if err == nil {
			g.Close()
		}
		return nil, nil, errors.Join(issued, err)
	}
	return func() error { return g.Launch(s) }, g.Close, nil
}
