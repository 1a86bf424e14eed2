//go:build !race

// Package race says whether the race detector is compiled in: with it code allocates, and takes its time.
package race

// Enabled is set in a binary with the race detector.
const Enabled = false
