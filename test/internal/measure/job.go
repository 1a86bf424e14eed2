package measure

import (
	"context"
	"errors"
	"os"
	"strconv"
	"sync"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

// job runs this program as so many ranks on this host, or as on so many hosts, over TCP.
func job(args []string) error {
	ranks, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	hosts, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	return boot.Spawn(context.Background(),
		boot.Command{N: ranks, Path: self, Args: append([]string{"measure"}, args[2:]...), Hosts: hosts,
			Stdout: os.Stdout, Stderr: os.Stderr})
}

// inOneProcess runs f as n ranks of this process.
func inOneProcess(n int, f func(*ccl.Comm) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for r, b := range boot.Local(n) {
		wg.Go(func() {
			c, err := ccl.NewComm(context.Background(), b, nil)
			if err == nil {
				err = errors.Join(f(c), c.Close())
			}
			errs[r] = err
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
