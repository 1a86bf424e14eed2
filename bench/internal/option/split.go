package option

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Split says which ranks make a group: those with the same color.
type Split struct {
	How string // "", node, mod, div or mask
	N   int
}

// Color is the group of a rank on a node.
func (s Split) Color(rank, node int) int {
	switch s.How {
	case "node":
		return node
	case "mod":
		return rank % s.N
	case "div":
		return rank / s.N
	case "mask":
		return rank & s.N
	}
	return 0
}

// Sizes are those of the groups of so many ranks. Groups by node are known only once the ranks have met.
func (s Split) Sizes(ranks int) []int {
	if s.How == "node" {
		return nil
	}
	size := map[int]int{}
	for r := range ranks {
		size[s.Color(r, 0)]++
	}
	return slices.Sorted(maps.Values(size))
}

func (s Split) String() string {
	if s.N == 0 {
		return s.How
	}
	return s.How + ":" + strconv.Itoa(s.N)
}

var errSplit = errors.New("groups are node (a host each), mod:N (rank % N), div:N (N neighbours) or mask:N (rank & N)")

// split reads -split.
func split(s string) (Split, error) {
	how, number, numbered := strings.Cut(strings.ToLower(s), ":")
	n, err := strconv.ParseInt(number, 0, 32)
	switch how {
	case "node":
		if !numbered {
			return Split{How: how}, nil
		}
	case "mod", "div", "mask":
		if err == nil && n >= 1 {
			return Split{How: how, N: int(n)}, nil
		}
	}
	return Split{}, errSplit
}
