//go:build oneccl

package oneccl

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/environ"
	"github.com/goccl/goccl/internal/sycl"
)

// Backend is oneCCL.
func Backend() engine.Backend {
	b := engine.OneCCL
	b.Choose, b.Devices = choose, engine.Devices{Count: countDevices, Open: openDevice}
	b.Open = func() (*engine.Library, error) { return describe(open()) }
	return b
}

// choose is -1 where oneCCL runs on its CPU plugin.
func choose(want, local, locals int) (int, error) {
	setLocal(local, locals)
	why, err := noDevice()
	switch {
	case err != nil:
		return 0, err
	case why != nil && want >= 0:
		return 0, fmt.Errorf("oneccl: device %d was asked for, but there is none: %w", want, why)
	case why != nil:
		return -1, nil
	}
	return sycl.Choose(want, local, locals)
}

// noDevice is why oneCCL runs on its CPU plugin, nil where it runs on SYCL devices. What was asked for by name
// and cannot be had is an error instead.
func noDevice() (why, err error) {
	if plugin := os.Getenv("CCL_PLUGIN"); strings.Contains(strings.ToLower(filepath.Base(plugin)), "cpu") {
		return fmt.Errorf("CCL_PLUGIN is %s", plugin), nil
	}
	devices, err := sycl.Devices()
	switch {
	case err != nil && environ.XPULib.Get() != "":
		return nil, fmt.Errorf("oneccl: %w", err)
	case err != nil:
		return err, nil
	case len(devices) == 0:
		return fmt.Errorf("%s", sycl.Visible()), nil
	}
	return nil, nil
}
