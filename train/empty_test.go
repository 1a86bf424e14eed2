package train_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/amp"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/ckpt/disks"
	"github.com/goccl/goccl/train/ckpt/pt"
	"github.com/goccl/goccl/train/ckpt/store"
	"github.com/goccl/goccl/train/data/bpe"
	"github.com/goccl/goccl/train/data/chat"
	"github.com/goccl/goccl/train/data/megatron"
	"github.com/goccl/goccl/train/data/pack"
	"github.com/goccl/goccl/train/data/text"
	"github.com/goccl/goccl/train/ddp"
	"github.com/goccl/goccl/train/distill"
	"github.com/goccl/goccl/train/elastic"
	"github.com/goccl/goccl/train/ep"
	"github.com/goccl/goccl/train/fit/lora"
	fitquant "github.com/goccl/goccl/train/fit/quant"
	"github.com/goccl/goccl/train/fit/sample"
	"github.com/goccl/goccl/train/fit/update"
	"github.com/goccl/goccl/train/history"
	"github.com/goccl/goccl/train/history/events"
	"github.com/goccl/goccl/train/history/grads"
	"github.com/goccl/goccl/train/mesh"
	"github.com/goccl/goccl/train/mirror"
	"github.com/goccl/goccl/train/offload"
	"github.com/goccl/goccl/train/outer"
	"github.com/goccl/goccl/train/pp"
	"github.com/goccl/goccl/train/quant"
	"github.com/goccl/goccl/train/sp"
	"github.com/goccl/goccl/train/tp"
	"github.com/goccl/goccl/train/zero"
)

// f is a part that has nothing.
var f = []float32{}

