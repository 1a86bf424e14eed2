//go:build nccl || rccl

package harness

import (
	"errors"

	"github.com/goccl/goccl/gpu"
)

// gpus are the devices of CUDA or ROCm.
func gpus[P gpu.Platform]() kindOfDevice {
	return kindOfDevice{count: gpu.Count[P], open: func(at, local, locals int) (*device, error) {
		d, err := gpu.At[P](max(at, 0))
		if at < 0 {
			d, err = gpu.Local[P](local, locals)
		}
		if err != nil {
			return nil, err
		}
		return openGPU(d)
	}}
}

func openGPU[P gpu.Platform](g gpu.Device[P]) (*device, error) {
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
		alloc := gpu.Alloc[uint8, P]
		if managed {
			alloc = gpu.AllocManaged[uint8, P]
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
func captureGPU[P gpu.Platform](s *gpu.Stream[P], issue func() error) (*graph, error) {
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
