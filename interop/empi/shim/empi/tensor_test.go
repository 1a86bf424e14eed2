//go:build cgo

package empi_test

import (
	"errors"
	"testing"

	"github.com/emer/etable/etable"
	"github.com/emer/etable/etensor"

	"github.com/emer/empi/empi"
	"github.com/emer/empi/mpi"
)

// types are all but strings.
var types = []etensor.Type{etensor.BOOL, etensor.UINT8, etensor.INT8, etensor.UINT16, etensor.INT16, etensor.UINT32,
	etensor.INT32, etensor.UINT64, etensor.INT64, etensor.INT, etensor.FLOAT32, etensor.FLOAT64}

// floats are the values of a tensor.
func floats(t etensor.Tensor) []float64 {
	var f []float64
	t.Floats(&f)
	return f
}

func init() {
	scenes["gather"] = func(c *mpi.Comm) error {
		var err error
		for _, typ := range types {
			src := etensor.New(typ, []int{1, 3}, nil, nil)
			src.SetFloats([]float64{1, float64(c.Rank()), 0})
			dest := etensor.New(typ, []int{1, 3}, nil, nil)
			err = errors.Join(err, same(typ.String(), empi.GatherTensorRows(dest, src, c), floats(dest), []float64{1, 0, 0, 1, 1, 0}))
		}
		src := etensor.NewString([]int{2}, nil, nil)
		src.Values = [][]string{{"", "cat"}, {"zebra", "ü"}}[c.Rank()]
		dest, none := etensor.NewString([]int{1}, nil, nil), etensor.NewString([]int{0}, nil, nil)
		err = errors.Join(err, same("strings", empi.GatherTensorRows(dest, src, c), dest.Values, []string{"", "cat", "zebra", "ü"}),
			empi.GatherTensorRows(dest, none, c))
		if empi.GatherTensorRows(etensor.NewFloat32([]int{2}, nil, nil), src, c) == nil ||
			empi.GatherTensorRows(dest, etensor.NewBits([]int{2}, nil, nil), c) == nil ||
			empi.GatherTensorRows(dest, etensor.NewFloat32([]int{2}, nil, nil), c) == nil {
			err = errors.Join(err, errors.New("other types are gathered"))
		}
		return err
	}
	scenes["reduce"] = func(c *mpi.Comm) error {
		var err error
		for _, typ := range types {
			src := etensor.New(typ, []int{3}, nil, nil)
			src.SetFloats([]float64{1, float64(c.Rank()), 0})
			dest := etensor.New(typ, []int{1}, nil, nil)
			sum, product := []float64{2, 1, 0}, []float64{1, 0, 0}
			if typ == etensor.BOOL {
				sum = []float64{1, 1, 0}
			}
			err = errors.Join(err, same(typ.String(), empi.ReduceTensor(dest, src, c, mpi.OpSum), floats(dest), sum),
				same(typ.String(), empi.ReduceTensor(dest, src, c, mpi.OpProd), floats(dest), product))
		}
		words := etensor.NewString([]int{1}, nil, nil)
		if empi.ReduceTensor(etensor.NewInt([]int{1}, nil, nil), etensor.NewFloat64([]int{1}, nil, nil), c, mpi.OpSum) == nil {
			err = errors.Join(err, errors.New("other types are reduced"))
		}
		return errors.Join(err, empi.ReduceTensor(words, words, c, mpi.OpSum))
	}
	scenes["table"] = func(c *mpi.Comm) error {
		src := etable.NewTable("trials")
		src.SetFromSchema(etable.Schema{{Name: "Trial", Type: etensor.STRING}, {Name: "SSE", Type: etensor.FLOAT64}}, 1)
		src.SetCellString("Trial", 0, string(rune('a'+c.Rank())))
		src.SetCellFloat("SSE", 0, float64(c.Rank()))
		all, sum := &etable.Table{}, &etable.Table{}
		empi.GatherTableRows(all, src, c)
		empi.GatherTableRows(all, src, c) // into one that is large enough
		empi.ReduceTable(sum, src, c, mpi.OpSum)
		return errors.Join(same("rows", nil, []int{all.Rows, sum.Rows}, []int{2, 1}),
			same("Trial", nil, all.CellString("Trial", 0)+all.CellString("Trial", 1), "ab"),
			same("SSE", nil, floats(all.ColByName("SSE")), []float64{0, 1}),
			same("sum", nil, floats(sum.ColByName("SSE")), []float64{1}))
	}
}

func TestGatherTensorRows(t *testing.T) { play(t, "gather", 2) }

func TestReduceTensor(t *testing.T) { play(t, "reduce", 2) }

func TestTable(t *testing.T) { play(t, "table", 2) }
