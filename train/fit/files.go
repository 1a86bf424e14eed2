package fit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/data"
	"github.com/goccl/goccl/train/fit/internal/steps"
	"github.com/goccl/goccl/train/fit/internal/units"
	"github.com/goccl/goccl/xla"
	"github.com/goccl/goccl/xla/hlo"
	"github.com/goccl/goccl/xla/nn"
	"github.com/goccl/goccl/xla/nn/models"
)

// Load fills the parameters, frozen ones too, from a checkpoint of ours or of Hugging Face's in dir; rename is that of
// ckpt.LoadOptions. What the checkpoint does not have stays as it is, and is in the report, but for
// adapters. The moving average begins anew with what was loaded.
func (t *Trainer) Load(ctx context.Context, dir string, rename func(name string) string) (*ckpt.Report, error) {
	all := &ckpt.Report{}
	first := true
	fill := func(list []ckpt.Tensor) ([]string, error) {
		r, err := ckpt.LoadWith(ctx, t.u.M.World(), dir, nil, list, ckpt.LoadOptions{Convert: true,
			Partial: true, Rename: rename})
		if err != nil {
			return nil, err
		}
		all.Missing = append(all.Missing, r.Missing...)
		if first {
			all.Unused = r.Unused
		}
		first = false
		all.Unused = slices.DeleteFunc(all.Unused, func(name string) bool { return !slices.Contains(r.Unused, name) })
		return r.Missing, nil
	}
	for _, s := range t.u.Stores {
		if err := s.Load(ctx, fill); err != nil {
			return nil, t.fail(err)
		}
	}
	adapter := map[string]bool{}
	for _, list := range t.u.Params {
		for _, p := range list {
			adapter[p.Name] = p.Adapter
		}
	}
	all.Missing = slices.DeleteFunc(all.Missing, func(name string) bool { return adapter[name] })
	slices.Sort(all.Missing)
	return all, nil
}

// LoadModel is Load of a whole model that Hugging Face has saved, with its head or without. A tensor there that is none
// of the model's, such as a bias or a layer that config.json does not have, is an error.
func (t *Trainer) LoadModel(ctx context.Context, dir string) error {
	has, err := ckpt.Inspect(dir)
	if err != nil {
		return t.fail(err)
	}
	var names []string
	for _, x := range has.Tensors {
		names = append(names, x.Name)
	}
	r, err := t.Load(ctx, dir, models.Rename(names))
	if err != nil {
		return err
	}
	r.Unused = slices.DeleteFunc(r.Unused, idle)
	switch { // on all ranks
	case len(r.Missing) > 0:
		err = fmt.Errorf("fit: %s has no %s", dir, r.Missing[0])
	case len(r.Unused) > 0:
		err = fmt.Errorf("fit: %s has %s, which the model has not: is its config.json that of these weights?", dir, r.Unused[0])
	}
	return t.fail(err)
}

// idle reports whether a tensor says nothing that the model needs: the head of a tied one, which is its embedding, or a
// constant that transformers once saved.
func idle(name string) bool {
	return name == "lm_head.weight" || strings.HasSuffix(name, ".attn.bias") ||
		strings.HasSuffix(name, ".attn.masked_bias") || strings.HasSuffix(name, ".rotary_emb.inv_freq")
}

// Export writes the model to the directory to as Hugging Face lays it out, in files of at most size
// bytes of tensors; 0: in one. Parameters have the type that programs have them in. Adapters are merged into what they
// are beside, which QLoRA's 4 bits are decoded for. Rank 0 writes. config.json is the caller's to write.
func (t *Trainer) Export(ctx context.Context, to string, size int64) error {
	list, err := t.merged(ctx)
	if err != nil {
		return t.fail(err)
	}
	return t.write(ctx, to, list, func(tmp string) error { return ckpt.Export(tmp, to, size, nil) })
}

// peftPrefix is before the names of modules in peft's files.
const peftPrefix = "base_model.model."

// adapterFile is peft's.
const adapterFile = "adapter_model.safetensors"

// ExportAdapters writes what LoRA trains to the directory to as peft's adapter_model.safetensors.
// adapter_config.json is written by package lora.
func (t *Trainer) ExportAdapters(ctx context.Context, to string) error {
	if t.u.Model.LoRA == nil {
		return t.fail(errors.New("fit: ExportAdapters of a model without LoRA"))
	}
	list, err := t.adapters(ctx)
	if err != nil {
		return t.fail(err)
	}
	return t.write(ctx, to, list, func(tmp string) error {
		return ckpt.ExportFile(tmp, to, adapterFile, 0, func(name string, shape []int) (string,
			[]int) {
			return peftPrefix + name, shape
		})
	})
}

