//go:build !(nvml && linux && cgo)

package nvml

import "errors"

// Read is an error in a build without NVML.
func Read() (*Topology, error) {
	return nil, errors.New("nvml: this program was built without NVML; build it with -tags nvml, on Linux, with cgo")
}
