package tuning

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// places are those of n ranks in order over sockets of so many cores, of which `share` in a row have one cache.
func places(n, sockets, cores, share int) []Place {
	at := make([]Place, n)
	for r := range at {
		core := r * sockets * cores / n
		at[r] = Place{core / share, core / cores}
	}
	return at
}

var lines = Lines{Same: 50, Other: 100, Socket: 200, Next: 10, Share: 5}

// The model is arithmetic on what a call waits for: these are worked out by hand.
func TestFormCost(t *testing.T) {
	two := places(16, 2, 8, 8)   // two sockets, one cache each
	four := places(16, 1, 16, 4) // one socket, four caches
	for _, tc := range []struct {
		name  string
		at    []Place
		form  Form
		bytes int
		want  int
	}{
		{"flat", two, Flat, 8, 200 + 14*10},
		{"flat, in a socket", four, Flat, 8, 100 + 14*10},
		{"flat, three lines each", two, Flat, 128, 200 + 44*10},
		{"grouped by 4: collect, then 4 leaders, whose lines 15 ranks read", four, Form{Group: 4}, 8, 50 + 2*10 + 100 + 100 + 14*5},
		{"grouped by 4, two lines of a leader", four, Form{Group: 4}, 16, 50 + 2*10 + 100 + 100 + 29*5},
		{"grouped by 8, over two sockets", two, Form{Group: 8}, 0, 50 + 6*10 + 200 + 200 + 14*5},
		{"a tree by 4: collect, 3 other leaders, 3 members", four, Form{Group: 4, Tree: true}, 8, 50 + 2*10 + 100 + 100 + 2*10 + 50 + 2*5},
		{"a tree of two groups: one other leader, whose slot has two lines", two, Form{Group: 8, Tree: true}, 8, 50 + 6*10 + 200 + 10 + 50 + 6*5},
		{"a tree by 5, the last group has one rank", two, Form{Group: 5, Tree: true}, 8, 200 + 3*10 + 50 + 200 + 2*10 + 200 + 3*5},
	} {
		require.Equal(t, tc.want, lines.cost(tc.at, tc.form, tc.bytes), tc.name)
	}
	require.Equal(t, []int{1, 1, 2, 2, 3}, []int{SlotLines(0), SlotLines(56), SlotLines(57), SlotLines(64), SlotLines(65)})
}

func TestChooseForm(t *testing.T) {
	contended := lines
	contended.Share = 30
	for _, tc := range []struct {
		name string
		at   []Place
		l    Lines
		want Form
	}{
		{"4 ranks", places(4, 2, 52, 52), lines, Flat},
		{"8 ranks of one cache", places(8, 1, 8, 8), lines, Flat},
		{"12 ranks on two sockets", places(12, 2, 52, 52), lines, Flat},
		{"16 ranks of one socket, four caches", places(16, 1, 16, 4), lines, Flat},
		{"where nothing is gained", places(104, 2, 52, 52), Lines{Same: 1000, Other: 1000, Socket: 1000, Next: 1, Share: 1}, Flat},
	} {
		require.Equal(t, tc.want, ChooseForm(tc.at, tc.l), tc.name)
	}
	for _, tc := range []struct {
		name string
		at   []Place
		l    Lines
		tree bool
	}{
		{"104 ranks", places(104, 2, 52, 52), lines, true},
		{"128 ranks, 8 to a cache", places(128, 2, 64, 8), lines, true},
		{"contended lines", places(52, 2, 52, 52), contended, true},
		{"lines that all can read at once", places(32, 2, 16, 16), Lines{Same: 50, Other: 100, Socket: 200, Next: 20, Share: 1}, false},
	} {
		f := ChooseForm(tc.at, tc.l)
		require.GreaterOrEqual(t, f.Group, 2, tc.name)
		require.Equal(t, tc.tree, f.Tree, tc.name)
		require.GreaterOrEqual(t, f.Most, usual, tc.name)
		require.LessOrEqual(t, f.Most*f.Group, Inline(len(tc.at)), tc.name)
		least := tc.l.cost(tc.at, f, usual)
		require.LessOrEqual(t, least, tc.l.flat(tc.at, usual)*gainOf/gainTo, tc.name)
		for m := 2; m <= len(tc.at)/2; m++ {
			for _, tree := range []bool{false, true} {
				require.LessOrEqual(t, least, tc.l.cost(tc.at, Form{Group: m, Tree: tree}, usual), "%s: groups of %d", tc.name, m)
			}
		}
	}
}

// With fewer than GroupedFrom ranks no row of the table takes another form than flat, wherever the ranks are.
func TestFewRanksAreFlat(t *testing.T) {
	for _, f := range families {
		for n := 1; n < GroupedFrom; n++ {
			for _, at := range [][]Place{places(n, 2, 52, 52), places(n, 2, 64, 8), places(n, 1, 16, 16), places(n, 8, 8, 8)} {
				require.Equal(t, Flat, ChooseForm(at, f.Lines), "%q: %d ranks", f.Maker, n)
			}
		}
	}
}

func TestFormWord(t *testing.T) {
	require.Equal(t, []string{"flat", "groups of 3", "tree of 4"}, []string{Flat.String(), Form{Group: 3}.String(), Form{Group: 4, Tree: true}.String()})
	for _, f := range []Form{Flat, Crowded, {Group: 2, Most: 0}, {Group: 64, Tree: true, Most: 8192}, {Group: 13, Most: 8}} {
		require.NotZero(t, f.Word())
		require.Equal(t, f, FormOf(f.Word()))
	}
}
