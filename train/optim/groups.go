package optim

import (
	"fmt"
	"slices"
)

// Group is parameters that have hyperparameters of their own, as PyTorch's param_groups: no weight
// decay for norms and biases, or another learning rate for the embedding.
type Group[H any] struct {
	// Name is what the group is called in errors, and by Hyper.
	Name string
	// Has says which parameters are of the group, of those that no group before it has. Nil: all of them.
	Has func(unit, param int) bool
	// Hyper is what they have, such as an AdamW.
	Hyper H
}

// Groups says of each parameter which group it is of.
type Groups[H any] struct {
	groups []Group[H]
	of     [][]int // by unit and parameter
}

// NewGroups sorts the parameters into groups: units[i] has an element for each parameter of unit i,
// as zero.New has its length. A parameter that no group has, and a group that has none, are errors.
// All ranks pass the same, since a shard of a parameter may lie on several of them.
func NewGroups[H any](units [][]int, groups ...Group[H]) (*Groups[H], error) {
	g := &Groups[H]{groups: slices.Clone(groups)}
	used := make([]bool, len(groups))
	for i, params := range units {
		g.of = append(g.of, make([]int, len(params)))
		for j := range params {
			k := slices.IndexFunc(groups, func(x Group[H]) bool { return x.Has == nil || x.Has(i, j) })
			if k < 0 {
				return nil, fmt.Errorf("optim: parameter %d of unit %d is in no group; a last group without Has takes what is left", j, i)
			}
			g.of[i][j], used[k] = k, true
		}
	}
	for k, is := range used {
		if !is {
			return nil, fmt.Errorf("optim: group %q has no parameters, or groups before it have them", groups[k].Name)
		}
		for _, before := range groups[:k] {
			if before.Name == groups[k].Name {
				return nil, fmt.Errorf("optim: two groups are named %q", before.Name)
			}
		}
	}
	return g, nil
}

// Of returns the hyperparameters of a parameter, and the zero value for one that there is not. It allocates nothing.
func (g *Groups[H]) Of(unit, param int) H {
	if unit < 0 || unit >= len(g.of) || param < 0 || param >= len(g.of[unit]) {
		var none H
		return none
	}
	return g.groups[g.of[unit][param]].Hyper
}

// Hyper returns where the hyperparameters of a group are, to change them, as a schedule does; nil
// if there is no such group.
func (g *Groups[H]) Hyper(name string) *H {
	for k := range g.groups {
		if g.groups[k].Name == name {
			return &g.groups[k].Hyper
		}
	}
	return nil
}
