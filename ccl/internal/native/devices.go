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
	s, err := g.NewStream()
	if err != nil {
		return nil, err
	}
	from, err := g.NewEvent()
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	to, err := g.NewEvent()
	if err != nil {
		return nil, errors.Join(err, from.Close(), s.Close())
	}
	d := &engine.Device{Number: g.Index(), Stream: s, Clock: engine.ClockOf(s, from, to)}
	d.Name, _ = g.Name()
	d.PCI, _ = g.PCI()
	d.Alloc = func(managed bool, bytes int) (engine.Block, error) {
		alloc := gpu.Alloc[uint8]
		if managed {
			alloc = gpu.AllocManaged[uint8]
		}
		b, err := alloc(g, bytes)
		if err != nil {
			return nil, err
		}
		return b, nil
	}
	d.At = func(addr uintptr, bytes int) (engine.Block, error) {
		b, err := gpu.MemOf[uint8](g, addr, bytes)
		if err != nil {
			return nil, err
		}
		return b, nil
	}
	d.Capture = func(issue func() error) (launch, close func() error, err error) { return capture(s, issue) }
	d.Close = func() error { return errors.Join(to.Close(), from.Close(), s.Close()) }
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
