//go:build !nocheck

package call

// Checked says that calls are checked and compared. The build tag nocheck leaves that out, to
// measure what it costs; it is for nothing else: such a build does not notice mismatched calls.
const Checked = true
