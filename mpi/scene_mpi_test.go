//go:build mpi && cgo

package mpi_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/mpi"
)

// scenes are programs of their own, for what a process can do once: each is its exit status. Those
// that end by an error print it.
var scenes = map[string]func() int{
	"init": inMPI(mpi.Finalize),
	"before": func() int {
		fmt.Println(mpi.Barrier(context.Background(), mpi.World()))
		_, err := mpi.World().Dup()
		fmt.Println(err)
		fmt.Println(mpi.Finalize())
		fmt.Println(mpi.World().Rank(), mpi.World().Size(), mpi.Wtime())
		return 0
	},
	"after": inMPI(func() error {
		if err := mpi.Finalize(); err != nil {
			return err
		}
		fmt.Println(mpi.Barrier(context.Background(), mpi.World()))
		fmt.Println(mpi.Init())
		fmt.Println(mpi.Finalize())
		_, err := mpi.Use()
		fmt.Println(err)
		return nil
	}),
	// abort: rank 0 ends the job while the others wait in MPI.
	"abort": inMPI(func() error {
		if mpi.World().Rank() == 0 {
			return mpi.World().Abort(7)
		}
		return mpi.Barrier(context.Background(), mpi.World())
	}),
	// sleeps: no rank does anything.
	"sleeps": inMPI(func() error {
		time.Sleep(time.Hour)
		return nil
	}),
	// lostfile: rank 0 waits for the others in a collective call on a file until a deadline, and they do not come.
	"lostfile": inMPI(func() error {
		ctx, c := context.Background(), mpi.World()
		dir, err := os.MkdirTemp("", "goccl-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		names, err := c.AllGather(ctx, []byte(dir))
		if err == nil {
			err = os.Chdir(string(names[0]))
		}
		if err != nil {
			return err
		}
		f, err := mpi.OpenFile(ctx, c, "file", mpi.ReadWrite|mpi.Create)
		if err != nil {
			return err
		}
		if c.Rank() > 0 {
			time.Sleep(time.Hour) // until the job is ended
		}
		short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		_, err = mpi.ReadAtAll(short, f, []byte{0}, 0)
		fmt.Println(err)
		_, err = mpi.ReadAt(ctx, f, []byte{0}, 0)
		fmt.Println(err)
		fmt.Println(f.Close())
		os.RemoveAll(dir)
		return c.Abort(3)
	}),
	// freed: the same by a communicator that was freed.
	"freed": inMPI(func() error {
		c, err := mpi.World().Dup()
		if err == nil {
			err = c.Free()
		}
		if err != nil {
			return err
		}
		if mpi.World().Rank() == 0 {
			return c.Abort(7)
		}
		return mpi.Barrier(context.Background(), mpi.World())
	}),
	// killed: the last rank dies while the others wait in MPI.
	"killed": inMPI(func() error {
		if mpi.World().Rank() == mpi.World().Size()-1 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		return mpi.Barrier(context.Background(), mpi.World())
	}),
	// lasts: the ranks end one by one, and rank 0 has something left to do after MPI, when the others have gone.
	"lasts": inMPI(func() error {
		c := mpi.World()
		pids := make([]int, c.Size())
		if err := mpi.AllGather(context.Background(), c, pids, []int{os.Getpid()}); err != nil {
			return err
		}
		if err := mpi.Finalize(); err != nil {
			return err
		}
		for _, pid := range pids[c.Rank()+1:] {
			for alive(pid) {
				time.Sleep(time.Millisecond)
			}
		}
		if c.Rank() == 0 {
			fmt.Println("the last one turns off the light")
		}
		return nil
	}),
	// stuck: rank 0 makes a call of ccl's engine mpi to which the last rank does not come.
	"stuck": func() int {
		ctx := context.Background()
		c, err := ccl.Join(ctx, &ccl.Options{Backend: "mpi", Timeout: 500 * time.Millisecond})
		if err != nil {
			return say(err)
		}
		pids := make([]int, c.Size())
		if err := ccl.AllGather(ctx, c, pids, []int{os.Getpid()}); err != nil {
			return say(err)
		}
		if c.Rank() == 0 {
			return say(ccl.Barrier(ctx, c)) // never returns
		}
		// The launcher ends the ranks that are left. One that ended by itself, with 0, would hide the other's status:
		// Hydra reports that of the rank whose end it sees first.
		time.Sleep(30 * time.Second)
		fmt.Printf("process %d has ended, and the launcher left its peer alone\n", pids[0])
		return 4
	},
	"group":    failedGroup,
	"overhead": inMPI(overhead),
}

// failedGroup has rank 0 receive two messages as a group, of which the first is longer than its buffer. The second,
// which waits for its receiver to look after it, comes when the group has failed, its memory was dropped, and other
// memory was taken, which must stay as it is.
func failedGroup() int {
	ctx := context.Background()
	if _, err := mpi.Use(); err != nil { // keeps MPI beyond the Comm
		return say(err)
	}
	c, err := ccl.Join(ctx, &ccl.Options{Backend: "mpi"})
	if err != nil {
		return say(err)
	}
	pids := make([]int, c.Size())
	if err := mpi.AllGather(ctx, mpi.World(), pids, []int{os.Getpid()}); err != nil {
		return say(err)
	}
	const long = 4 << 20
	if c.Rank() != 0 {
		x, y := make([]int32, 8), make([]int32, long)
		for i := range y {
			y[i] = 0x5a5a5a5a
		}
		_ = c.On(nil).Group(func(g ccl.Queue) error {
			g.Send(ccl.BufOf(x), 0)
			g.Send(ccl.BufOf(y), 0)
			return nil
		}).Wait(ctx)
		_ = mpi.Barrier(ctx, mpi.World())
		for alive(pids[0]) { // the launcher ends it where this one ends without MPI_Finalize
			time.Sleep(time.Millisecond)
		}
		os.Exit(0)
	}
	group := func() error {
		a, b := make([]int32, 4), make([]int32, long)
		return c.On(nil).Group(func(g ccl.Queue) error {
			g.Recv(ccl.BufOf(a), 1)
			g.Recv(ccl.BufOf(b), 1)
			return nil
		}).Wait(ctx)
	}
	if err := group(); err == nil {
		fmt.Println("the group has not failed")
		_ = mpi.Barrier(ctx, mpi.World()) // not every launcher ends the other for one that ends with 0
		os.Exit(0)
	}
	c.Close()
	c = nil
	runtime.GC()
	runtime.GC()
	var others [][]int32
	for range 4 {
		others = append(others, make([]int32, long))
	}
	_ = mpi.Barrier(ctx, mpi.World())
	for _, x := range others {
		for i := range x {
			if x[i] != 0 {
				fmt.Println("another slice was overwritten")
				os.Exit(1)
			}
		}
	}
	fmt.Println("no other slice was overwritten")
	os.Exit(0)
	return 0
}

// alive reports whether the process pid has not ended yet.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(b), ") ") // after the name in parentheses
	return err == nil && !strings.HasPrefix(state, "Z")
}

// inMPI is a scene that begins with Init.
func inMPI(scene func() error) func() int {
	return func() int {
		err := mpi.Init()
		if err == nil {
			err = scene()
		}
		return say(err)
	}
}

func say(err error) int {
	if err == nil {
		return 0
	}
	fmt.Println(err)
	return 3
}

// overhead prints the nanoseconds of an AllReduce of 8 bytes on Self, run after run.
func overhead() error {
	ctx, c := context.Background(), mpi.Self()
	dst, src := make([]float64, 1), make([]float64, 1)
	const calls = 200_000
	for range 5 {
		start := time.Now()
		for range calls {
			if err := mpi.AllReduce(ctx, c, dst, src, mpi.Sum); err != nil {
				return err
			}
		}
		fmt.Printf("%.1f\n", float64(time.Since(start).Nanoseconds())/calls)
	}
	return mpi.Finalize()
}
