package mesh

import (
	"fmt"
	"strconv"
	"strings"
)

// Parse reads dimensions as flags have them: "dp=2,pp=4,tp=8", or "dp,tp=8", where dp takes what tp leaves over.
func Parse(s string) ([]Dim, error) {
	var dims []Dim
	for _, part := range strings.Split(s, ",") {
		name, size, sized := strings.Cut(strings.TrimSpace(part), "=")
		d := Dim{Name: strings.TrimSpace(name)}
		if d.Name == "" {
			return nil, fmt.Errorf("mesh: %q: a dimension is NAME=SIZE or NAME, with commas between", s)
		}
		if sized {
			n, err := strconv.Atoi(strings.TrimSpace(size))
			if err != nil || n < 1 {
				return nil, fmt.Errorf("mesh: %q: the size of %s is a number from 1 on; without \"=\" it takes what is left over",
					s, d.Name)
			}
			d.Size = n
		}
		dims = append(dims, d)
	}
	return dims, nil
}
