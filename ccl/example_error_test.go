package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goccl/goccl/ccl"
)

// A Code tells what happened; the Error has the rest.
func ExampleError() {
	ctx := context.Background()
	ranks(2, func(c *ccl.Comm) error {
		x := make([]float32, 10+c.Rank()) // a mistake
		err := ccl.AllReduce(ctx, c, x, x, ccl.Sum)
		var e *ccl.Error
		if c.Rank() == 0 && errors.As(err, &e) {
			fmt.Println(e.Code)
			fmt.Println(e.Mine.Count, "here,", e.Theirs.Count, "on rank", e.Peer)
		}
		return nil
	})
	// Output:
	// ranks disagree about the call
	// 10 here, 11 on rank 1
}

func ExampleError_Error() {
	ctx := context.Background()
	ranks(1, func(c *ccl.Comm) error {
		fmt.Println(ccl.AllReduce(ctx, c, make([]int, 2), make([]int, 3), ccl.Sum))
		fmt.Println(ccl.Broadcast(ctx, c, make([]int, 2), 1))
		return nil
	})
	// Output:
	// ccl: rank 0: AllReduce: dst has 2 elements, src 3: dst must have 3
	// ccl: rank 0: Broadcast: root is 1; the ranks are 0 to 0
}

// The cause is there for errors.Is and errors.As.
func ExampleError_Unwrap() {
	ranks(2, func(c *ccl.Comm) error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		if c.Rank() == 1 {
			<-c.Done() // and never comes
			return nil
		}
		err := ccl.Barrier(ctx, c)
		fmt.Println(errors.Is(err, ccl.ErrTimeout), errors.Is(err, context.DeadlineExceeded))
		return nil
	})
	// Output: true true
}

func ExampleCode() {
	ctx := context.Background()
	ranks(1, func(c *ccl.Comm) error {
		err := ccl.Reduce(ctx, c, nil, []float32{1}, ccl.Sum, 5)
		switch {
		case errors.Is(err, ccl.ErrArgument):
			fmt.Println("my mistake")
		case errors.Is(err, ccl.ErrRankLost):
			fmt.Println("go on without it")
		}
		return nil
	})
	// Output: my mistake
}

func ExampleCode_Error() {
	fmt.Println(ccl.ErrRankLost)
	fmt.Println(ccl.ErrMismatch)
	// Output:
	// rank lost
	// ranks disagree about the call
}

func ExampleCall_String() {
	k := ccl.Call{Seq: 41, Kind: ccl.KindAllReduce, Type: ccl.TypeFloat32, Count: 1024, Op: ccl.Sum, Root: -1}
	fmt.Println(&k)
	// Output: AllReduce #41 float x 1024 sum
}

func ExampleVendorError() {
	err := &ccl.Error{Code: ccl.ErrBackend, Op: "AllReduce", Rank: 3, Peer: -1,
		Err: &ccl.VendorError{Library: "NCCL 2.28.9", Result: 1, Text: "unhandled cuda error"}}
	var v *ccl.VendorError
	fmt.Println(errors.As(err, &v), v.Result)
	fmt.Println(err)
	// Output:
	// true 1
	// ccl: rank 3: AllReduce: NCCL 2.28.9: unhandled cuda error (1)
}
