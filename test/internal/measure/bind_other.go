//go:build !linux

package measure

import (
	"errors"

	"github.com/goccl/goccl/ccl"
)

// The peers are measured on Linux.

func job([]string) error { return errors.ErrUnsupported }

// Bind does nothing here.
func Bind(int, int) {}

func inOneProcess(int, func(*ccl.Comm) error) error { return errors.ErrUnsupported }
