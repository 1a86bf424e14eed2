// Package job is what the programs gpt and gpt2 do beside training: they start ranks, end on a
// signal, go on without ranks that are lost, and keep checkpoints.
package job

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/internal/files"
)

// doneEnv names the file that Done makes.
const doneEnv = "EXAMPLE_JOB_DONE"

// Spawn runs this program as n ranks, with these variables, and returns its exit code. Where ranks
// may be lost, that is 0 if one of them has called Done.
func Spawn(n int, lossy bool, env ...string) (code int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 1, err
	}
	// boot.Spawn passes on what comes while there are ranks. What comes when they have ended must not hide how they did.
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		if !signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	command := boot.Command{N: n, Path: self, Args: os.Args[1:], Stdout: os.Stdout, Stderr: os.Stderr, Grace: time.Minute,
		KeepGoing: lossy, Env: append(os.Environ(), env...)}
	done := ""
	if lossy {
		dir, err := os.MkdirTemp("", "job")
		if err != nil {
			return 1, err
		}
		defer os.RemoveAll(dir)
		done = filepath.Join(dir, "done")
		command.Env = append(command.Env, doneEnv+"="+done)
	}
	err = boot.Spawn(context.Background(), command)
	if _, missing := os.Stat(done); lossy && missing == nil { // the others went on without the ranks that failed
		return 0, nil
	}
	var exit *boot.ExitError
	switch {
	case errors.As(err, &exit) && exit.Code > 0:
		return exit.Code, nil
	case err != nil:
		return 1, err
	}
	return 0, nil
}

// Done says that all work is done, whatever becomes of the ranks.
func Done() error {
	if file := os.Getenv(doneEnv); file != "" {
		return files.Write(file, nil)
	}
	return nil
}

// Signals returns a channel that has the first signal, after which the program is to end in good
// order. A second interrupt ends it at once.
func Signals() <-chan os.Signal {
	signals, stop := make(chan os.Signal, 2), make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		obey(signals, stop)
		os.Exit(130)
	}()
	return stop
}

// obey passes on the first signal, and returns on a second interrupt. What comes within a second of
// the first one is that one again: timeout signals a program and its group. A second SIGTERM is
// never more than the first: batch systems repeat it, and have SIGKILL.
func obey(signals <-chan os.Signal, stop chan<- os.Signal) {
	first := <-signals
	began := time.Now()
	stop <- first
	for s := range signals {
		if s == os.Interrupt && time.Since(began) > time.Second {
			return
		}
	}
}
