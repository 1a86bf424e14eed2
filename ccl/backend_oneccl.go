//go:build oneccl

package ccl

import (
	"github.com/goccl/goccl/ccl/internal/native/oneccl"
	"github.com/goccl/goccl/internal/engine"
)

func init() {
	b := oneccl.Backend()
	b.Share = func() (letGo func(left bool) error, err error) { return shareMPI() }
	engine.Register(b)
}
