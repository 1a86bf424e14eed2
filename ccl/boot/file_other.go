//go:build !unix

package boot

import "os"

// private trusts the directory: its access list says who may write there.
func private(*os.File) error { return nil }
