package ckpt

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
)

const (
	indexName = "index.json"
	format    = "goccl-ckpt/1"
)

type tensor struct {
	Type  string `json:"type"`
	Shape []int  `json:"shape"`
}

type file struct {
	Name string   `json:"name"`
	Size int64    `json:"size"`
	Sums []uint32 `json:"crc32c"` // of each 4 MiB; none for the file of another program
}

// part is what a rank says of its file.
type part struct {
	file
	Pieces []piece `json:"pieces"`
}

type index struct {
	State   json.RawMessage   `json:"state"`
	Tensors map[string]tensor `json:"tensors"`
	Files   []file            `json:"files"`
	Pieces  []piece           `json:"pieces"`

	of map[string][]piece // Pieces by tensor
}

type envelope struct {
	Format string          `json:"format"`
	Sum    uint32          `json:"crc32c"` // of index
	Index  json.RawMessage `json:"index"`
}

func (ix *index) text() ([]byte, error) {
	body, err := json.Marshal(ix)
	if err != nil {
		return nil, err
	}
	return json.Marshal(envelope{format, crc32.Checksum(body, castagnoli), body})
}

// readIndex is the index of dir, as text: its own, else one of what another program has written there.
func readIndex(dir string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(dir, indexName))
	if !errors.Is(err, os.ErrNotExist) {
		return text, err
	}
	ix, other := foreign(dir)
	if other != nil {
		return nil, other
	}
	if ix == nil {
		return nil, err
	}
	return ix.text()
}

// parseIndex takes text of unknown origin: what it returns refers to nothing outside of what it describes.
func parseIndex(text []byte) (*index, error) {
	var e envelope
	if err := json.Unmarshal(text, &e); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", indexName, err)
	}
	if e.Format != format {
		return nil, fmt.Errorf("%s has format %q; this version reads %q", indexName, e.Format, format)
	}
	if crc32.Checksum(e.Index, castagnoli) != e.Sum {
		return nil, fmt.Errorf("%s is damaged: its checksum does not match", indexName)
	}
	ix := &index{of: map[string][]piece{}}
	if err := json.Unmarshal(e.Index, ix); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", indexName, err)
	}
	for _, f := range ix.Files {
		blocks := f.Size/block + min(f.Size%block, 1)
		if f.Size < 0 || f.Sums != nil && int64(len(f.Sums)) != blocks || !plain(f.Name) {
			return nil, fmt.Errorf("%s: file %q of %d bytes with %d checksums", indexName, f.Name, f.Size, len(f.Sums))
		}
	}
	for name, t := range ix.Tensors {
		if _, err := whole(name, t.Type, t.Shape); err != nil {
			return nil, fmt.Errorf("%s: %w", indexName, err)
		}
	}
	for i := range ix.Pieces {
		p := &ix.Pieces[i]
		if err := p.check(); err != nil {
			return nil, fmt.Errorf("%s: %w", indexName, err)
		}
		t, ok := ix.Tensors[p.Name]
		if !ok || t.Type != p.Type || !slices.Equal(t.Shape, p.Shape) {
			return nil, fmt.Errorf("%s: a piece of tensor %q is not of its shape and type", indexName, p.Name)
		}
		if p.File < 0 || p.File >= len(ix.Files) || p.At < 0 || p.At > ix.Files[p.File].Size || int64(p.Hi-p.Lo) > (ix.Files[p.File].Size-p.At)/int64(dtypes[p.Type]) {
			return nil, fmt.Errorf("%s: a piece of tensor %q is not in its file", indexName, p.Name)
		}
		ix.of[p.Name] = append(ix.of[p.Name], *p)
	}
	return ix, nil
}

// plain reports whether name is that of a file in the directory itself.
func plain(name string) bool {
	return name != "" && name == filepath.Base(name) && filepath.IsLocal(name)
}
