//go:build nccl || rccl

package harness

import (
	"errors"

	"github.com/goccl/goccl/internal/gpu"
)

// gpus are the devices of CUDA or HIP.
func gpus(rt *gpu.Runtime) kindOfDevice {
	return kindOfDevice{count: rt.Count, open: func(at, local, locals int) (*device, error) {
		n, err := rt.Choose(at, local, locals)
		if err != nil {
			return nil, err
		}
		d, err := rt.Device(n)
		if err != nil {
			return nil, err
		}
		return openGPU(d)
	}}
}

func openGPU(g gpu.Device) (*device, error) {
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
	d := &device{n: g.Index(), stream: s, clock: clockOf(s, from, to)}
	d.info, _ = g.Name()
	d.hex, _ = g.PCI()
	d.alloc = func(managed bool, bytes int) (block, error) {
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
	d.at = func(addr uintptr, bytes int) (block, error) {
		b, err := gpu.MemOf[uint8](g, addr, bytes)
		if err != nil {
			return nil, err
		}
		return b, nil
	}
	d.capture = func(issue func() error) (*graph, error) { return captureGPU(s, issue) }
	d.close = func() error { return errors.Join(to.Close(), from.Close(), s.Close()) }
	return d, nil
}

// captureGPU makes a graph of what issue puts on s.
func captureGPU(s *gpu.Stream, issue func() error) (*graph, error) {
	if err := s.BeginCapture(); err != nil {
		return nil, err
	}
	issued := issue()
	g, err := s.EndCapture()
	if err != nil || issued != nil {
		if err == nil {
			g.Close()
		}
		return nil, errors.Join(issued, err)
	}
	return &graph{launch: func() error { return g.Launch(s) }, close: g.Close}, nil
}
