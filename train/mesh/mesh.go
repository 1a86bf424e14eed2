// Package mesh arranges the ranks of a Comm as a grid with named dimensions, and gives each rank a Comm for each
// dimension. It is PyTorch's DeviceMesh and Megatron's parallel_state.
//
//	m, err := mesh.New(ctx, c, mesh.Dim{Name: "dp"}, mesh.Dim{Name: "pp", Size: 4}, mesh.Dim{Name: "tp", Size: 8})
//	m.Comm("tp") // 8 neighbors, best on one host
//
// Names are free. The other packages of train take Comms and know no names; dp, pp, tp and sp are what programs use.
//
// The Comms of a mesh fail together. Without that a rank whose tp Comm has failed returns with an error, and its dp
// peers, which wait for it on another Comm, wait for Options.Timeout, since it is alive. See [Tie].
//
// On NCCL from 2.31 on, the Comms of a mesh have the hint LaunchOrder: calls of two of them on two
// streams run in the order in which the program issues them, so ranks do not wait for each other
// where a device has room for one kernel. One goroutine at a time must issue calls on a device
// then. A program with several clears Options.Hints.LaunchOrder by [NewWith].
//
// New makes one Comm for each dimension with more than one coordinate, and one for all others together, so it takes at
// most one Split more than there are dimensions. A mesh has no connections of its own, and one goroutine for each Comm.
package mesh

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/internal/same"
)

// Dim is one dimension of a mesh.
type Dim struct {
	// Name is what the dimension is asked for by. The names of a mesh differ.
	Name string
	// Size is the number of coordinates. One dimension may have 0: what the others leave over.
	Size int
}

// Mesh is this rank's place in a grid. The last dimension varies fastest: with dp=2, tp=4, the ranks 0 to 3 are one tp
// group. It is used by one goroutine at a time, as its Comms are.
type Mesh struct {
	world   *ccl.Comm
	dims    []Dim
	at      []int                // this rank's coordinates
	comms   []*ccl.Comm          // by dimension; alone where the size is 1
	alone   *ccl.Comm            // of this rank
	joined  map[uint64]*ccl.Comm // by the set of dimensions
	crosses []bool
	set     func(o *ccl.Options, dims ...string)
	ordered bool // the library takes LaunchOrder
	untie   func()
	closed  bool
}

// New arranges the ranks of c. It is collective over c, and does not take c over: Close leaves it open. A wrong
// dimension, and dimensions that differ between ranks, are an error on every rank.
func New(ctx context.Context, c *ccl.Comm, dims ...Dim) (*Mesh, error) {
	return NewWith(ctx, c, nil, dims...)
}

// NewWith is New with other Options for some dimensions: set changes those of c into those of the
// Comm of a dimension, or of several for Join, as [ccl.Comm.SplitWith] does, which says what may
// differ. RankOrder for dp alone gives the bits of one host on several, and tp does not pay for it;
// a pipeline may have a shorter Timeout. All ranks must pass a set, or none, and it must do the
// same on all.
func NewWith(ctx context.Context, c *ccl.Comm, set func(o *ccl.Options, dims ...string), dims ...Dim) (*Mesh, error) {
	if c == nil {
		return nil, errors.New("mesh: the Comm is nil")
	}
	m := &Mesh{set: set, world: c, dims: slices.Clone(dims), joined: map[uint64]*ccl.Comm{}, untie: func() {}}
	items := m.sizes()
	if set != nil {
		items = append(items, "options by dimension")
	}
	if err := same.Args(ctx, c, "mesh", m.fit(), items...); err != nil {
		return nil, err
	}
	m.at = m.Coords(c.Rank())
	m.ordered = ccl.SupportsHints(c, ccl.Hints{LaunchOrder: true}) == nil
	if err := m.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("mesh: %w", err), m.Close())
	}
	return m, nil
}

// maxDims keeps a set of dimensions in one word.
const maxDims = 32

