//go:build (nccl || rccl) && cgo && linux

package onegpu

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	gpu "github.com/goccl/goccl/internal/gpu/gputest"
	"github.com/goccl/goccl/test/fake"
	"github.com/goccl/goccl/test/program"
)

// A child is this test binary as one rank, told by these variables what to do and on which backend.
const (
	caseVariable    = "ONEGPU_CASE"
	backendVariable = "ONEGPU_BACKEND"
	checkVariable   = "ONEGPU_CHECK"
)

// The variables of NCCL that let two ranks share a GPU.
const (
	multiRank = "NCCL_MULTI_RANK_GPU_ENABLE"
	hostID    = "NCCL_HOSTID"
)

// long is how long a case may take; what should be over in milliseconds is at a hundred times that.
const long = 2 * time.Minute

var runtimes = map[string]*gpu.Runtime{"nccl": gpu.CUDA, "rccl": gpu.HIP}

func real() bool { return os.Getenv("GOCCL_REAL") == "1" }

func TestMain(m *testing.M) {
	if !real() {
		path, err := fake.Path()
		if err != nil {
			fmt.Fprintln(os.Stderr, "the fake library:", err)
			os.Exit(1)
		}
		for _, v := range fake.Env(path) {
			name, value, _ := bytes.Cut([]byte(v), []byte("="))
			os.Setenv(string(name), string(value))
		}
		os.Setenv("FAKE_DEVICES", "1")
	}
	if do := os.Getenv(caseVariable); do != "" {
		os.Exit(child(do))
	}
	os.Exit(m.Run())
}

// child is one rank: it prints what its case gave, on a line of its own.
func child(do string) int {
	me := os.Getenv("GOCCL_RANK")
	if os.Getenv(multiRank) != "1" && os.Getenv(hostID) == "" {
		os.Setenv(hostID, "goccl-rank-"+me) // before the library is opened
	}
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	r, err := join(ctx)
	var said string
	if err == nil {
		said, err = cases[do](r, ctx)
	}
	if err != nil {
		fmt.Printf("rank %s: failed: %v\n", me, err)
		return 1
	}
	fmt.Printf("rank %s: %s\n", me, said)
	return 0
}

// backends runs f with each of the two that this build has; with the real library, with NCCL alone.
func backends(t *testing.T, f func(t *testing.T, backend string)) {
	for _, name := range []string{"nccl", "rccl"} {
		if slices.Contains(ccl.Backends(), name) && !(real() && name == "rccl") {
			t.Run(name, func(t *testing.T) { f(t, name) })
		}
	}
}

// ranks runs a case as two processes on the one device, and is what they print.
func ranks(t *testing.T, backend, do string, env ...string) string {
	t.Helper()
	text, _ := program.Itself(t, long, boot.Command{N: 2, KeepGoing: true}, "", append(env, caseVariable+"="+do, backendVariable+"="+backend)...)
	t.Log(text)
	return text
}
