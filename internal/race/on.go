//go:build race

package race

// Enabled is set in a binary with the race detector.
const Enabled = true
