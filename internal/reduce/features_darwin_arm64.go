//go:build !noasm

package reduce

import "golang.org/x/sys/unix"

// golang.org/x/sys/cpu does not ask macOS.

func hasFP16() bool { return has("hw.optional.arm.FEAT_FP16") }
func hasBF16() bool { return has("hw.optional.arm.FEAT_BF16") }

func has(name string) bool {
	v, err := unix.SysctlUint32(name)
	return err == nil && v != 0
}
