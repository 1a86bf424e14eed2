//go:build amd64 && !noasm && !race

package machine

import "encoding/binary"

const amd = "AuthenticAMD"

// maker is what CPUID says of the CPU's maker. An AMD CPU that does not claim a fast REP MOVSB counts as unknown.
func maker() string {
	const (
		erms = 1 << 9 // leaf 7, EBX: fast REP MOVSB
		fsrm = 1 << 4 // leaf 7, EDX: of few bytes, too
	)
	last, b, c, d := cpuid(0)
	var name []byte
	for _, part := range []uint32{b, d, c} {
		name = binary.LittleEndian.AppendUint32(name, part)
	}
	if string(name) != amd {
		return string(name)
	}
	if last < 7 {
		return ""
	}
	if _, b, _, d = cpuid(7); b&erms == 0 || d&fsrm == 0 {
		return ""
	}
	return string(name)
}

// cpuid is CPUID of a leaf, subleaf 0.
//
//go:noescape
func cpuid(leaf uint32) (a, b, c, d uint32)
