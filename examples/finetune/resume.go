package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccl/goccl/internal/files"
	"github.com/goccl/goccl/train/data"
)

// A setting is a flag that a run must be resumed with as it was begun. Sum says what is in the file or directory that
// the flag names, which may lie elsewhere then.
type setting struct{ Flag, Value, Sum string }

// settings are those of this run. Rank 0 alone reads the files.
func (t *tuner) settings(ctx context.Context) (list []setting, err error) {
	c := t.c
	text, err := data.OnRoot(ctx, t.world, 0, func() ([]byte, error) {
		model, err := sumModel(c.model)
		rows := sha256.New()
		f, size, err1 := files.Open(c.data, 1<<62)
		if err1 == nil {
			err1 = errors.Join(add(rows, f, size, size), f.Close())
		}
		list := []setting{{"-model", c.model, model}, {"-data", c.data, fmt.Sprintf("%x", rows.Sum(nil))}}
		for _, s := range []struct {
			flag  string
			value any
		}{{"-kind", c.kind}, {"-rows", c.Rows}, {"-context", c.context}, {"-seed", c.Fit.Seed}, {"-lora", c.lora},
			{"-rank", c.rank}, {"-alpha", c.alpha}, {"-rslora", c.stable}, {"-dropout", c.dropout}, {"-base", c.Fit.Base}} {
			list = append(list, setting{Flag: s.flag, Value: fmt.Sprint(s.value)})
		}
		text, err2 := json.Marshal(list)
		return text, errors.Join(err, err1, err2)
	})
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	return list, err
}

// resumes says whether a checkpoint is one of this run.
func (t *tuner) resumes(dir string, state json.RawMessage) error {
	var begun []setting
	if err := json.Unmarshal(state, &begun); err != nil || len(begun) != len(t.begun) {
		return fmt.Errorf("%s is no checkpoint of this finetune: it has other settings", dir)
	}
	var were, are []string
	for i, is := range t.begun {
		was := begun[i]
		if is == was || is.Sum == was.Sum && is.Sum != "" {
			continue
		}
		were = append(were, fmt.Sprintf("%s=%s", was.Flag, was.Value))
		if is.Value == was.Value {
			is.Value += " (changed since then)"
		}
		are = append(are, fmt.Sprintf("%s=%s", is.Flag, is.Value))
	}
	if were == nil {
		return nil
	}
	return fmt.Errorf("%s was begun with %s, and -resume is given %s: give what it was begun with, or begin another run "+
		"in another directory", dir, strings.Join(were, " "), strings.Join(are, " "))
}

// sumModel sums what a model's directory has of the model and its tokenizer. Of weights 1024 pieces of each file are
// read: what training changes, it changes everywhere.
func sumModel(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, e := range entries {
		name := e.Name()
		weights := strings.HasSuffix(name, ".safetensors")
		if !weights && !slices.Contains([]string{"config.json", "tokenizer.json", "tokenizer_config.json",
			"chat_template.jinja", "generation_config.json", "model.safetensors.index.json"}, name) {
			continue
		}
		f, size, err := files.OpenIn(dir, name, 1<<62)
		if err != nil {
			return "", err
		}
		most := size
		if weights {
			most = 1024 * piece
		}
		fmt.Fprintln(h, name)
		if err := errors.Join(add(h, f, size, most), f.Close()); err != nil {
			return "", fmt.Errorf("%s: %w", filepath.Join(dir, name), err)
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}

// piece is how many bytes are read at one place.
const piece = 4 << 10

// add adds the size of f, and all of it, or pieces at even distances that have most bytes together.
func add(h hash.Hash, f io.ReaderAt, size, most int64) error {
	fmt.Fprintln(h, size)
	if size <= most {
		_, err := io.Copy(h, io.NewSectionReader(f, 0, size))
		return err
	}
	for at := int64(0); at < most; at += piece {
		if _, err := io.Copy(h, io.NewSectionReader(f, at/piece*(size/(most/piece)), piece)); err != nil {
			return err
		}
	}
	return nil
}
