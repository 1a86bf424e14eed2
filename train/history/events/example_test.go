package events_test

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/goccl/goccl/train/history/events"
)

// A directory that "tensorboard --logdir" shows.
func ExampleCreate() {
	dir, err := os.MkdirTemp("", "runs")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	f, err := events.Create(filepath.Join(dir, "first"))
	if err != nil {
		fmt.Println(err)
		return
	}
	w := events.New(f) // or history.Options{Events: f}
	for step := 1; step <= 3; step++ {
		if err := w.Scalars(time.Now(), step, events.Scalar{Tag: "loss", Value: 3 / float64(step)}); err != nil {
			fmt.Println(err)
		}
	}
	info, err := f.Stat()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(info.Size(), "bytes", f.Close())
	// Output: 166 bytes <nil>
}