// empties call each function of train/... that takes a slice, with an empty one: a rank without rows, a layer without parameters, an
// expert that is elsewhere. All ranks of c make the calls.
var empties = map[string]func(ctx context.Context, t testing.TB, c *ccl.Comm) error{
	"amp.Multiply": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		require.True(t, amp.Multiply(f, []ccl.Float16{}, 2))
		return nil
	},

	"offload.Column.ReadAt": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		d, err := offload.New(ctx, c, t.TempDir(), nil)
		require.NoError(t, err)
		_, err = d.Lay(ccl.TypeFloat32, 0).ReadAt(nil, 0)
		require.NoError(t, err)
		return d.Close()
	},
	"offload.Column.WriteAt": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		d, err := offload.New(ctx, c, t.TempDir(), nil)
		require.NoError(t, err)
		_, err = d.Lay(ccl.TypeFloat32, 0).WriteAt(nil, 0)
		require.NoError(t, err)
		return d.Close()
	},
	"amp.Amax": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		require.Zero(t, amp.Amax(f))
		return nil
	},
	"amp.Scales.Note": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		s, err := amp.NewScales[ccl.Float8E4M3](ctx, c, amp.ScalesOptions{Tensors: 1})
		require.NoError(t, err)
		s.Note(0, f)
		odd, err := s.Update(ctx)
		require.Empty(t, odd)
		require.Equal(t, float32(1), s.Scale(0))
		return err
	},
	"amp.Quantize": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		require.True(t, amp.Quantize([]ccl.Float8E4M3{}, f, 2))
		return nil
	},
	"amp.Dequantize": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		amp.Dequantize(f, []ccl.Float8E4M3{}, 2)
		return nil
	},
	"amp.QuantizeBlocks": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		finite, err := amp.QuantizeBlocks([]ccl.Float8E5M2{}, f, f, 32)
		require.True(t, finite)
		return err
	},
	"amp.DequantizeBlocks": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		return amp.DequantizeBlocks(f, []ccl.Float8E5M2{}, f, 32)
	},

	"ckpt.Save": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		return ckpt.Save(ctx, c, shared(ctx, t, c), nil, nil)
	},
	"ckpt.Load": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		dir, none := shared(ctx, t, c), []ckpt.Tensor{{Name: "w", Shape: []int{0, 4}, Data: f}}
		require.NoError(t, ckpt.Save(ctx, c, dir, nil, none))
		require.NoError(t, ckpt.Load(ctx, c, dir, nil, none))
		return ckpt.Load(ctx, c, dir, nil, nil)
	},
	"ckpt.LoadWith": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		dir := shared(ctx, t, c)
		require.NoError(t, ckpt.Save(ctx, c, dir, nil, nil))
		_, err := ckpt.LoadWith(ctx, c, dir, nil, nil, ckpt.LoadOptions{})
		return err
	},
	"ckpt.Saver.Save": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		s, err := ckpt.NewSaver(ctx, c)
		require.NoError(t, err)
		require.NoError(t, s.Save(ctx, shared(ctx, t, c), nil, nil))
		return s.Close(ctx)
	},

	"ckpt.Shelf.Save": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		return ckpt.Shelf{Store: store.Dir(shared(ctx, t, c))}.Save(ctx, c, "empty", nil, nil)
	},
	"ckpt.Shelf.Load": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		h := ckpt.Shelf{Store: store.Dir(shared(ctx, t, c))}
		none := []ckpt.Tensor{{Name: "w", Shape: []int{0, 4}, Data: f}}
		require.NoError(t, h.Save(ctx, c, "empty", nil, none))
		_, err := h.Load(ctx, c, "empty", nil, none, ckpt.LoadOptions{})
		require.NoError(t, err)
		_, err = h.Load(ctx, c, "empty", nil, nil, ckpt.LoadOptions{})
		return err
	},
	"ckpt/disks.Disks.Save": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		d, err := disks.New(ctx, c, store.Dir(t.TempDir()), nil)
		require.NoError(t, err)
		require.NoError(t, d.Save(ctx, "empty", nil, nil))
		return d.Close()
	},
	"ckpt/disks.Disks.Load": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		d, err := disks.New(ctx, c, store.Dir(t.TempDir()), nil)
		require.NoError(t, err)
		none := []ckpt.Tensor{{Name: "w", Shape: []int{0, 4}, Data: f}}
		require.NoError(t, d.Save(ctx, "empty", nil, none))
		_, err = d.Load(ctx, "empty", nil, none, ckpt.LoadOptions{})
		require.NoError(t, err)
		_, err = d.Load(ctx, "empty", nil, nil, ckpt.LoadOptions{})
		require.NoError(t, err)
		return d.Close()
	},
	"ckpt/disks.Saver.Save": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		d, err := disks.New(ctx, c, store.Dir(t.TempDir()), nil)
		require.NoError(t, err)
		s, err := d.NewSaver(ctx)
		require.NoError(t, err)
		require.NoError(t, s.Save(ctx, "empty", nil, nil))
		require.NoError(t, s.Close(ctx))
		return d.Close()
	},
	"ckpt/pt.Write": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		return pt.Write(filepath.Join(t.TempDir(), "empty.pt"), nil)
	},
	"ckpt/pt.WriteDCP": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		return pt.WriteDCP(filepath.Join(t.TempDir(), "empty"), nil)
	},
	"ckpt/pt.Set.Read": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		file := filepath.Join(t.TempDir(), "empty.pt")
		require.NoError(t, pt.Write(file, []pt.Value{{Tensor: pt.Tensor{Name: "w", Type: "F32", Shape: []int{0, 4}}}}))
		s, err := pt.Open(file)
		require.NoError(t, err)
		return errors.Join(s.Read("w", nil), s.Close())
	},

	"data/pack.New": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		p, err := pack.New(nil, 4)
		require.Zero(t, p.Rows())
		return err
	},

	"ddp.New": func(ctx context.Context, t testing.TB, c *ccl.Comm) error { return reduced(ctx, t, c, nil) },
	"ddp.Reducer.Use": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		return reduced(ctx, t, c, []ccl.Buf{ccl.BufOf(f)})
	},
	"ddp.Broadcast": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		require.NoError(t, ddp.Broadcast(ctx, c, nil, 1))
		return ddp.Broadcast(ctx, c, []ccl.Buf{ccl.BufOf(f)}, 1)
	},
	"ddp.Hash": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		require.Equal(t, ddp.Hash[float32](), ddp.Hash(f, f))
		return ddp.Same(ctx, c, ddp.Hash(f))
	},

	"fit/lora.Config.Unmatched": func(_ context.Context, t testing.TB, _ *ccl.Comm) error {
		l := &lora.Config{Targets: lora.Names{List: []string{"q"}}}
		require.Equal(t, []string{"q"}, l.Unmatched(nil))
		return nil
	},
	"fit/lora.Parse":                  refuses(func() error { _, err := lora.Parse(nil); return err }),
	"fit/lora.Names.UnmarshalJSON":    refuses(func() error { return new(lora.Names).UnmarshalJSON(nil) }),
	"fit/lora.Patterns.UnmarshalJSON": refuses(func() error { return new(lora.Patterns).UnmarshalJSON(nil) }),
	"fit/lora.Layers.UnmarshalJSON":   refuses(func() error { return new(lora.Layers).UnmarshalJSON(nil) }),
	"fit/quant.ToNF4": func(_ context.Context, t testing.TB, _ *ccl.Comm) error {
		codes, scales := fitquant.ToNF4(f)
		require.Empty(t, codes)
		require.Empty(t, scales)
		return nil
	},
	"fit/quant.ToInt8": func(_ context.Context, t testing.TB, _ *ccl.Comm) error {
		codes, scales, err := fitquant.ToInt8(f, 2)
		require.Empty(t, codes)
		require.Equal(t, []float32{0, 0}, scales)
		return err
	},
	"fit/sample.Likeliest": func(_ context.Context, t testing.TB, _ *ccl.Comm) error {
		require.Zero(t, sample.Likeliest(f))
		return nil
	},
	"fit/sample.Options.Token": func(_ context.Context, t testing.TB, _ *ccl.Comm) error {
		require.Zero(t, sample.Options{Temperature: 1}.Token(f, nil))
		return nil
	},
	"fit/update.Clipped": func(_ context.Context, t testing.TB, _ *ccl.Comm) error {
		g, odd := update.Clipped(nil, 1)
		require.Empty(t, g)
		require.Nil(t, odd)
		return nil
	},
	"outer.New": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		o, err := outer.New([][]float32{f, {}}, &outer.Options{Every: 1})
		require.NoError(t, err)
		defer o.Close()
		require.NoError(t, o.On(ctx, c))
		_, err = o.Step(ctx)
		return err
	},
	"quant.Reducer.Avg": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		r, err := quant.New(c, quant.Int8, 0, nil)
		require.NoError(t, err)
		return r.Avg(ctx, f)
	},
	"quant.Reducer.Queue": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		r, err := quant.New(c, quant.Int4, 0, nil)
		require.NoError(t, err)
		return r.Queue(c.On(nil), f).Wait(ctx)
	},

	"elastic.Mean": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		return elastic.Mean(ctx, &elastic.Round{Comm: c, Workers: 1, Idle: c.Rank() > 0}, f, f)
	},

	"history.History.Log": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		h, err := history.New(ctx, c, nil)
		require.NoError(t, err)
		return h.Log(ctx, 1)
	},
	"history.History.CSV": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		h, err := history.New(ctx, c, nil)
		require.NoError(t, err)
		return h.CSV(&bytes.Buffer{})
	},
	"history.History.SVG": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		h, err := history.New(ctx, c, nil)
		require.NoError(t, err)
		return h.SVG(&bytes.Buffer{})
	},
	"history/events.Writer.Scalars": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		return events.New(&bytes.Buffer{}).Scalars(time.Unix(1, 0), 1)
	},
	"history/grads.Squares": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		require.Zero(t, grads.Squares(f))
		return nil
	},
	"history/grads.NewNorms": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		m, err := grads.NewNorms().Over(ctx, c)
		require.Empty(t, m)
		return err
	},

	"data/bpe.Parse": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		_, err := bpe.Parse(nil)
		require.ErrorContains(t, err, "JSON")
		return nil
	},
	"data/bpe.Tokenizer.EncodeSpans": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		tok, err := bpe.Parse([]byte(`{"model":{"type":"BPE","vocab":{"a":0},"merges":[]}}`))
		require.NoError(t, err)
		ids, in := tok.EncodeSpans("aa", nil)
		require.Equal(t, []int32{0, 0}, ids)
		require.Equal(t, []bool{false, false}, in)
		return nil
	},
	"data/bpe.Tokenizer.Decode": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		tok, err := bpe.Parse([]byte(`{"model":{"type":"BPE","vocab":{"a":0},"merges":[]}}`))
		require.Empty(t, tok.Decode(nil, false))
		return err
	},
	"data/chat.Message.UnmarshalJSON": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		require.ErrorContains(t, new(chat.Message).UnmarshalJSON(nil), "JSON")
		return nil
	},
	"data/chat.Template.Answers": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		tmpl, err := chat.Parse("", nil)
		require.NoError(t, err)
		_, spans, err := tmpl.Answers(nil, nil)
		require.Empty(t, spans)
		return err
	},
	"data/chat.Template.Render": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		tmpl, err := chat.Parse("{{ messages }}", nil)
		require.NoError(t, err)
		text, err := tmpl.Render(nil, nil)
		require.Equal(t, "[]", text)
		return err
	},
	"data/megatron.Writer.Add": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		w, err := megatron.Create(filepath.Join(t.TempDir(), "x"), 1)
		require.NoError(t, err)
		require.NoError(t, w.Add())
		require.NoError(t, w.Add(nil))
		return w.Close()
	},
	"data/pack.Single": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		p, err := pack.Single(nil, 4)
		require.Zero(t, p.Rows())
		return err
	},
	"data/text.Open": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		f, err := text.Open(text.Lines)
		require.NoError(t, err)
		set, err := text.New(ctx, c, f, nil)
		require.Empty(t, set.Lengths)
		return err
	},

	"distill.Loss": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		loss, err := distill.Loss(ctx, &distill.Group{Comm: c}, f, f, f, nil, 4*c.Rank())
		require.Zero(t, loss)
		return err
	},

	"ep.Route": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		p, err := ep.Route(ctx, &ep.Layer{Comm: c, Experts: 2 * c.Size(), Top: 1, Width: 3, Balance: 1}, f)
		require.Zero(t, p.Aux())
		return err
	},
	"ep.Pass.Dispatch":     func(ctx context.Context, t testing.TB, c *ccl.Comm) error { return routed(ctx, c, 1) },
	"ep.Pass.Combine":      func(ctx context.Context, t testing.TB, c *ccl.Comm) error { return routed(ctx, c, 2) },
	"ep.Pass.CombineGrad":  func(ctx context.Context, t testing.TB, c *ccl.Comm) error { return routed(ctx, c, 3) },
	"ep.Pass.DispatchGrad": func(ctx context.Context, t testing.TB, c *ccl.Comm) error { return routed(ctx, c, 4) },
	"ep.Rebalance": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		return ep.Rebalance(nil, nil, 1)
	},

	"mesh.Tie": func(ctx context.Context, t testing.TB, c *ccl.Comm) error { mesh.Tie()(); return nil },

	"mirror.Mirror.Restore": func(ctx context.Context, t testing.TB, c *ccl.Comm) error { return mirrored(ctx, t, c) },
	"mirror.Mirror.Save": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		return mirrored(ctx, t, c, ccl.BufOf(f))
	},

	"pp.Begin": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		return tied(ctx, t, c, func(e *pp.Ends) error { return pp.Begin(ctx, e, f) })
	},
	"pp.SumEnds": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		return tied(ctx, t, c, func(e *pp.Ends) error { return pp.SumEnds(ctx, e, f) })
	},
	"pp.Pipeline.Run": func(ctx context.Context, t testing.TB, c *ccl.Comm) error { // of fewer rows than micro batches, and of none
		p, err := pp.New(ctx, c, nil)
		require.NoError(t, err)
		defer p.Close()
		for _, micros := range []int{0, 3} {
			st := &stage{rows: 2}
			_, err := p.Run(ctx, nil, micros, st)
			require.NoError(t, err)
			require.Equal(t, min(2*st.rows, 2*micros), st.ran, "rows, forward and backward")
		}
		return nil
	},

	"sp.NewRing": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		return around(ctx, sp.NewRing(c, f), false)
	},
	"sp.NewGradRing": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		return around(ctx, sp.NewGradRing(c, f, f), true)
	},
	"sp.NewRingOf": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		return around(ctx, sp.NewRingOf(c, f, make([]int, c.Size())), false)
	},
	"sp.NewGradRingOf": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		return around(ctx, sp.NewGradRingOf(c, f, f, make([]int, c.Size())), true)
	},
	"sp.Ring.Add": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		return around(ctx, sp.NewGradRing(c, f, f), true)
	},
	"sp.Softmax.Add": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		sp.NewSoftmax(0).Add(f, 3, f, 2)
		sp.NewSoftmax(2).Add(f, 0, make([]float32, 4), 2) // no keys
		return nil
	},
	"sp.Softmax.Finish":  func(ctx context.Context, t testing.TB, c *ccl.Comm) error { sp.NewSoftmax(0).Finish(f, 2); return nil },
	"sp.Softmax.Weights": func(ctx context.Context, t testing.TB, c *ccl.Comm) error { sp.NewSoftmax(0).Weights(f, 2); return nil },
	"sp.ToHeads": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		return sp.ToHeads(ctx, c, sp.Shape{Seq: 0, Heads: 2, Dim: 3}, f, f, f)
	},
	"sp.ToSequence": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		return sp.ToSequence(ctx, c, sp.Shape{Seq: 0, Heads: 2, Dim: 3}, f, f, f)
	},

	"tp.Shard": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		_, err := tp.Shard(tp.Layout{Rows: 0, Cols: 4}, f, 0, 2)
		return err
	},
	"tp.Unshard": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		_, err := tp.Unshard(tp.Layout{Rows: 0, Cols: 4}, [][]float32{f, f})
		return err
	},
	"tp.CrossEntropy": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		loss, err := tp.CrossEntropy(ctx, &tp.Group{Comm: c}, f, f, nil, 0)
		require.Zero(t, loss)
		return err
	},
	"tp.RowsCrossEntropy": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		loss, err := tp.RowsCrossEntropy(ctx, &tp.Group{Comm: c}, f, f, nil, 4*c.Rank(),
			tp.LossOptions{Weights: []float64{}, Losses: []float64{}, Divisor: 3, Words: 7})
		require.Zero(t, loss)
		return err
	},
	"tp.ChunkedCrossEntropy": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		h := tp.Head[float32]{Width: 4, Chunk: 2, Logits: func(_, _ int, _ []float32) error { return errors.New("none") }}
		loss, err := tp.ChunkedCrossEntropy(ctx, &tp.Group{Comm: c}, h, nil, 4*c.Rank(), tp.LossOptions{})
		require.Zero(t, loss)
		return err
	},
	"tp.Mask": func(ctx context.Context, t testing.TB, c *ccl.Comm) error { return tp.Mask(f, 4, 0, 3) },
	"tp.SumReplicas": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		return tp.SumReplicas(ctx, &tp.Group{Comm: c}, c, tp.Layout{Rows: 0, Cols: 1, Replicate: true}, f)
	},
	"tp.Enter":     func(ctx context.Context, t testing.TB, c *ccl.Comm) error { return exchanged(ctx, c, tp.Enter) },
	"tp.LeaveGrad": func(ctx context.Context, t testing.TB, c *ccl.Comm) error { return exchanged(ctx, c, tp.LeaveGrad) },
	"tp.EnterGrad": func(ctx context.Context, t testing.TB, c *ccl.Comm) error { return exchanged(ctx, c, tp.EnterGrad) },
	"tp.Leave":     func(ctx context.Context, t testing.TB, c *ccl.Comm) error { return exchanged(ctx, c, tp.Leave) },
	"tp.SumGrads": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		require.NoError(t, tp.SumGrads[float32](ctx, &tp.Group{Comm: c, Sequence: true}))
		return tp.SumGrads(ctx, &tp.Group{Comm: c, Sequence: true}, f, f)
	},

	"zero.New":        func(ctx context.Context, t testing.TB, c *ccl.Comm) error { return sharded(ctx, t, c, nil) },
	"zero.Model.Load": func(ctx context.Context, t testing.TB, c *ccl.Comm) error { return sharded(ctx, t, c, [][]int{{}}) },
	"zero.Model.Swap": func(ctx context.Context, t testing.TB, c *ccl.Comm) error { return sharded(ctx, t, c, [][]int{{0}}) },
	"zero.Model.Tensors": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		return sharded(ctx, t, c, [][]int{{0, 3}, {}})
	},
	"zero.Model.TensorsOf": func(ctx context.Context, t testing.TB, c *ccl.Comm) error {
		return sharded(ctx, t, c, [][]int{{}, {0, 0}})
	},
}

