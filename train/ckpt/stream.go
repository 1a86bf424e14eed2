package ckpt

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"slices"
)

// An index is written and read a piece at a time: names, of which a checkpoint may have a million,
// are in memory once, in the index itself, and not in text that is made of it or that it is made
// of.

// newJSON returns a writer of JSON to w, whose first error Flush returns.
func newJSON(w io.Writer) *bufio.Writer { return bufio.NewWriterSize(w, 64<<10) }

// put writes text, and v as json.Marshal does.
func put(j *bufio.Writer, text string, v any) {
	j.WriteString(text)
	j.Write(encode(v))
}

// body writes ix as json.Marshal does.
func (ix *index) body(j *bufio.Writer) {
	put(j, `{"sequence":`, ix.Sequence)
	if ix.State != nil {
		put(j, `,"state":`, ix.State)
	}
	j.WriteString(`,"tensors":{`)
	sep := ""
	for _, name := range slices.Sorted(maps.Keys(ix.Tensors)) {
		put(j, sep, name)
		put(j, ":", ix.Tensors[name])
		sep = ","
	}
	put(j, `},"files":`, ix.Files)
	j.WriteString(`,"pieces":[`)
	sep = ""
	for i := range ix.Pieces {
		put(j, sep, &ix.Pieces[i])
		sep = ","
	}
	j.WriteString("]")
	if len(ix.Own) > 0 {
		put(j, `,"own":`, ix.Own)
	}
	if ix.From != "" {
		put(j, `,"from":`, ix.From)
	}
	if len(ix.Others) > 0 {
		put(j, `,"others":`, ix.Others)
	}
	j.WriteString("}")
}

// write writes ix in its envelope: twice over, since its checksum comes before it.
func (ix *index) write(w io.Writer) error {
	sum := crc32.New(castagnoli)
	j := newJSON(sum)
	ix.body(j)
	if err := j.Flush(); err != nil {
		return err
	}
	j = newJSON(w)
	fmt.Fprintf(j, `{"format":%q,"crc32c":%d,"index":`, format, sum.Sum32())
	ix.body(j)
	j.WriteString("}")
	return j.Flush()
}

func (ix *index) text() ([]byte, error) {
	var b bytes.Buffer
	err := ix.write(&b)
	return b.Bytes(), err
}

// summed is a reader that sums what a decoder has taken of it, of a part whose beginning and end the decoder tells.
type summed struct {
	r    io.Reader
	held []byte // what was read from byte at on
	at   int64
	on   bool
	sum  uint32
}

func (s *summed) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.held = append(s.held, p[:n]...)
	return n, err
}

// take lets go of what comes before byte to.
func (s *summed) take(to int64) {
	k := to - s.at
	if s.on {
		s.sum = crc32.Update(s.sum, castagnoli, s.held[:k])
	}
	s.held, s.at = append(s.held[:0], s.held[k:]...), to
}

// taken is take once that is worth moving what is left.
func (s *summed) taken(to int64) {
	if k := to - s.at; 2*k > int64(len(s.held)) {
		s.take(to)
	}
}

var errShape = errors.New("it has something else than an index has")

// object tells f of each key of an object whose opening was read, for f to take the value.
func object(d *json.Decoder, f func(key string) error) error {
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		key, _ := t.(string) // what else a key is, is an error of Token's
		if err := f(key); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// each is object and the like for a value that opens with delim, or is null.
func each(d *json.Decoder, delim json.Delim, f func(key string) error) error {
	switch t, err := d.Token(); {
	case err != nil:
		return err
	case t == nil:
		return nil
	case t != delim:
		return errShape
	}
	if delim == '{' {
		return object(d, f)
	}
	for d.More() {
		if err := f(""); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// readIndexFrom takes text of unknown origin, of which it holds little at once.
func readIndexFrom(r io.Reader) (*index, error) {
	s := &summed{r: r}
	d := json.NewDecoder(s)
	ix, found, sum, kind := (*index)(nil), uint32(0), uint32(0), ""
	err := each(d, '{', func(key string) error {
		switch key {
		case "format":
			return d.Decode(&kind)
		case "crc32c":
			return d.Decode(&sum)
		case "index":
			if kind != format {
				return errFormat
			}
			if t, err := d.Token(); err != nil || t != json.Delim('{') || ix != nil {
				return errors.Join(err, errShape)
			}
			s.take(d.InputOffset() - 1)
			s.on = true
			ix = &index{}
			err := ix.decode(d, s)
			if err == nil {
				s.take(d.InputOffset())
			}
			found, s.on = s.sum, false
			return err
		}
		return d.Decode(new(json.RawMessage))
	})
	if err == nil {
		if _, more := d.Token(); more == nil {
			err = errShape
		} else if !errors.Is(more, io.EOF) {
			err = more
		}
	}
	switch {
	case errors.Is(err, errFormat) || err == nil && kind != format:
		return nil, fmt.Errorf("%s %w %q; this version reads %q", indexName, errFormat, kind, format)
	case err == nil && ix == nil:
		err = errShape
	}
	if err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", indexName, err)
	}
	if found != sum {
		return nil, fmt.Errorf("%s is damaged: its checksum does not match", indexName)
	}
	return ix, nil
}

// decode takes what an index has. Each name is there once, however many pieces have it.
func (ix *index) decode(d *json.Decoder, s *summed) error {
	ix.Tensors, ix.Others = map[string]tensor{}, map[string]other{}
	known := map[string]string{}
	once := func(name string) string {
		if k, ok := known[name]; ok {
			return k
		}
		known[name] = name
		return name
	}
	fields := map[string]any{"sequence": &ix.Sequence, "state": &ix.State, "files": &ix.Files, "own": &ix.Own,
		"from": &ix.From}
	return object(d, func(key string) error {
		switch key {
		case "tensors":
			return each(d, '{', func(name string) error {
				var t tensor
				err := d.Decode(&t)
				t.Type = once(t.Type)
				ix.Tensors[once(name)] = t
				s.taken(d.InputOffset())
				return err
			})
		case "others":
			return each(d, '{', func(name string) error {
				var o other
				err := d.Decode(&o)
				ix.Others[once(name)] = o
				s.taken(d.InputOffset())
				return err
			})
		case "pieces":
			return each(d, '[', func(string) error {
				var p piece
				err := d.Decode(&p)
				p.Name, p.Type = once(p.Name), once(p.Type)
				ix.Pieces = append(ix.Pieces, p)
				s.taken(d.InputOffset())
				return err
			})
		}
		return d.Decode(cmp.Or(fields[key], any(new(json.RawMessage))))
	})
}
