package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/goccl/goccl/train/data/chat/internal/python"
)

// decode makes a value of JSON. Objects keep the order of their fields.
func decode(raw []byte) (v any, err error) {
	if !json.Valid(raw) {
		return nil, errors.New("it is no JSON")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	defer python.Rescue(&err)
	return decodeNext(d), nil
}

func decodeNext(d *json.Decoder) any {
	t, err := d.Token()
	if err != nil {
		panic(python.Failed(0, "%v", err))
	}
	switch t := t.(type) {
	case json.Delim:
		if t == '[' {
			l := &python.List{}
			for d.More() {
				l.Items = append(l.Items, decodeNext(d))
			}
			d.Token()
			return l
		}
		o := python.NewDict()
		for d.More() {
			key := decodeNext(d)
			o.Set(key, decodeNext(d))
		}
		d.Token()
		return o
	case json.Number:
		if i, err := t.Int64(); err == nil {
			return i
		}
		if !strings.ContainsAny(t.String(), ".eE") { // a float would be written with other digits
			panic(python.Failed(0, "%s is no integer of 64 bits", t))
		}
		f, err := t.Float64()
		if err != nil {
			panic(python.Failed(0, "%v", err))
		}
		return f
	}
	return t // a string, a bool, nil
}
