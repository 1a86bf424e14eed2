package sycl

import (
	"fmt"
	"os"
	"strings"
)

// hiding are the variables that hide devices, or say what counts as one.
var hiding = []string{"ONEAPI_DEVICE_SELECTOR", "ZE_AFFINITY_MASK", "ZE_FLAT_DEVICE_HIERARCHY"}

// Visible says which devices there are, and what may hide others, in words.
func Visible() string {
	var b strings.Builder
	devices, err := Devices()
	switch {
	case err != nil:
		return err.Error()
	case len(devices) == 0:
		b.WriteString("SYCL sees no GPU here")
	case len(devices) == 1:
		b.WriteString("there is 1 SYCL device: ")
	default:
		fmt.Fprintf(&b, "there are %d SYCL devices: ", len(devices))
	}
	for i, d := range devices {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%d %s", i, d.Name)
	}
	set := false
	for _, name := range hiding {
		if v := os.Getenv(name); v != "" {
			fmt.Fprintf(&b, "; %s=%s", name, v)
			set = true
		}
	}
	if len(devices) == 0 && !set {
		b.WriteString("; ONEAPI_DEVICE_SELECTOR=opencl:cpu lets its CPU device be used")
	}
	return b.String()
}

// Choose is the device for the rank that is the local-th of locals on its host: want, where that is not negative,
// else device local of those that are visible. Two ranks get one device only if they ask for it.
func Choose(want, local, locals int) (int, error) {
	devices, err := Devices()
	switch {
	case err != nil:
		return 0, err
	case len(devices) == 0:
		return 0, fmt.Errorf("xpu: there is no device to run on: %s", Visible())
	case want >= len(devices):
		return 0, fmt.Errorf("xpu: no device %d: %s", want, Visible())
	case want >= 0:
		return want, nil
	case local < 0 || local >= locals:
		return 0, fmt.Errorf("xpu: local rank %d of %d: a local rank is at least 0 and less than the number of local ranks",
			local, locals)
	case local < len(devices):
		return local, nil
	case len(devices) == 1 && (chosen() || !devices[0].GPU): // a CPU is for all
		return 0, nil
	}
	return 0, fmt.Errorf("xpu: local rank %d of %d has no device of its own: %s. Start at most one rank per device; to share one on purpose, name it (Options.Device, or -device in bench)",
		local, locals, Visible())
}

// chosen reports whether a launcher has given this process one device of its own, as ALCF's wrappers do with
// ZE_AFFINITY_MASK: then every rank's is device 0.
func chosen() bool {
	v := strings.TrimSpace(os.Getenv("ZE_AFFINITY_MASK"))
	return v != "" && !strings.Contains(v, ",")
}
