//go:build !amd64 || noasm || race

package machine

// maker is "": nothing is known of the CPU, or the assembly that the numbers were measured with is not in use.
func maker() string { return "" }
