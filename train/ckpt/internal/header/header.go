// Package header reads the JSON with which a file of safetensors begins, as strictly as safetensors'
// own reader does.
package header

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// Metadata is what no tensor can be named.
	Metadata = "__metadata__"
	maxDepth = 127 // what safetensors itself accepts
)

// Bits are the types of safetensors 0.8, and the sizes of their elements.
var Bits = map[string]uint64{"BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8,
	"F8_E4M3": 8,
	"F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32,
	"F32": 32,
	"C64": 64, "F64": 64, "I64": 64, "U64": 64}

// Entry is a tensor in a header of unknown origin: its type, one of Bits, its shape, and the bytes
// Lo to Hi of the data, which follow the header.
type Entry struct {
	Type   string
	Shape  []uint64
	Lo, Hi uint64
}

// Parse lists the tensors of a header by name, where size bytes of data follow it: each byte
// belongs to one tensor. What safetensors' own reader refuses is an error.
func Parse(text []byte, size uint64) (map[string]*Entry, error) {
	es, err := parseEntries(text)
	if err != nil {
		return nil, err
	}
	return es, checkLayout(es, size)
}

// checkLayout makes sure that the tensors follow one another, without holes, from the first byte of
// the data to the last.
func checkLayout(es map[string]*Entry, size uint64) error {
	names := slices.SortedFunc(maps.Keys(es), func(a, b string) int {
		return cmp.Or(cmp.Compare(es[a].Lo, es[b].Lo), cmp.Compare(es[a].Hi, es[b].Hi), strings.Compare(a, b))
	})
	at := uint64(0)
	for _, name := range names {
		e := es[name]
		n, overflow := uint64(1), false
		for _, v := range append(slices.Clone(e.Shape), Bits[e.Type]) {
			var high uint64
			high, n = bits.Mul64(n, v)
			overflow = overflow || high > 0
		}
		switch {
		case e.Lo != at || e.Hi < e.Lo:
			return fmt.Errorf("tensor %q lies between bytes %d and %d, where the one before it ends at %d", name, e.Lo, e.Hi, at)
		case overflow || n%8 != 0 || n/8 != e.Hi-e.Lo:
			return fmt.Errorf("tensor %q: %s of shape %v does not take the %d bytes from %d to %d", name, e.Type, e.Shape,
				e.Hi-e.Lo, e.Lo, e.Hi)
		}
		at = e.Hi
	}
	if at != size {
		return fmt.Errorf("the tensors have %d bytes, and the file has %d for them", at, size)
	}
	return nil
}

// parseEntries reads the JSON of a header, as strictly as serde does for the types of safetensors:
// names are compared exactly, no field is missing or there twice, numbers are whole. Of tensors
// with one name the last one counts.
func parseEntries(text []byte) (map[string]*Entry, error) {
	if err := strict(text); err != nil {
		return nil, err
	}
	es, meta := map[string]*Entry{}, false
	err := members(text, func(name string, value []byte) error {
		if name != Metadata {
			e, err := parseEntry(value)
			if err != nil {
				return fmt.Errorf("tensor %q: %w", name, err)
			}
			es[name] = e
			return nil
		}
		if meta {
			return errors.New(Metadata + " is there twice")
		}
		meta = true
		if string(value) == "null" {
			return nil
		}
		return members(value, func(key string, value []byte) error {
			if value[0] != '"' {
				return fmt.Errorf("%s: %q is not a string", Metadata, key)
			}
			return nil
		})
	})
	return es, err
}

// parseEntry reads a tensor's entry: an object, or its three fields in a list, which serde takes, too.
func parseEntry(value []byte) (*Entry, error) {
	var fields [3][]byte
	names := []string{"dtype", "shape", "data_offsets"}
	if value[0] == '[' {
		list, err := elements(value)
		if err != nil || len(list) != len(fields) {
			return nil, fmt.Errorf("a list with %d fields, not 3", len(list))
		}
		for i := range fields {
			fields[i] = list[i]
		}
	} else if err := members(value, func(name string, value []byte) error {
		i := slices.Index(names, name)
		switch {
		case i < 0:
			return nil
		case fields[i] != nil:
			return fmt.Errorf("%s is there twice", name)
		}
		fields[i] = slices.Clone(value)
		return nil
	}); err != nil {
		return nil, err
	}
	for i, f := range fields {
		if f == nil {
			return nil, fmt.Errorf("%s is missing", names[i])
		}
	}
	e := &Entry{}
	var err error
	if e.Type, err = parseType(fields[0]); err != nil {
		return nil, err
	}
	if e.Shape, err = numbers(fields[1]); err != nil {
		return nil, fmt.Errorf("shape: %w", err)
	}
	offsets, err := numbers(fields[2])
	if err != nil || len(offsets) != 2 {
		return nil, errors.New("data_offsets are not two whole numbers")
	}
	e.Lo, e.Hi = offsets[0], offsets[1]
	return e, nil
}

