package nn_test

import (
	"fmt"
	"strings"

	"github.com/goccl/goccl/xla/hlo"
	"github.com/goccl/goccl/xla/nn"
)

// A model of one's own: its layers declare their parameters, and its gradients are products.
func Example() {
	const vocab, width, heads, layers = 50257, 64, 4, 3
	m := &nn.Model{Loss: nn.CrossEntropy, Act: hlo.BF16}
	m.Units = append(m.Units, nn.Unit{Name: "embed.", Kind: "embed", Forward: func(s *nn.Scope, _ nn.V) nn.V {
		return s.Embed(s.Tokens(), "tokens", vocab, width)
	}})
	for i := range layers {
		m.Units = append(m.Units, nn.Unit{Name: fmt.Sprintf("layers.%d.", i), Kind: "layer", Forward: func(s *nn.Scope, x nn.V) nn.V {
			b, t := x.Dims()[0], x.Dims()[1]
			y := s.RMSNorm(x, "norm1", 1e-5)
			part := func(name string) nn.V { return s.Linear(y, name, width, false).Reshape(b, t, heads, width/heads) }
			frequencies := []float64{1, .1, .01, .001}
			q, k := s.Rotate(part("q"), frequencies, 1), s.Rotate(part("k"), frequencies, 1)
			x = x.Add(s.Linear(s.Attend(q, k, part("v"), nn.Attention{}), "o", width, false).As(x.Type()))
			y = nn.GELU(s.Linear(s.RMSNorm(x, "norm2", 1e-5), "up", 4*width, true))
			return x.Add(s.Linear(y, "down", width, true).As(x.Type()))
		}})
	}
	m.Units = append(m.Units, nn.Unit{Name: "head.", Kind: "head", Uses: []int{0}, Forward: func(s *nn.Scope, x nn.V) nn.V {
		return hlo.Dot(s.RMSNorm(x, "norm", 1e-5), s.Of("embed.tokens.weight").As(s.Act()), []int{2}, []int{1}, nil, nil)
	}})

	batch := hlo.Array{Type: hlo.I32, Dims: []int{8, 128}}
	units, _, err := m.Params(batch, batch)
	if err != nil {
		fmt.Println(err)
		return
	}
	var f hlo.Func
	var args []nn.V
	pass := &nn.Pass{Fn: &f, Has: map[string]nn.V{}, In: []nn.V{f.Arg(hlo.I32, 8, 128), f.Arg(hlo.I32, 8, 128)}}
	count := 0
	for _, unit := range units {
		for _, p := range unit {
			v := f.Arg(p.Type, p.Dims...)
			args, pass.Has[p.Name], count = append(args, v), v, count+p.Len()
		}
	}
	var x nn.V
	for u := range m.Units {
		x = m.Write(pass, u, x)
	}
	text, err := f.Text("gradients", hlo.Grad(m.WriteLoss(pass, x), args...)...)
	fmt.Println(len(args), "parameters of", count, "elements;", strings.Count(text, "dot_general"), "products;", err)
	// Output: 32 parameters of 3365312 elements; 75 products; <nil>
}