// elsewhere are the functions that are not in the table, and why.
var elsewhere = map[string]string{
	"offload.Disk.Show":           "is for package zero, and has what State returns",
	"device.Memory.Put":           "needs a GPU",
	"device.Memory.Get":           "needs a GPU",
	"device.Memory.Follow":        "needs a GPU",
	"device.Memory.SumsOfSquares": "needs a GPU",
	"fit.Trainer.Eval":            needsXLA,
	"fit.Trainer.Generate":        needsXLA,
	"fit.Trainer.Read":            needsXLA,
	"fit.Trainer.Restore":         needsXLA,
	"fit.Trainer.Step":            needsXLA,
	"fit/machine.Memory.Apply":    needsXLA,
	"fit/machine.Memory.Get":      needsXLA,
	"fit/machine.Memory.Put":      needsXLA,
	"mesh.New":                    "takes dimensions, which have all ranks: those of none are those of one rank",
	"mesh.NewWith":                "as mesh.New",
	"mesh.Mesh.Join":              "takes names of dimensions",
	"mesh.Mesh.Rank":              "takes a coordinate for each dimension",
}

const needsXLA = "needs XLA's plugin: train/fit's own tests"

// refuses is a call to which nothing is an error.
func refuses(call func() error) func(context.Context, testing.TB, *ccl.Comm) error {
	return func(_ context.Context, t testing.TB, _ *ccl.Comm) error {
		require.Error(t, call())
		return nil
	}
}

