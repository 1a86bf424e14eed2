package ccl_test

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/ccl"
)

func ExampleToFloat16() {
	h := ccl.ToFloat16(1.5)
	fmt.Printf("%#04x %v\n", uint16(h), h.Float32())
	// Output: 0x3e00 1.5
}

// Ties go to the number with the even mantissa.
func ExampleToBFloat16() {
	fmt.Println(ccl.ToBFloat16(257).Float32(), ccl.ToBFloat16(259).Float32())
	// Output: 256 260
}

func ExampleFloat16_Float32() {
	fmt.Println(ccl.Float16(0x7bff).Float32()) // the largest
	// Output: 65504
}

func ExampleBFloat16_Float32() {
	fmt.Println(ccl.BFloat16(0x4049).Float32())
	// Output: 3.140625
}

// Half-precision numbers are reduced as such.
func ExampleFloat16() {
	ctx := context.Background()
	ranks(2, func(c *ccl.Comm) error {
		x := []ccl.Float16{ccl.ToFloat16(0.5)}
		err := ccl.AllReduce(ctx, c, x, x, ccl.Sum)
		if c.Rank() == 0 {
			fmt.Println(x[0].Float32())
		}
		return err
	})
	// Output: 1
}

func ExampleBFloat16() {
	ctx := context.Background()
	ranks(2, func(c *ccl.Comm) error {
		x := []ccl.BFloat16{ccl.ToBFloat16(3)}
		err := ccl.AllReduce(ctx, c, x, x, ccl.Prod)
		if c.Rank() == 0 {
			fmt.Println(x[0].Float32())
		}
		return err
	})
	// Output: 9
}

// Sums are made in float32 and rounded once. What is too large saturates.
func ExampleFloat8E4M3() {
	ctx := context.Background()
	ranks(3, func(c *ccl.Comm) error {
		x := []ccl.Float8E4M3{ccl.ToFloat8E4M3(16), ccl.ToFloat8E4M3(400)}
		if c.Rank() > 0 {
			x[0] = ccl.ToFloat8E4M3(1) // lost beside 16, but not two of them
		}
		err := ccl.AllReduce(ctx, c, x, x, ccl.Sum)
		if c.Rank() == 0 {
			fmt.Println(x[0].Float32(), x[1].Float32())
		}
		return err
	})
	// Output: 18 448
}

func ExampleFloat8E4M3_Float32() {
	fmt.Println(ccl.Float8E4M3(0x7e).Float32()) // the largest
	// Output: 448
}

func ExampleFloat8E5M2_Float32() {
	fmt.Println(ccl.Float8E5M2(0x7b).Float32(), ccl.Float8E5M2(0x7c).Float32())
	// Output: 57344 +Inf
}

func ExampleToFloat8E4M3() {
	fmt.Println(ccl.ToFloat8E4M3(17).Float32(), ccl.ToFloat8E4M3(1000).Float32())
	// Output: 16 448
}

func ExampleToFloat8E5M2() {
	fmt.Println(ccl.ToFloat8E5M2(9).Float32(), ccl.ToFloat8E5M2(1e6).Float32())
	// Output: 8 57344
}

func ExampleTypeOf() {
	type celsius float32
	fmt.Println(ccl.TypeOf[int32](), ccl.TypeOf[celsius](), ccl.TypeOf[ccl.Float16]())
	// Output: int32 float half
}

func ExampleType_Size() {
	fmt.Println(ccl.TypeFloat64.Size(), ccl.TypeBFloat16.Size(), ccl.TypeNone.Size())
	// Output: 8 2 0
}

func ExampleType_String() {
	for t := ccl.TypeInt8; t <= ccl.TypeFloat8E5M2; t++ {
		fmt.Print(t, " ")
	}
	// Output: int8 uint8 int16 uint16 int32 uint32 int64 uint64 half bfloat16 float double f8e4m3 f8e5m2
}

func ExampleOp() {
	ctx := context.Background()
	for _, op := range []ccl.Op{ccl.Sum, ccl.Prod, ccl.Min, ccl.Max, ccl.Avg} {
		ranks(4, func(c *ccl.Comm) error {
			x := []float64{float64(c.Rank() + 1)}
			err := ccl.AllReduce(ctx, c, x, x, op)
			if c.Rank() == 0 {
				fmt.Println(op, x[0])
			}
			return err
		})
	}
	// Output:
	// sum 10
	// prod 24
	// min 1
	// max 4
	// avg 2.5
}

func ExampleOp_String() {
	fmt.Println(ccl.Sum, ccl.Avg, ccl.Op(9))
	// Output: sum avg none
}

func ExampleKind_String() {
	fmt.Println(ccl.KindAllReduce, ccl.KindReduceScatterV, ccl.KindSplit)
	// Output: AllReduce ReduceScatterV Split
}

func ExampleState_String() {
	for s := ccl.Issued; s <= ccl.Rejected; s++ {
		fmt.Print(s, " ")
	}
	// Output: issued running complete failed rejected
}

func ExampleCheck_String() {
	fmt.Println(ccl.CheckAsync, ccl.CheckStrict, ccl.CheckOff)
	// Output: async strict off
}
