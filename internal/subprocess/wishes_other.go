//go:build !unix

package subprocess

import "os"

// Wishes are none here.
var Wishes []os.Signal

// PassOn has nothing to do here.
func PassOn(os.Signal, func(os.Signal)) {}
