package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"time"
	"unsafe"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/elastic"
)

// model is what a peer trains: noise, of which only the bits matter.
type model struct {
	params, change, mean []float32
	noise                uint64
}

// train is what a program writes beside its model to train under churn.
func train(ctx context.Context, m *model, work time.Duration, o *ccl.Options) error {
	return elastic.Run(ctx, &elastic.Job{
		State:   []ccl.Buf{ccl.BufOf(m.params)},
		Most:    16,
		Options: o,
		Local: func(_ context.Context, round int) error {
			m.inner(work)
			say("worked", round)
			return nil
		},
		Share: func(ctx context.Context, r *elastic.Round) error {
			if err := elastic.Mean(ctx, r, m.mean, m.change); err != nil {
				return err
			}
			for i, d := range m.mean {
				m.params[i] -= .7 * d
			}
			say("round", r.N, r.Comm.Size(), r.Comm.Rank(), fmt.Sprintf("%x", m.hash()))
			return nil
		},
	})
}

// inner is the local work of a round.
func (m *model) inner(work time.Duration) {
	time.Sleep(work)
	for i := range m.change {
		m.noise = m.noise*6364136223846793005 + 1442695040888963407
		m.change[i] = float32(int32(m.noise>>32)) * 1e-9
	}
}

func (m *model) hash() uint64 {
	h := fnv.New64a()
	h.Write(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(m.params))), 4*len(m.params)))
	return h.Sum64()
}

// say writes a line for the driver: when, and what.
func say(words ...any) { fmt.Println(append([]any{time.Now().UnixNano()}, words...)...) }

func runPeer(n int, work, silent time.Duration) error {
	m := &model{make([]float32, n), make([]float32, n), make([]float32, n), uint64(os.Getpid())}
	return train(context.Background(), m, work, &ccl.Options{PeerTimeout: silent})
}