// fit checks the dimensions and settles the open one.
func (m *Mesh) fit() error {
	if len(m.dims) == 0 || len(m.dims) > maxDims {
		return fmt.Errorf("%d dimensions; a mesh has 1 to %d", len(m.dims), maxDims)
	}
	size, open := m.world.Size(), -1
	n := 1 // the product, or more than size
	for i, d := range m.dims {
		switch {
		case d.Name == "":
			return fmt.Errorf("dimension %d has no name", i)
		case strings.ContainsAny(d.Name, "=, \x00"):
			return fmt.Errorf("dimension %q: a name has no comma, space or equals sign", d.Name)
		case m.index(d.Name) != i:
			return fmt.Errorf("two dimensions are named %s", d.Name)
		case d.Size < 0:
			return fmt.Errorf("dimension %s has size %d; 0 means what the others leave over", d.Name, d.Size)
		case d.Size == 0 && open >= 0:
			return fmt.Errorf("dimensions %s and %s are both open; give one of them a size", m.dims[open].Name, d.Name)
		case d.Size == 0:
			open = i
		case d.Size > size:
			n = size + 1
		default:
			n = min(n*d.Size, size+1)
		}
	}
	if open >= 0 {
		if size%n != 0 {
			return fmt.Errorf("%s does not divide the %d ranks; the sizes must multiply to a divisor of them", m.shape(), size)
		}
		m.dims[open].Size = size / n
	} else if n != size {
		return fmt.Errorf("%s does not multiply to the %d ranks of the Comm; leave one size open, as 0", m.shape(), size)
	}
	return nil
}

// open makes the Comms, ties them, and finds out which dimensions cross hosts.
func (m *Mesh) open(ctx context.Context) error {
	var err error
	m.comms = make([]*ccl.Comm, len(m.dims))
	mine := make([]uint8, len(m.dims))
	for i, d := range m.dims {
		if d.Size > 1 {
			if m.comms[i], err = m.split(ctx, 1<<i); err != nil {
				return err
			}
			mine[i] = uint8(min(m.comms[i].Place().Nodes-1, 1))
		}
	}
	if slices.Contains(m.comms, nil) {
		if m.alone, err = m.world.Split(ctx, m.world.Rank(), 0); err != nil {
			return err
		}
		m.alone.SetName(fmt.Sprintf("rank %d alone", m.world.Rank()))
		for i := range m.comms {
			if m.comms[i] == nil {
				m.comms[i] = m.alone
			}
		}
	}
	m.tie()
	if err := ccl.AllReduce(ctx, m.world, mine, mine, ccl.Max); err != nil {
		return err
	}
	for _, x := range mine {
		m.crosses = append(m.crosses, x != 0)
	}
	return nil
}

// split makes the Comm of the ranks that differ from this one in the dimensions of set alone, the last fastest.
func (m *Mesh) split(ctx context.Context, set uint64) (*ccl.Comm, error) {
	color, key := 0, 0
	var in, rest []string
	for i, d := range m.dims {
		if set>>i&1 != 0 {
			key = key*d.Size + m.at[i]
			in = append(in, d.Name)
			continue
		}
		color = color*d.Size + m.at[i]
		if d.Size > 1 {
			rest = append(rest, fmt.Sprintf("%s=%d", d.Name, m.at[i]))
		}
	}
	name := strings.Join(in, " x ")
	split := m.world.Split
	if m.set != nil || m.ordered {
		split = func(ctx context.Context, color, key int) (*ccl.Comm, error) {
			return m.world.SplitWith(ctx, color, key, func(o *ccl.Options) {
				o.Hints.LaunchOrder = o.Hints.LaunchOrder || m.ordered
				if m.set != nil {
					m.set(o, in...)
				}
			})
		}
	}
	c, err := split(ctx, color, key)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if rest != nil {
		name += " of " + strings.Join(rest, " ")
	}
	c.SetName(name)
	return c, nil
}

// tie ties all Comms there are, instead of those that were.
func (m *Mesh) tie() {
	comms := append([]*ccl.Comm{m.world}, m.own()...)
	before := m.untie
	m.untie = Tie(comms...) // first, so that no failure falls between
	before()
}

// own is the Comms that Close closes, but for that of this rank alone.
func (m *Mesh) own() []*ccl.Comm {
	var list []*ccl.Comm
	for _, c := range m.comms {
		if c != nil && c != m.alone {
			list = append(list, c)
		}
	}
	for _, c := range m.joined {
		list = append(list, c)
	}
	return list
}

// Comm returns the ranks that differ from this one in the dimension alone, ordered by their
// coordinate. In reports it is named as "tp of dp=1 pp=0". For a dimension with one coordinate, and
// one that the mesh does not have, it is a Comm with this rank alone, so a program that knows of
// dp, pp and tp runs on a mesh of dp.
func (m *Mesh) Comm(name string) *ccl.Comm {
	if i := m.index(name); i >= 0 {
		return m.comms[i]
	}
	return m.alone
}

