// Command ring times an AllReduce on hosts whose links differ: in the order of the ranks, in orders that are given, and
// in that of Reorder. test/lab/order.sh runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccl/goccl/ccl"
)

func main() {
	log.SetFlags(0)
	mb := flag.Float64("mb", 4, "size, in MB of float32")
	orders := flag.String("orders", "", "orders to compare with, such as 0.2.1.3,0.1.3.2")
	most := flag.Float64("most", 1.1, "fail if Reorder's order takes more, of the time of the best of these")
	flag.Parse()
	if err := run(context.Background(), int(*mb*1e6/4), *orders, *most); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, n int, orders string, most float64) error {
	c, err := ccl.Join(ctx, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	x := make([]float32, n)
	plain, err := measure(ctx, c, c, x, "order of the ranks")
	if err != nil {
		return err
	}
	best := plain
	for o := range strings.SplitSeq(orders, ",") {
		at := slices.Index(strings.Split(o, "."), strconv.Itoa(c.Rank()))
		d, err := c.Split(ctx, 0, at)
		if err != nil {
			return err
		}
		took, err := measure(ctx, c, d, x, "order "+o)
		if err != nil {
			return err
		}
		best = min(best, took)
		d.Close()
	}
	began := time.Now()
	links, err := ccl.MeasureLinks(ctx, c)
	if err != nil {
		return err
	}
	if c.Rank() == 0 {
		fmt.Printf("links measured in %.2f s\n", time.Since(began).Seconds())
		for i, row := range links {
			fmt.Printf("from host %d, MB/s and ms:", i)
			for _, l := range row {
				fmt.Printf("  %6.1f %5.1f", l.Bandwidth/1e6, l.RoundTrip.Seconds()*1e3)
			}
			fmt.Println()
		}
	}
	if err := ccl.Reorder(ctx, c); err != nil {
		return err
	}
	took, err := measure(ctx, c, c, x, "order by links")
	if err != nil {
		return err
	}
	if c.Rank() == 0 {
		fmt.Printf("order by links: %.2f of the best, %.2f of that of the ranks\n", took/best, took/plain)
		if took > most*best {
			fmt.Println("FAIL")
			os.Exit(1)
		}
	}
	return nil
}

// measure is the median time of an AllReduce on d, by rank 0 of c.
func measure(ctx context.Context, c, d *ccl.Comm, x []float32, what string) (float64, error) {
	var took []float64
	for range 6 {
		if err := ccl.Barrier(ctx, c); err != nil {
			return 0, err
		}
		began := time.Now()
		if err := ccl.AllReduce(ctx, d, x, x, ccl.Sum); err != nil {
			return 0, err
		}
		took = append(took, time.Since(began).Seconds())
	}
	took = took[1:] // without connections
	slices.Sort(took)
	if c.Rank() == 0 {
		fmt.Printf("%-20s median %.3f s, least %.3f s\n", what, took[2], took[0])
	}
	return took[2], nil
}
