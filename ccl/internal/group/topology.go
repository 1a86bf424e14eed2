package group

import (
	"github.com/goccl/goccl/ccl/internal/tcp"
	"github.com/goccl/goccl/internal/algo"
)

// ChildID names a Comm within the job: its parent, the split, the color.
func ChildID(parent, split uint64, color int) uint64 {
	h := parent
	for _, v := range []uint64{split, uint64(color)} {
		h = (h ^ v) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return (h | 1<<63) &^ tcp.Announced // never the world's
}

// Dense numbers hosts from 0 in the order in which they appear.
func Dense(nodeOf []int) []int {
	number := map[int]int{}
	for i, h := range nodeOf {
		if _, ok := number[h]; !ok {
			number[h] = len(number)
		}
		nodeOf[i] = number[h]
	}
	return nodeOf
}

func Topology(nodeOf []int, nodes int) algo.Topology {
	n := len(nodeOf)
	if nodes == 1 {
		return algo.Flat(n)
	}
	if n%nodes == 0 {
		regular := true
		for r, h := range nodeOf {
			regular = regular && h == r/(n/nodes)
		}
		if regular {
			return algo.Blocks(nodes, n/nodes)
		}
	}
	return algo.Placed(nodeOf)
}

const WorldID = 1
