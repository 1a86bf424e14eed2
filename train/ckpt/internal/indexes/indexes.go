// Package indexes reads of a checkpoint's index what tells it from another one, and which files it
// names. It never has the whole index in memory.
package indexes

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"regexp"
	"strconv"

	"github.com/goccl/goccl/train/ckpt/internal/fetch"
	"github.com/goccl/goccl/train/ckpt/internal/slots"
	"github.com/goccl/goccl/train/ckpt/store"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// envelope is what stands before the body of an index, which one more byte follows.
var envelope = regexp.MustCompile(`^\{"format":"goccl-ckpt/1","crc32c":(\d+),"index":`)

// Sum is the checksum of the body of an index. It is good if the index says the same. That of an empty
// index is 0, and not good. size is that of the index; that of one which was cut to as many bytes as an
// empty one has is 0, as if nothing were left.
func Sum(o store.Object) (size int64, sum uint32, good bool, err error) {
	empty, err := slots.IsEmpty(o)
	if size = o.Size(); err != nil || empty || size == 0 {
		return size, 0, false, err
	}
	sum, good, err = sumOf(o)
	if slots.Empty(size) {
		size = 0
	}
	return size, sum, good, err
}

// sumOf is Sum of what is not empty.
func sumOf(o store.Object) (sum uint32, good bool, err error) {
	head := make([]byte, min(64, o.Size()))
	if _, err := o.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return 0, false, err
	}
	says, from := uint64(0), int64(0)
	if m := envelope.FindSubmatch(head); m != nil {
		from = int64(len(m[0]))
		says, err = strconv.ParseUint(string(m[1]), 10, 32)
		good = err == nil
	}
	body, end := crc32.New(castagnoli), &bytes.Buffer{}
	if _, err = io.Copy(body, io.NewSectionReader(o, from, max(0, o.Size()-from-1))); err != nil {
		return 0, false, err
	}
	if _, err = io.Copy(end, io.NewSectionReader(o, o.Size()-1, 1)); err != nil {
		return 0, false, err
	}
	return body.Sum32(), good && uint64(body.Sum32()) == says && end.String() == "}", nil
}

// File is one that an index names.
type File struct {
	Name string   `json:"name"`
	Size int64    `json:"size"`
	Sums []uint32 `json:"crc32c"`
}

// Files reads which files an index names.
func Files(o store.Object) (list []File, err error) {
	d := json.NewDecoder(io.NewSectionReader(o, 0, o.Size()))
	err = cmp.Or(enter(d, "index"), enter(d, "files"))
	if err == nil {
		err = d.Decode(&list)
	}
	return list, err
}

// enter reads an object up to the value of a key. It has one token in memory at a time.
func enter(d *json.Decoder, want string) error {
	_, err := d.Token()
	for err == nil && d.More() {
		var key json.Token
		if key, err = d.Token(); err == nil && key == want {
			return nil
		}
		for depth := 0; err == nil; {
			var t json.Token
			if t, err = d.Token(); t == json.Delim('{') || t == json.Delim('[') {
				depth++
			} else if t == json.Delim('}') || t == json.Delim(']') {
				depth--
			}
			if depth == 0 {
				break
			}
		}
	}
	return cmp.Or(err, fmt.Errorf("the index has no %q", want))
}

// Damaged reports whether b, which a part has from byte at on, is a block with another checksum than
// those of the part. A b that begins where no block does, or ends before one, is not compared.
func Damaged(sums []uint32, size int64, b []byte, at int64) bool {
	k := at / fetch.Block
	whole := at%fetch.Block == 0 && int64(len(b)) == min(fetch.Block, size-at)
	return whole && k < int64(len(sums)) && crc32.Checksum(b, castagnoli) != sums[k]
}