// shared is a new directory of all ranks.
func shared(ctx context.Context, t testing.TB, c *ccl.Comm) string {
	dir := []byte(fmt.Sprintf("%-200s", t.TempDir()))
	require.NoError(t, ccl.Broadcast(ctx, c, dir, 0))
	return filepath.Join(strings.TrimSpace(string(dir)), "checkpoint")
}

// reduced makes two steps of a Reducer.
func reduced(ctx context.Context, t testing.TB, c *ccl.Comm, bufs []ccl.Buf) error {
	r, err := ddp.New(ctx, c, bufs, nil)
	require.NoError(t, err)
	defer r.Close()
	require.NoError(t, r.All(ctx))
	norm, err := r.Clip(1)
	require.Zero(t, norm)
	require.NoError(t, err)
	require.NoError(t, r.Use(bufs))
	return r.All(ctx)
}

func mirrored(ctx context.Context, t testing.TB, c *ccl.Comm, bufs ...ccl.Buf) error {
	m := mirror.New(nil)
	defer m.Close()
	step, err := m.Restore(ctx, c, nil, bufs...)
	require.Equal(t, -1, step)
	require.NoError(t, err)
	return m.Save(ctx, 1, bufs...)
}

func tied(ctx context.Context, t testing.TB, c *ccl.Comm, do func(e *pp.Ends) error) error {
	e, err := pp.NewEnds(ctx, c)
	require.NoError(t, err)
	defer e.Close()
	return do(e)
}

