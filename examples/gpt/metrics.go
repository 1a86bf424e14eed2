package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"

	"github.com/goccl/goccl/internal/files"
)

// A file of metrics, -json's, has a line for each step. A run that goes on continues it.

// endLine ends a line that a killed run has left without its end: what is not whole of it goes.
func endLine(f *os.File) error {
	text, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	switch {
	case whole == len(text):
	case json.Valid(text[whole:]): // only its end is missing
		_, err = f.WriteString("\n")
	default:
		err = f.Truncate(int64(whole))
	}
	return err
}

// cutAfter removes from the end the lines of steps after step, which are made again, and returns
// the last step that is left; 0 if there is none. The null device has no lines.
func cutAfter(name string, step int) (last int, err error) {
	if name == os.DevNull {
		return step, nil
	}
	f, err := files.Append(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		return 0, err
	}
	for len(text) > 0 {
		at := bytes.LastIndexByte(bytes.TrimSuffix(text, []byte("\n")), '\n') + 1
		var line struct{ Step int }
		if json.Unmarshal(text[at:], &line) != nil {
			break
		}
		if line.Step <= step {
			last = line.Step
			break
		}
		text = text[:at]
	}
	return last, f.Truncate(int64(len(text)))
}
