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

// Dense numbers the hosts of ranks, however they are named, from 0 in the order in which they appear.
func Dense[K comparable](hosts []K) []int {
	number, nodeOf := map[K]int{}, make([]int, len(hosts))
	for i, h := range hosts {
		if _, ok := number[h]; !ok {
			number[h] = len(number)
		}
		nodeOf[i] = number[h]
	}
	return nodeOf
}

// Topology places rank r on host nodeOf[r], one of so many. For one host, which most jobs have, it looks at no rank.
func Topology(nodeOf []int, nodes int) algo.Topology {
	if nodes == 1 {
		return algo.Flat(len(nodeOf))
	}
	return algo.Placed(nodeOf)
}

const WorldID = 1
