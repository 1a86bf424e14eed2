//go:build !linux

package main

import (
	"errors"

	"github.com/goccl/goccl/internal/cores"
)

// errNoPin says that threads cannot be bound to cores here.
var errNoPin = errors.New("threads cannot be bound to cores here")

func usable([]cores.Processor) []cores.Processor { return nil }

func pingPong(a, b, rounds int) (float64, error) { return 0, errNoPin }

func further(a, b, rounds int) (float64, error) { return 0, errNoPin }

func sharing(cpus []int, rounds int) (float64, error) { return 0, errNoPin }
