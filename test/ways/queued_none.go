//go:build !nccl || !cgo || !linux

package main

import (
	"context"
	"errors"
)

func queued(context.Context, string) error {
	return errors.New("the way of a queued call over NCCL: build with -tags nccl")
}
