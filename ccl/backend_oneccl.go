//go:build oneccl

package ccl

import "github.com/goccl/goccl/ccl/internal/native/oneccl"

func init() { backends["oneccl"] = oneccl.Backend() }