// stage has one row in each of the first micro batches, as long as there are any.
type stage struct {
	rows, ran int
	mem       [2][2][1]float32 // by input or output and buffer; the directions take turns
}

func (s *stage) In(x pp.Step) ccl.Buf  { return ccl.BufOf(s.mem[0][x.In][:s.of(x)]) }
func (s *stage) Out(x pp.Step) ccl.Buf { return ccl.BufOf(s.mem[1][x.Out][:s.of(x)]) }
func (s *stage) of(x pp.Step) int {
	if x.Micro < s.rows {
		return 1
	}
	return 0
}

func (s *stage) Run(_ context.Context, x pp.Step) error {
	s.ran += s.of(x)
	return nil
}

// routed sends no tokens through experts, as far as step says.
func routed(ctx context.Context, c *ccl.Comm, step int) error {
	p, err := ep.Route(ctx, &ep.Layer{Comm: c, Experts: c.Size(), Top: 1, Width: 3}, f)
	for i, do := range []func(context.Context, []float32) ([]float32, error){p.Dispatch, p.Combine, p.CombineGrad, p.DispatchGrad} {
		if err == nil && i < step {
			_, err = do(ctx, f)
		}
	}
	return err
}

func around(ctx context.Context, r *sp.Ring[float32], gradients bool) error {
	for r.Next(ctx) {
		if gradients {
			r.Add(ctx, f)
		}
	}
	if gradients {
		return r.Home(ctx)
	}
	return r.Err()
}

