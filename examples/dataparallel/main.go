// Command dataparallel trains a small network on generated data, with the samples
// spread over the ranks and the gradients averaged. The trained weights have the
// same bits on 1, 2, 4 or any number of ranks.
//
//	go build -o /tmp/dataparallel ./examples/dataparallel
//	go run ./bench launch -np 4 -- /tmp/dataparallel
package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/examples/internal/perceptron"
)

const (
	steps = 200
	rate  = 0.5

	// Each batch is cut into this many shards, however many ranks there are.
	shards = 4
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) (err error) {
	c, err := ccl.Join(ctx, &ccl.Options{RankOrder: true})
	if err != nil {
		return err
	}
	defer c.Finish(&err)
	first, last, weights, err := train(ctx, c)
	if err != nil {
		return err
	}
	if c.Rank() == 0 {
		fmt.Printf("%d ranks: loss %.6f before, %.6f after %d steps\n", c.Size(), first, last, steps)
		fmt.Printf("weights: sha256 %.16x: the same bits on 1, 2 and 4 ranks, since RankOrder adds the gradients of the %d shards in one order\n",
			fingerprint(weights), shards)
	}
	return nil
}

// train returns the loss before the first and after the last step, and the weights.
func train(ctx context.Context, c *ccl.Comm) (first, last float32, weights []float32, err error) {
	net, batch := perceptron.New(), perceptron.Samples(256)
	for step := range steps + 1 {
		grad, err := gradient(ctx, c, net, batch)
		if err != nil {
			return 0, 0, nil, err
		}
		last = grad[len(grad)-1] // the loss travels with the gradient
		if step == 0 {
			first = last
		}
		if step < steps {
			net.Descend(grad, rate)
		}
	}
	return first, last, net.Weights, nil
}

// gradient is the average gradient of the batch, with the loss as a last element:
// ((shard 0 + shard 1) + shard 2) + shard 3, added in this order whatever the number
// of ranks. Floating-point addition is not associative: if each rank added up its
// own shards first, the bits would depend on how many ranks there are. So each round
// takes one shard per rank, and rank 0 adds to its own what the rounds before have
// come to; RankOrder then adds rank after rank.
func gradient(ctx context.Context, c *ccl.Comm, net *perceptron.Network, batch []perceptron.Sample) ([]float32, error) {
	total := make([]float32, len(net.Weights)+1)
	part := make([]float32, len(total))
	per := len(batch) / shards
	for first := 0; first < shards; first += c.Size() {
		clear(part)
		if k := first + c.Rank(); k < shards {
			net.Backward(part, batch[k*per:(k+1)*per])
		}
		if c.Rank() == 0 {
			for i := range part {
				part[i] = total[i] + part[i]
			}
		}
		if err := ccl.AllReduce(ctx, c, total, part, ccl.Sum); err != nil {
			return nil, err
		}
	}
	for i := range total {
		total[i] /= float32(len(batch))
	}
	return total, nil
}

// fingerprint is a hash of the weights' bits.
func fingerprint(weights []float32) []byte {
	h := sha256.New()
	binary.Write(h, binary.LittleEndian, weights) // a hash takes all
	return h.Sum(nil)
}
