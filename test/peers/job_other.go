//go:build !linux

package main

import (
	"errors"

	"github.com/goccl/goccl/ccl"
)

// The peers are measured on Linux.

func job([]string) error { return errors.ErrUnsupported }

func bind(int, int) {}

func inOneProcess(int, func(*ccl.Comm) error) error { return errors.ErrUnsupported }
