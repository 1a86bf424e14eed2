// Command recover trains a small network on generated data, the samples spread over
// the ranks, and goes on when ranks are lost. Where a spare waits it takes the place
// of the lost rank; otherwise those that are left agree on who they are, and share
// the samples anew. In both cases they agree on the state to go on from.
//
//	go build -o /tmp/recover ./examples/recover
//	go run ./bench launch -np 4 -keep-going -- /tmp/recover -kill 2 -at 50
//	go run ./bench launch -np 4 -spares 1 -- /tmp/recover -kill 2 -at 50
//
// Here rank 2 ends itself as the kernel would, in step 50. In the second job a fifth
// rank waits in ccl.Join until then, and the loss at the end is that of a run in which
// nobody was lost.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/examples/internal/perceptron"
)

const (
	steps = 200
	rate  = 0.5
)

func main() {
	victim := flag.Int("kill", -1, "the rank that is to be lost")
	at := flag.Int("at", 50, "the step in which it is lost")
	flag.Parse()
	ctx := context.Background()
	c, err := ccl.Join(ctx, nil)
	if errors.Is(err, ccl.ErrUnused) { // a spare, and nobody was lost
		return
	}
	if err != nil {
		log.Fatal(err)
	}
	me := c.Rank()
	dies := me == *victim && !slices.Contains(c.Fresh(), me) // not the spare in its place
	t := newTraining(c)
	t.before = func(step int) {
		if dies && step == *at {
			p, _ := os.FindProcess(os.Getpid())
			p.Kill()
			select {}
		}
	}
	t.say = func(format string, args ...any) {
		if t.comm.Rank() == 0 {
			fmt.Printf(format+"\n", args...)
		}
	}
	if err := t.run(ctx); err != nil {
		log.Fatal(err)
	}
	t.say("%d ranks: loss %.4f after %d steps", t.comm.Size(), t.loss, steps)
	t.comm.Close()
}

// training is the state of one rank. What the ranks must agree on to go on is the
// network's weights and the number of the step, which change together and only after
// a step has succeeded.
type training struct {
	comm   *ccl.Comm
	net    *perceptron.Network
	batch  []perceptron.Sample
	step   int
	loss   float32
	before func(step int)
	say    func(format string, args ...any)
}

func newTraining(c *ccl.Comm) *training {
	return &training{comm: c, net: perceptron.New(), batch: perceptron.Samples(240), before: func(int) {},
		say: func(string, ...any) {}}
}

// run trains to the end, whatever ranks are lost.
func (t *training) run(ctx context.Context) error {
	var err error
	if len(t.comm.Fresh()) > 0 { // this rank is in the place of one that is lost, or another is
		err = t.catchUp(ctx, nil)
	}
	for {
		for errors.Is(err, ccl.ErrRankLost) {
			c, failed := replace(ctx, t.comm)
			if failed != nil { // as on a rank that the others have given up: it is not to try again
				return failed
			}
			t.comm.Close()
			t.comm = c
			err = t.catchUp(ctx, err)
		}
		if err != nil || t.step == steps {
			return err
		}
		t.before(t.step)
		err = t.advance(ctx)
	}
}

// replace returns a Comm in which spares have the places of the ranks that c has lost; where there
// are too few of them, one of the ranks that are left. All ranks take the same way, since Replace
// fails on all of them alike.
func replace(ctx context.Context, c *ccl.Comm) (*ccl.Comm, error) {
	next, err := c.Replace(ctx)
	var e *ccl.Error
	if errors.As(err, &e) && (e.Code == ccl.ErrUnsupported || e.Code == ccl.ErrRankLost && len(e.Missing) > 0) {
		return c.Shrink(ctx)
	}
	return next, err
}

// advance makes one step: this rank's share of the samples, the sum of all gradients,
// and only then new weights. Any number of ranks comes to nearly the same sum.
func (t *training) advance(ctx context.Context) error {
	n, r := t.comm.Size(), t.comm.Rank()
	grad := make([]float32, len(t.net.Weights)+1)
	t.net.Backward(grad, t.batch[r*len(t.batch)/n:(r+1)*len(t.batch)/n])
	if err := ccl.AllReduce(ctx, t.comm, grad, grad, ccl.Sum); err != nil {
		return err
	}
	for i := range grad {
		grad[i] /= float32(len(t.batch))
	}
	t.loss = grad[len(grad)-1] // the loss travels with the gradient
	t.net.Descend(grad, rate)
	t.step++
	return nil
}

// catchUp brings all ranks to the state of the one that is furthest: a rank may have had
// the last gradient when another was lost, and the others not. A rank that comes in the
// place of another is at step 0.
func (t *training) catchUp(ctx context.Context, lost error) error {
	c := t.comm
	at := make([]int, c.Size())
	if err := ccl.AllGather(ctx, c, at, []int{t.step}); err != nil {
		return err
	}
	root := 0
	for r, step := range at {
		if step > at[root] {
			root = r
		}
	}
	// Into memory beside the weights: a rank that is lost now must not leave half of them.
	weights := append([]float32{t.loss}, t.net.Weights...)
	if err := ccl.Broadcast(ctx, c, weights, root); err != nil {
		return err
	}
	t.loss, t.net.Weights, t.step = weights[0], weights[1:], at[root]
	came := c.Fresh()
	c.Restored()
	if lost == nil {
		lost = errors.New("a spare is in the place of a rank that was lost")
	}
	t.say("step %d: %v\ngoing on with %d ranks", t.step, lost, c.Size())
	if len(came) > 0 {
		t.say("replaced by spares: %v", came)
	}
	return nil
}
