package pack_test

import (
	"fmt"

	"github.com/goccl/goccl/train/data/pack"
)

// Four documents in rows of 8 tokens. The last token of each is a target only.
func ExampleNew() {
	docs := [][]int32{{11, 12, 13, 14}, {21, 22, 23, 24, 25, 26}, {31, 32, 33}, {41, 42, 43, 44, 45}}
	var lengths []int
	for _, d := range docs {
		lengths = append(lengths, len(d))
	}
	p, err := pack.New(lengths, 8)
	if err != nil {
		fmt.Println(err)
		return
	}
	var r pack.Row
	for row := range p.Rows() {
		if err := p.Fill(row, &r, func(doc int) ([]int32, error) { return docs[doc], nil }); err != nil {
			fmt.Println(err)
		}
		fmt.Println("tokens   ", r.Tokens)
		fmt.Println("targets  ", r.Targets)
		fmt.Println("positions", r.Positions)
		fmt.Println("documents", r.Documents, "ends", r.Ends)
	}
	fmt.Printf("%.0f %% of the places are used\n", 100*p.Used())
	// Output:
	// tokens    [21 22 23 24 25 11 12 13]
	// targets   [22 23 24 25 26 12 13 14]
	// positions [0 1 2 3 4 0 1 2]
	// documents [0 0 0 0 0 1 1 1] ends [0 5 8]
	// tokens    [41 42 43 44 31 32 0 0]
	// targets   [42 43 44 45 32 33 -100 -100]
	// positions [0 1 2 3 0 1 0 0]
	// documents [0 0 0 0 1 1 -1 -1] ends [0 4 6]
	// 88 % of the places are used
}
