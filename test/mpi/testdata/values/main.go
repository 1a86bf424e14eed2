// Command values moves values that are no slices from rank to rank by the engine mpi, and checks them.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"reflect"

	"github.com/goccl/goccl/ccl"
)

// value is what a rank has.
type value struct {
	Rank  int
	Names map[string]float64
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) (err error) {
	c, err := ccl.Join(ctx, &ccl.Options{Backend: "mpi"})
	if err != nil {
		return err
	}
	defer c.Finish(&err)
	of := func(rank int) value { return value{rank, map[string]float64{fmt.Sprint(rank): 1}} }
	n, me := c.Size(), c.Rank()
	var want []value
	for r := range n {
		want = append(want, of(r))
	}

	one, err := ccl.BroadcastValue(ctx, c, of(me), n-1)
	if err != nil {
		return err
	}
	all, err := ccl.AllGatherValues(ctx, c, of(me))
	if err != nil {
		return err
	}
	list, err := ccl.GatherValues(ctx, c, of(me), n-1)
	if err != nil {
		return err
	}
	own, err := ccl.ScatterValues(ctx, c, all, 0)
	if err != nil {
		return err
	}
	sent := of(0)
	switch me {
	case 0:
		err = ccl.SendValue(ctx, c, sent, n-1)
	case n - 1:
		sent, err = ccl.RecvValue[value](ctx, c, 0)
	}
	if err != nil {
		return err
	}
	if me < n-1 {
		list = want
	}
	if got, want := []any{one, all, list, own, sent},
		[]any{of(n - 1), want, want, of(me), of(0)}; !reflect.DeepEqual(want, got) {
		return fmt.Errorf("got %v, want %v", got, want)
	}
	if _, err := ccl.BroadcastValue[any](ctx, c, make(chan int), 0); !errors.Is(err, ccl.ErrArgument) {
		return fmt.Errorf("got %w, want that it cannot be encoded", err)
	}
	fmt.Printf("values: rank %d of %d, %s: ok\n", me, n, c.Backend())
	return nil
}