// exchanged makes an exchange of no tokens, with sequence parallelism and without.
func exchanged(ctx context.Context, c *ccl.Comm, do func(ctx context.Context, g *tp.Group, to, from []float32) ([]float32, error)) error {
	for _, sequence := range []bool{false, true} {
		if _, err := do(ctx, &tp.Group{Comm: c, Sequence: sequence}, f, f); err != nil {
			return err
		}
	}
	return nil
}

// sharded makes two steps with a model of these units, at each stage, and saves it.
func sharded(ctx context.Context, t testing.TB, c *ccl.Comm, units [][]int) error {
	for stage := range 4 {
		m, err := zero.New[ccl.BFloat16, float32](ctx, c, units, &zero.Options{Stage: stage, Clip: 1, Micro: 2})
		require.NoError(t, err)
		moments, swap := make([][]float32, len(units)), make([][]float32, len(units))
		for i, lens := range units {
			full := make([][]float32, len(lens))
			for k, n := range lens {
				full[k] = make([]float32, n)
			}
			require.NoError(t, m.Load(ctx, i, full, 1))
			moments[i], swap[i] = make([]float32, len(m.Shard(i))), make([]float32, len(m.Shard(i)))
		}
		for range 2 {
			for range 2 {
				for i := range units {
					_, err := m.Params(ctx, i)
					require.NoError(t, err)
					_, err = m.Grads(ctx, i)
					require.NoError(t, err)
					m.Release(i)
					require.NoError(t, m.Reduce(i))
				}
			}
			require.NoError(t, m.Step(ctx, func(zero.Piece, []float32, []float32) error { return nil }))
			require.Zero(t, m.Norm())
		}
		require.NoError(t, m.Swap(ctx, swap))
		list, err := m.Tensors(nil, zero.State[float32]{Prefix: "m.", Of: moments})
		require.NoError(t, err)
		dir := shared(ctx, t, c)
		require.NoError(t, ckpt.Save(ctx, c, dir, nil, list))
		require.NoError(t, ckpt.Load(ctx, c, dir, nil, list))
		require.NoError(t, m.Loaded(ctx))
		require.NoError(t, m.Close())
	}
	return nil
}