// parseType reads the name of a type: a string, or {"F32": null}, which serde takes, too.
func parseType(value []byte) (name string, err error) {
	if value[0] == '{' {
		n := 0
		err = members(value, func(key string, value []byte) error {
			if n++; n > 1 || string(value) != "null" {
				return errors.New("dtype is no name")
			}
			name = key
			return nil
		})
	} else if err = json.Unmarshal(value, &name); err != nil || value[0] != '"' {
		err = errors.New("dtype is no name")
	}
	if _, known := Bits[name]; err == nil && !known {
		err = fmt.Errorf("type %q is not one of safetensors", name)
	}
	return name, err
}

// numbers are those of a list of whole numbers.
func numbers(value []byte) (out []uint64, err error) {
	list, err := elements(value)
	if err != nil {
		return nil, err
	}
	for _, v := range list {
		n, err := strconv.ParseUint(string(v), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not a whole number", v)
		}
		out = append(out, n)
	}
	return out, nil
}

// elements are the values in a list, of JSON that is valid.
func elements(value []byte) (list []json.RawMessage, err error) {
	if value[0] != '[' {
		return nil, errors.New("it is not a list")
	}
	return list, json.Unmarshal(value, &list)
}

// members calls f with each name and value in an object, of JSON that is valid, in their order.
func members(object []byte, f func(name string, value []byte) error) error {
	d := json.NewDecoder(bytes.NewReader(object))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return errors.New("it is not an object")
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		if err := f(name.(string), bytes.TrimSpace(value)); err != nil {
			return err
		}
	}
	return nil
}

// strict is what serde refuses beyond what encoding/json does: half of a surrogate pair, numbers
// that no float64 holds, and deep nesting.
func strict(text []byte) error {
	if !utf8.Valid(text) {
		return errors.New("it is not UTF-8")
	}
	if !json.Valid(text) {
		var v json.RawMessage
		return fmt.Errorf("it is not JSON: %w", json.Unmarshal(text, &v))
	}
	depth := 0
	for i := 0; i < len(text); {
		switch b := text[i]; {
		case b == '"':
			n, err := stringLength(text[i:])
			if err != nil {
				return err
			}
			i += n
			continue
		case b == '[' || b == '{':
			if depth++; depth > maxDepth {
				return fmt.Errorf("it is nested more than %d deep", maxDepth)
			}
		case b == ']' || b == '}':
			depth--
		case b == '-' || '0' <= b && b <= '9':
			n := 1
			for i+n < len(text) && strings.IndexByte("0123456789+-.eE", text[i+n]) >= 0 {
				n++
			}
			if _, err := strconv.ParseFloat(string(text[i:i+n]), 64); err != nil {
				return fmt.Errorf("a number is out of range: %w", err)
			}
			i += n
			continue
		}
		i++
	}
	return nil
}

// stringLength is how many bytes the string has with which text, valid JSON, begins, if it says no
// half of a surrogate pair.
func stringLength(text []byte) (int, error) {
	escape := func(i int) uint64 { // 0: there is none
		if i+6 > len(text) || text[i] != '\\' || text[i+1] != 'u' {
			return 0
		}
		v, _ := strconv.ParseUint(string(text[i+2:i+6]), 16, 32)
		return v
	}
	i := 1
	for text[i] != '"' {
		v := escape(i)
		switch {
		case 0xd800 <= v && v < 0xdc00 && 0xdc00 <= escape(i+6) && escape(i+6) < 0xe000:
			i += 12
		case 0xd800 <= v && v < 0xe000:
			return 0, fmt.Errorf("%q is half of a character", text[i:i+6])
		case v > 0:
			i += 6
		case text[i] == '\\':
			i += 2
		default:
			i++
		}
	}
	return i + 1, nil
}
