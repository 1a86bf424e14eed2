package gpu

import (
	"os"
	"strings"
)

// Choose is the device for the rank that is the local-th of locals on its host: want, where that is not negative,
// else device local of those that are visible. Two ranks get one device only if they ask for it.
func (r *Runtime) Choose(want, local, locals int) (int, error) {
	if want >= 0 {
		return want, r.Has(want)
	}
	count, err := r.Count()
	switch {
	case err != nil:
		return 0, err
	case count == 0:
		return 0, r.Errorf("%s; there is no device to run on", r.visibleDevices(0))
	case local < 0 || local >= locals:
		return 0, r.Errorf("local rank %d of %d: a local rank is at least 0 and less than the number of local ranks", local,
			locals)
	case local < count:
		return local, nil
	case count == 1 && r.chosen():
		return 0, nil
	}
	return 0, r.Errorf("local rank %d of %d has no device of its own: %s. Start at most one rank per device; to share one on purpose, name it (Options.Device, or -device in bench)",
		local, locals, r.visibleDevices(count))
}

// chosen reports whether a launcher has given this process one device of its own, as Slurm does with
// --gpus-per-task=1: then every rank's is device 0.
func (r *Runtime) chosen() bool {
	for _, name := range r.visible {
		if v := strings.Trim(os.Getenv(name), ", "); v != "" && !strings.Contains(v, ",") {
			return true
		}
	}
	return false
}
