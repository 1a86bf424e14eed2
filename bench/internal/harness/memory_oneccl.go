//go:build oneccl

package harness

import (
	"errors"
	"os"
	"strings"

	"github.com/goccl/goccl/xpu"
)

func init() { devices["oneccl"] = kindOfDevice{count: countXPU, open: openXPU} }

// countXPU is 0 where oneCCL was told to run on its CPU plugin.
func countXPU() (int, error) {
	if strings.Contains(strings.ToLower(os.Getenv("CCL_PLUGIN")), "cpu") {
		return 0, nil
	}
	return xpu.Count()
}

func openXPU(at, local, locals int) (*device, error) {
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
	d := &device{n: x.Index(), stream: q, clock: clockOf(q, from, to)}
	d.info, _ = x.Name()
	d.hex, _ = x.PCI()
	d.alloc = func(managed bool, bytes int) (block, error) {
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
	d.close = func() error { return errors.Join(to.Close(), from.Close(), q.Close()) }
	return d, nil
}
