package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
)

// A file of metrics, -json's, has a line for each step. A run that goes on continues it.

// regular reports whether a file has lines that can be taken away: a pipe has none.
func regular(name string) (bool, error) {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular(), err
}

// endLine ends a line that a killed run has left without its end: what is not whole of it goes.
func endLine(name string) error {
	if is, err := regular(name); !is {
		return err
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	if !json.Valid(text[whole:]) {
		return os.Truncate(name, int64(whole))
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0) // only its end is missing
	if err != nil {
		return err
	}
	_, err = f.WriteString("\n")
	return errors.Join(err, f.Close())
}

// cutAfter removes from the end the lines of steps after step, which are made again, and returns the last step that is left; 0 if
// there is none.
func cutAfter(name string, step int) (last int, err error) {
	if is, err := regular(name); !is {
		return step, err
	}
	text, err := os.ReadFile(name)
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
	return last, os.Truncate(name, int64(len(text)))
}
