package main

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/goccl/goccl/test/internal/measure"
)

// What else runs on the cores while a peer is measured.
const (
	besideLoops = "loops" // a busy loop on each core
	besideJob   = "job"   // another job of the same peer, which makes calls of 4 KiB all the time
)

// besideTarget is how many milliseconds a loop takes then at least: many time slices of the kernel's.
const besideTarget = 100

// disturb starts what a case wants to run beside p, and returns what ends it.
func (b *builder) disturb(p peer, c *testCase) (end func(), err error) {
	var commands [][]string
	switch c.beside {
	case besideLoops:
		for core := range runtime.NumCPU() {
			commands = append(commands, []string{b.self, "loop", strconv.Itoa(core)})
		}
	case besideJob:
		commands = [][]string{append(p.command(b, c.ranks), "-op", "allreduce", "-min", "4096", "-max", "4096", "-factor",
			"4", "-repeats", "1000000",
			"-target_ms", "30", "-inplace", "0")}
	default:
		return func() {}, nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	var started []*exec.Cmd
	end = func() {
		cancel()
		for _, x := range started {
			_ = x.Wait() // it was ended
		}
	}
	for _, command := range commands {
		x := exec.CommandContext(ctx, command[0], command[1:]...)
		x.Env = append(append(os.Environ(), quietEnv...), p.env...)
		x.Cancel = func() error { return x.Process.Signal(syscall.SIGTERM) } // launchers end their ranks then
		x.WaitDelay = 5 * time.Second
		if err := x.Start(); err != nil {
			end()
			return nil, err
		}
		started = append(started, x)
	}
	time.Sleep(300 * time.Millisecond) // until they are at work
	return end, nil
}

// loop keeps a core busy, as long as the process that started it lives.
func loop(args []string) error {
	core, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	measure.Bind(core, runtime.NumCPU())
	runtime.LockOSThread()
	sum := 0
	for parent := os.Getppid(); os.Getppid() == parent; {
		for i := range 10_000_000 {
			sum += i * sum
		}
	}
	runtime.KeepAlive(sum)
	return nil
}
