//go:build !fault

package inject

// On says whether this build can inject faults.
const On = false

// At passes a named point.
func At(string) {}

// Cut reports whether the connection at a named point is to be closed.
func Cut(string) bool { return false }

// Bytes is b as it leaves a named point.
func Bytes(_ string, b []byte) []byte { return b }

// Wrong reports whether the mistake of that name is planted.
func Wrong(string) bool { return false }

// Yield has other goroutines go first, in a mistake that is planted.
func Yield() {}

// From is where the counters of a named point begin.
func From(string) uint32 { return 0 }
