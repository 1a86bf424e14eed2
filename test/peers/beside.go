package main

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/goccl/goccl/test/internal/measure"
)

// beside runs a job of two ranks while another of the same kind makes calls of 4 KiB all the time, on the same cores.
func beside(args []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	command := func(args ...string) *exec.Cmd {
		c := measure.Job(self, 2, 0, args...)
		x := exec.CommandContext(ctx, c[0], c[1:]...)
		x.Cancel = func() error { return x.Process.Signal(syscall.SIGTERM) }
		x.WaitDelay = 5 * time.Second
		x.Stderr = os.Stderr
		return x
	}
	other := command("-op", "allreduce", "-min", "4096", "-max", "4096", "-repeats", "1000000")
	other.Stderr = nil // it is ended
	if err := other.Start(); err != nil {
		return err
	}
	time.Sleep(300 * time.Millisecond) // until it is at work
	job := command(args...)
	job.Stdout = os.Stdout
	err = job.Run()
	cancel()
	other.Wait()
	return err
}

// besideAnother is goccl with a second job on the machine.
var besideAnother = peer{name: "goccl", command: func(b *builder, _ int) []string {
	if runtime.NumCPU() > 2 {
		return nil // they would have cores of their own
	}
	return []string{b.self, "beside"}
}}
