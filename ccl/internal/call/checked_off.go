//go:build nocheck

package call

// Checked says that calls are neither checked nor compared: see checked.go.
const Checked = false
