//go:build !linux && !darwin && !noasm

package reduce

import "golang.org/x/sys/cpu"

func hasFP16() bool { return cpu.ARM64.HasASIMDHP }
func hasBF16() bool { return false }
