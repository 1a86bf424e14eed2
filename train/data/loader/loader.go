// Package loader loads what comes next while the program trains: PyTorch's DataLoader with workers.
//
//	items, err := sampler.Epoch(epoch, consumed) // or a Mixture's From
//	for x, err := range loader.Prefetch(ctx, items, 4, load) {
//		...
//		train(x.Value) // a checkpoint needs x.Consumed
//	}
package loader

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// Loaded is a value that Prefetch has loaded.
type Loaded[V any] struct {
	// Consumed is the position of the item, as Sampler and Mixture yield it. A run that has used this value goes on from
	// there; what was loaded beyond it is loaded again.
	Consumed int
	Value    V
}

// Prefetch loads items before they are used. Up to ahead items are being loaded, each on
// a goroutine of its own, or wait to be used, beside the one in use; so ahead bounds memory and what is read at once.
// They come in the order of items.
//
// An error of load comes in the place of its item, after what is before it, and is the last that
// comes; a panic is such an error, and so is the end of ctx. Leaving the loop ends the context of
// the loads under way, and waits for them. Take items from a Sampler or a Mixture; they are
// iterated on another goroutine.
func Prefetch[K, V any](ctx context.Context, items iter.Seq2[int, K], ahead int,
	load func(ctx context.Context, item K) (V, error)) iter.Seq2[Loaded[V], error] {
	return func(yield func(Loaded[V], error) bool) {
		if ahead < 1 {
			yield(Loaded[V]{}, fmt.Errorf("data/loader: Prefetch of %d items ahead; at least 1", ahead))
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		loads := make(chan chan outcome[V], ahead) // in order
		room := make(chan struct{}, ahead)         // one for each that is under way or waits
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			defer close(loads)
			begin(ctx, items, room, loads, load)
		}()
		defer func() { // whoever leaves leaves nothing behind
			cancel()
			<-ended
			for one := range loads {
				<-one
			}
		}()
		for one := range loads {
			o := <-one
			<-room
			if o.err == nil {
				o.err = ctx.Err()
			}
			if !yield(o.Loaded, o.err) || o.err != nil {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(Loaded[V]{}, err)
		}
	}
}

// outcome is what a load has come to.
type outcome[V any] struct {
	Loaded[V]
	err error
}

// begin begins to load the items, each as soon as there is room for it, until there is no more or ctx ends.
func begin[K, V any](ctx context.Context, items iter.Seq2[int, K], room chan<- struct{}, loads chan<- chan outcome[V],
	load func(context.Context, K) (V, error)) {
	for consumed, item := range items {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			return
		}
		one := make(chan outcome[V], 1)
		loads <- one // there is room
		go func() {
			o := outcome[V]{err: errEnded} // as t.FailNow in load does
			defer func() { one <- o }()
			o = try(ctx, consumed, item, load)
		}()
	}
}

var errEnded = errors.New("data/loader: the function that loads has ended its goroutine")

// try loads an item. A panic of load is an error.
func try[K, V any](ctx context.Context, consumed int, item K, load func(context.Context, K) (V, error)) (o outcome[V]) {
	o.Consumed = consumed
	defer func() {
		if p := recover(); p != nil {
			o.err = fmt.Errorf("panic: %v", p)
		}
		if o.err != nil {
			o.err = fmt.Errorf("data/loader: the item before position %d: %w", consumed, o.err)
		}
	}()
	if o.err = ctx.Err(); o.err == nil {
		o.Value, o.err = load(ctx, item)
	}
	return o
}