func TestEmptyParts(t *testing.T) {
	for name, call := range empties {
		t.Run(name, func(t *testing.T) {
			ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
				require.NoError(t, call(t.Context(), t, c))
				require.NoError(t, ccl.Barrier(t.Context(), c), "the Comm goes on")
			})
		})
	}
}

// Each exported function and method that takes a slice is in the table, or says why it is not.
func TestEmptyPartsAreAll(t *testing.T) {
	var missing []string
	seen := map[string]bool{}
	require.NoError(t, filepath.WalkDir(".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (e.Name() == "internal" || e.Name() == "testdata"):
			return filepath.SkipDir
		case path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			d, is := d.(*ast.FuncDecl)
			if !is || !d.Name.IsExported() || !takesSlice(d.Type) {
				continue
			}
			what := filepath.ToSlash(filepath.Dir(name)) + "."
			if d.Recv != nil {
				of := receiver(d.Recv.List[0].Type)
				if !ast.IsExported(of) {
					continue
				}
				what += of + "."
			}
			what += d.Name.Name
			seen[what] = true
			if empties[what] == nil && elsewhere[what] == "" {
				missing = append(missing, what)
			}
		}
		return nil
	}))
	require.Empty(t, missing, "add what an empty slice does")
	for what := range elsewhere {
		require.True(t, seen[what], "%s is no function that takes a slice", what)
		require.Nil(t, empties[what], what)
	}
	require.Greater(t, len(seen), 50)
}

// takesSlice reports whether a parameter is a slice, or several values.
func takesSlice(f *ast.FuncType) bool {
	return slices.ContainsFunc(f.Params.List, func(p *ast.Field) bool {
		switch x := p.Type.(type) {
		case *ast.ArrayType:
			return x.Len == nil
		case *ast.Ellipsis:
			return true
		}
		return false
	})
}

// receiver is the name of a receiver's type.
func receiver(x ast.Expr) string {
	for {
		switch y := x.(type) {
		case *ast.StarExpr:
			x = y.X
		case *ast.IndexExpr:
			x = y.X
		case *ast.IndexListExpr:
			x = y.X
		case *ast.Ident:
			return y.Name
		default:
			return ""
		}
	}
}
