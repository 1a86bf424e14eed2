//go:build !noasm

package reduce

import (
	"golang.org/x/sys/cpu"
	"golang.org/x/sys/unix"
)

func hasFP16() bool { return cpu.ARM64.HasASIMDHP }

// hasBF16 asks the kernel for FEAT_BF16, which golang.org/x/sys/cpu does not know.
func hasBF16() bool {
	const (
		hwcap2     = 26      // AT_HWCAP2
		hwcap2BF16 = 1 << 14 // HWCAP2_BF16
	)
	vector, err := unix.Auxv()
	if err != nil {
		return false
	}
	for _, entry := range vector {
		if entry[0] == hwcap2 {
			return entry[1]&hwcap2BF16 != 0
		}
	}
	return false
}
