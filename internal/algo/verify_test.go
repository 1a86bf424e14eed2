package algo

import (
	"strings"
	"testing"
)

func TestTerms(t *testing.T) {
	var terms terms
	x := terms.op(leaf(0), leaf(1))
	if terms.op(leaf(0), leaf(1)) != x || terms.op(leaf(1), leaf(0)) == x {
		t.Error("equal terms are not equal expressions")
	}
	y := terms.op(leaf(2), x)
	if got := terms.text(y); got != "(2+(0+1))" {
		t.Errorf("text is %q", got)
	}
	for _, tc := range []struct {
		x    term
		n    int
		want string
	}{
		{y, 3, "<nil>"},
		{y, 4, "rank 3's contribution is missing"},
		{terms.op(y, x), 3, "rank 1's contribution is in it twice"},
	} {
		got := "<nil>"
		if err := terms.eachOnce(tc.x, tc.n); err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
	if got := terms.text(0); got != "nothing" {
		t.Errorf("no term is %q", got)
	}
	for r := 3; r < 1000; r++ {
		y = terms.op(y, leaf(r))
	}
	if got := terms.text(y); len(got) > 600 || !strings.Contains(got, "...") {
		t.Errorf("a long term is %q", got)
	}
}

func TestSet(t *testing.T) {
	a, b := newSet(70), newSet(70)
	if !a.add(69) || a.add(69) {
		t.Error("added once")
	}
	b.later(a)
	if r, ok := b.all(1); ok || r != 0 {
		t.Error("later is now")
	}
	b.now()
	for r := range 69 {
		if got, ok := b.all(70); ok || got != r {
			t.Fatalf("missing %d, not %d", got, r)
		}
		b.add(r)
	}
	if _, ok := b.all(70); !ok {
		t.Error("all are there")
	}
}
