package boot_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	"github.com/goccl/goccl/ccl/boot"
)

// Ranks that are goroutines meet by Local, and exchange one value each.
func Example() {
	ctx := context.Background()
	var wg sync.WaitGroup
	for _, b := range boot.Local(3) {
		wg.Go(func() {
			defer b.Close()
			all, err := b.AllGather(ctx, fmt.Appendf(nil, "rank %d is here", b.Rank()))
			if err != nil {
				fmt.Println(err)
			} else if b.Rank() == 0 {
				fmt.Printf("%s\n", all)
			}
		})
	}
	wg.Wait()
	// Output: [rank 0 is here rank 1 is here rank 2 is here]
}

// Local makes ranks of one process, which may act as ranks of several hosts: here ranks 0 and 1 share a host.
func ExampleLocal() {
	for _, b := range boot.Local(3, "a", "a", "b") {
		defer b.Close()
		fmt.Println("rank", b.Rank(), "of", b.Size(), "on host", b.HostID())
	}
	// Output:
	// rank 0 of 3 on host a
	// rank 1 of 3 on host a
	// rank 2 of 3 on host b
}

// A process that a launcher has started learns from the environment which rank it is.
func ExampleDetect() {
	slurm := map[string]string{"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "8",
		"SLURM_LOCALID": "1", "SLURM_NODEID": "1", "SLURM_STEP_NUM_NODES": "4", "SLURM_STEP_TASKS_PER_NODE": "2(x4)"}
	l, err := boot.Detect(func(name string) string { return slurm[name] })
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: rank %d of %d, on host %d of %d\n", l.Launcher, l.Rank, l.Size, l.Node, l.Nodes)
	// Output: slurm: rank 3 of 8, on host 1 of 4
}

// Under no launcher a job has one rank.
func ExampleEnv() {
	os.Setenv("GOCCL_LAUNCHER", "none") // only here, whatever runs this example
	defer os.Unsetenv("GOCCL_LAUNCHER")
	b, err := boot.Env(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	fmt.Println("rank", b.Rank(), "of", b.Size())
	// Output: rank 0 of 1
}

// Ranks that share a directory need nothing else to meet. Here they are goroutines, in a job they are processes.
func ExampleFile() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for rank := range 2 {
		wg.Go(func() {
			b, err := boot.File(ctx, dir, "example", rank, 2)
			if err != nil {
				fmt.Println(err)
				return
			}
			defer b.Close()
			if all, err := b.AllGather(ctx, []byte{byte(rank)}); err != nil || rank == 0 {
				fmt.Println(all, err)
			}
		})
	}
	wg.Wait()
	// Output: [[0] [1]] <nil>
}

// A bootstrap waits for all ranks, for as long as ctx allows, and says which have not come.
func ExampleTCP() {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err := boot.TCP(ctx, "127.0.0.1:14511", 0, 2, nil) // rank 0 of two; nobody starts the other
	var e *boot.Error
	if errors.As(err, &e) {
		fmt.Println(errors.Is(err, boot.Timeout), e.Missing)
	}
	// Output: true [1]
}

// Spawn starts ranks on this host, waits for them, and says which failed first.
func ExampleSpawn() {
	err := boot.Spawn(context.Background(), boot.Command{
		N:         2,
		Path:      "sh",
		Args:      []string{"-c", `test $GOCCL_RANK = 0 && echo one of $GOCCL_SIZE is well || exit 3`},
		Stdout:    os.Stdout,
		Prefix:    true, // each line says whose it is
		KeepGoing: true, // a rank that fails does not end the others
	})
	var e *boot.ExitError
	if errors.As(err, &e) {
		fmt.Println("rank", e.Rank, "ended with", e.Code)
	}
	// Output:
	// [0] one of 2 is well
	// rank 1 ended with 3
}
