package measure

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

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
	return boot.Spawn(context.Background(), boot.Command{N: ranks, Path: self, Args: append([]string{"measure"}, args[2:]...), Hosts: hosts,
		Stdout: os.Stdout, Stderr: os.Stderr})
}

// Bind keeps this process on the core of its place on the host, as the MPIs do, where there is one for each.
func Bind(local, locals int) {
	n := runtime.NumCPU()
	if locals > n {
		return
	}
	var set unix.CPUSet
	set.Set(local)
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, t := range tasks { // threads made later inherit it
		if id, err := strconv.Atoi(t.Name()); err == nil {
			_ = unix.SchedSetaffinity(id, &set)
		}
	}
}

// inOneProcess runs f as n ranks of this process.
func inOneProcess(n int, f func(*ccl.Comm) error) error {
	boots := boot.Local(n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() {
			c, err := ccl.NewComm(context.Background(), boots[r], nil)
			if err == nil {
				err = f(c)
				c.Close()
			}
			errs[r] = err
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
