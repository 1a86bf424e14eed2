//go:build oneccl

package oneccl

import (
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
	d, _, err := engine.OpenDevice(x, x.NewQueue, x.NewEvent)
	if err != nil {
		return nil, err
	}
	d.Alloc = func(managed bool, bytes int) (engine.Block, error) {
		if managed {
			return engine.BlockOf(xpu.AllocManaged[uint8](x, bytes))
		}
		return engine.BlockOf(xpu.Alloc[uint8](x, bytes))
	}
	return d, nil
}