// LoadAdapters fills what LoRA trains from a directory of peft's. A tensor there that belongs to none of the model's
// adapters, such as one of an embedding, is an error.
func (t *Trainer) LoadAdapters(ctx context.Context, dir string) error {
	if t.u.Model.LoRA == nil {
		return t.fail(errors.New("fit: LoadAdapters of a model without LoRA"))
	}
	return t.fail(t.l.Load(ctx, func(list []ckpt.Tensor) ([]string, error) {
		r, err := ckpt.LoadWith(ctx, t.u.M.World(), dir, nil, list, ckpt.LoadOptions{Convert: true, Partial: true,
			File: adapterFile, Rename: func(name string) string { return peftPrefix + name }})
		switch { // on all ranks
		case err != nil:
		case len(r.Missing) > 0:
			err = fmt.Errorf("fit: %s has no %s", dir, peftPrefix+r.Missing[0])
		case len(r.Unused) > 0:
			err = fmt.Errorf("fit: %s has %s, which is of none of the model's adapters", dir, r.Unused[0])
		}
		return nil, err
	}))
}

// adapters are what is trained, without its state.
func (t *Trainer) adapters(ctx context.Context) ([]ckpt.Tensor, error) {
	list, err := t.l.Tensors(ctx, true)
	return slices.DeleteFunc(list, func(x ckpt.Tensor) bool {
		return slices.ContainsFunc(steps.Prefixes[1:], func(p string) bool { return strings.HasPrefix(x.Name, p) })
	}), err
}

// write saves tensors beside the directory to, and has rank 0 export them. One that was killed has left its tensors.
func (t *Trainer) write(ctx context.Context, to string, list []ckpt.Tensor, export func(tmp string) error) error {
	world, tmp := t.u.M.World(), filepath.Clean(to)+".export.tmp"
	_, err := data.OnRoot(ctx, world, 0, func() ([]byte, error) { return nil, os.RemoveAll(tmp) })
	if err == nil {
		err = ckpt.Save(ctx, world, tmp, nil, list)
	}
	if err == nil {
		_, err = data.OnRoot(ctx, world, 0, func() ([]byte, error) {
			return nil, errors.Join(export(tmp), os.RemoveAll(tmp))
		})
	}
	return t.fail(err)
}

// merged are the parameters of the model, whole, with adapters merged: each unit's on one of the ranks.
func (t *Trainer) merged(ctx context.Context) (list []ckpt.Tensor, err error) {
	world := t.u.M.World()
	for u := range t.u.Model.Units {
		var ps []nn.Param
		for _, p := range t.u.Params[u] {
			if !p.Adapter {
				ps = append(ps, p)
			}
		}
		if len(ps) == 0 {
			continue
		}
		program, failed := t.u.Program(ctx, t.u.Model.Kind(u)+"_export", func(f *hlo.Func) (out []nn.V) {
			has := map[string]nn.V{}
			t.u.Declare(f, u, has)
			for _, p := range ps {
				out = append(out, t.merge(p, has))
			}
			return out
		})
		w := &units.Walk{T: t.u, Ctx: ctx}
		out := w.Run(program, failed, u)
		for i, p := range ps {
			if w.Err != nil || u%world.Size() != world.Rank() {
				break
			}
			x := ckpt.Tensor{Name: p.Name, Shape: p.Dims}
			if out[i].Type() == hlo.BF16 {
				s := make([]ccl.BFloat16, p.Len())
				x.Data, w.Err = s, xla.Get(out[i], s)
			} else {
				s := make([]float32, p.Len())
				x.Data, w.Err = s, xla.Get(out[i], s)
			}
			list = append(list, x)
		}
		if err := w.End(nil); err != nil {
			return nil, fmt.Errorf("fit: unit %q: %w", t.u.Model.Units[u].Name, err)
		}
	}
	return list, nil
}

// merge is a parameter with its adapters added, in float32, and rounded once.
func (t *Trainer) merge(p nn.Param, has map[string]nn.V) nn.V {
	w, name := has[p.Name], strings.TrimSuffix(p.Name, ".weight")
	a, b := has[name+".lora_A.weight"], has[name+".lora_B.weight"]
	if a == nil || b == nil {
		return w.Add(w.Func().Const(w.Type(), 0)) // a result is no argument
	}
	d := hlo.Dot(b.As(hlo.F32), a.As(hlo.F32), []int{1}, []int{0}, nil, nil)
	if p.Turned {
		d = d.Perm(1, 0)
	}
	_, scale := t.u.Model.LoRA.Of(name)
	return w.As(hlo.F32).Add(d.MulC(scale)).As(w.Type())
}
