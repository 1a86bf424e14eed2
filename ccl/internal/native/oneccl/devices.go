//go:build oneccl

package oneccl

import (
	"errors"
	"os"
	"strings"

	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/xpu"
)

// countDevices is 0 where oneCCL was told to run on its CPU plugin.
func countDevices() (int, error) {
	if strings.Contains(strings.ToLower(os.Getenv("CCL_PLUGIN")), "cpu") {
		return 0, nil
	}
	return xpu.Count()
}

func openDevice(at, local, locals int) (*engine.Device, error) {
	x, err := xpu.At(max(at, 0))
	if at < 0 {
		x, err = xpu.Local(local, locals)
	}
	if err != nil {
		return nil, err
	}
	q, err := x.NewQueue()
	if err != nil {
		return nil, err
	}
	from, err := x.NewEvent()
	if err != nil {
		return nil, errors.Join(err, q.Close())
	}
	to, err := x.NewEvent()
	if err != nil {
		return nil, errors.Join(err, from.Close(), q.Close())
	}
	d := &engine.Device{Number: x.Index(), Stream: q, Clock: engine.ClockOf(q, from, to)}
	d.Name, _ = x.Name()
	d.PCI, _ = x.PCI()
	d.Alloc = func(managed bool, bytes int) (engine.Block, error) {
		alloc := xpu.Alloc[uint8]
		if managed {
			alloc = xpu.AllocManaged[uint8]
		}
		b, err := alloc(x, bytes)
		if err != nil {
			return nil, err
		}
		return b, nil
	}
	d.Close = func() error { return errors.Join(to.Close(), from.Close(), q.Close()) }
	return d, nil
}