// Join returns the ranks that differ from this one in the dimensions alone, as dp and sp for the gradients of a
// sequence-parallel job, in the order of the mesh. It is collective over World the first time; the mesh keeps the Comm.
// Where at most one of the dimensions has more than one coordinate it is that of Comm.
func (m *Mesh) Join(ctx context.Context, names ...string) (*ccl.Comm, error) {
	var set uint64
	var bad error
	last := -1
	for _, n := range names {
		i := m.index(n)
		switch {
		case i < 0 || m.dims[i].Size == 1:
			continue
		case set>>i&1 != 0:
			bad = fmt.Errorf("Join: dimension %s is named twice", n)
		}
		set |= 1 << i
		last = i
	}
	if len(names) == 0 {
		bad = errors.New("Join of no dimension")
	}
	if m.closed {
		bad = errors.New("Join: the mesh is closed")
	}
	if c, ok := m.joined[set]; ok && bad == nil {
		return c, nil
	}
	if bad == nil && set == 0 {
		return m.alone, nil
	}
	if bad == nil && set == 1<<last {
		return m.comms[last], nil
	}
	if err := same.Args(ctx, m.world, "mesh", bad, fmt.Sprintf("Join of %s", strings.Join(names, ", "))); err != nil {
		return nil, err
	}
	c, err := m.split(ctx, set)
	if err != nil {
		return nil, fmt.Errorf("mesh: %w", err)
	}
	m.joined[set] = c
	m.tie()
	return c, nil
}

func (m *Mesh) index(name string) int {
	return slices.IndexFunc(m.dims, func(d Dim) bool { return d.Name == name })
}

// World is the Comm that New got.
func (m *Mesh) World() *ccl.Comm { return m.world }

// Dims are the dimensions, with all sizes filled in.
func (m *Mesh) Dims() []Dim { return slices.Clone(m.dims) }

// Size is the number of coordinates of a dimension; 1 if there is no such dimension.
func (m *Mesh) Size(name string) int {
	if i := m.index(name); i >= 0 {
		return m.dims[i].Size
	}
	return 1
}

// Coord is this rank's coordinate in a dimension; 0 if there is no such dimension.
func (m *Mesh) Coord(name string) int {
	if i := m.index(name); i >= 0 {
		return m.at[i]
	}
	return 0
}

// Coords are the coordinates of a rank of World, in the order of Dims; nil if there is no such rank.
func (m *Mesh) Coords(rank int) []int {
	if rank < 0 || rank >= m.world.Size() {
		return nil
	}
	at := make([]int, len(m.dims))
	for i := len(m.dims) - 1; i >= 0; i-- {
		at[i] = rank % m.dims[i].Size
		rank /= m.dims[i].Size
	}
	return at
}

// Rank is the rank of World with these coordinates; -1 if there is none.
func (m *Mesh) Rank(coords ...int) int {
	if len(coords) != len(m.dims) {
		return -1
	}
	r := 0
	for i, d := range m.dims {
		if coords[i] < 0 || coords[i] >= d.Size {
			return -1
		}
		r = r*d.Size + coords[i]
	}
	return r
}

// Crosses reports whether any ranks that differ in the dimension alone are on different hosts, on all ranks alike. For
// tp, which waits for every exchange, that deserves a warning.
func (m *Mesh) Crosses(name string) bool {
	i := m.index(name)
	return i >= 0 && m.crosses[i]
}

func (m *Mesh) shape() string { return strings.Join(m.sizes(), " ") }

func (m *Mesh) sizes() (list []string) {
	for _, d := range m.dims {
		list = append(list, fmt.Sprintf("%s=%d", d.Name, d.Size))
	}
	return list
}

// String reads like: dp=2 pp=4 tp=8, rank 13 = (0,1,5)
func (m *Mesh) String() string {
	at := strings.ReplaceAll(strings.Trim(fmt.Sprint(m.at), "[]"), " ", ",")
	return fmt.Sprintf("%s, rank %d = (%s)", m.shape(), m.world.Rank(), at)
}

// Close closes the Comms that New and Join made. It is not collective. If one of the Comms has failed, the others fail
// with it first, so that nobody waits on them for this rank.
func (m *Mesh) Close() error {
	if m.closed {
		return nil
	}
	m.closed = true
	m.untie()
	var errs []error
	for _, c := range append(m.own(), m.alone) {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
