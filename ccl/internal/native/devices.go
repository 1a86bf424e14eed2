//go:build nccl || rccl

package native

import (
	"errors"

	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/gpu"
)

// devicesOf are the devices of CUDA or HIP.
func devicesOf(rt *gpu.Runtime) engine.Devices {
	return engine.Devices{Count: rt.Count, Open: func(at, local, locals int) (*engine.Device, error) {
		n, err := rt.Choose(at, local, locals)
		if err != nil {
			return nil, err
		}
		d, err := rt.Device(n)
		if err != nil {
			return nil, err
		}
		return openDevice(d)
	}}
}

func openDevice(g gpu.Device) (*engine.Device, error) {
	d, s, err := engine.OpenDevice(g, g.NewStream, g.NewEvent)
	if err != nil {
		return nil, err
	}
	d.Alloc = func(managed bool, bytes int) (engine.Block, error) {
		if managed {
			return engine.BlockOf(gpu.AllocManaged[uint8](g, bytes))
		}
		return engine.BlockOf(gpu.Alloc[uint8](g, bytes))
	}
	d.At = func(addr uintptr, bytes int) (engine.Block, error) {
		return engine.BlockOf(gpu.MemOf[uint8](g, addr, bytes))
	}
	d.Capture = func(issue func() error) (launch, close func() error, err error) { return capture(s, issue) }
	return d, nil
}

// capture makes a graph of what issue puts on s.
func capture(s *gpu.Stream, issue func() error) (launch, close func() error, err error) {
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
