package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"
)

// configure sets the flags that a file has and the command line has not. A line of it is NAME VALUE
// or NAME = VALUE, a switch may be NAME alone, and # begins a comment.
func configure(f *flag.FlagSet, name string, text []byte) error {
	given := map[string]bool{}
	f.Visit(func(f *flag.Flag) { given[f.Name] = true })
	where := map[string]int{}
	n := 0
	for line := range bytes.Lines(text) {
		n++
		key, value, err := setting(strings.TrimSpace(string(line)))
		switch x := f.Lookup(key); {
		case err != nil:
		case key == "" && value == "":
			continue
		case x == nil || key == "config" || key == "version":
			err = errors.New("no such flag (-h lists them)")
		case where[key] > 0:
			err = fmt.Errorf("line %d has it already", where[key])
		case value == "" && !isSwitch(x):
			err = errors.New("it needs a value")
		default:
			where[key] = n
			if value == "" {
				value = "true"
			}
			if !given[key] {
				err = f.Set(key, value)
			}
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %s: %w", name, n, key, err)
		}
	}
	return nil
}

// setting is what a line says; both are "" if it says nothing. A value in quotes may have spaces, and a #.
func setting(line string) (key, value string, err error) {
	line = strings.TrimLeft(line, "-")
	end := strings.IndexAny(line, " \t=#")
	if end < 0 {
		return line, "", nil
	}
	key, value = line[:end], strings.TrimSpace(line[end:])
	value = strings.TrimSpace(strings.TrimPrefix(value, "="))
	if value != "" && strings.ContainsRune(`"'`, rune(value[0])) {
		quote := value[:1]
		inside, rest, closed := strings.Cut(value[1:], quote)
		if rest = strings.TrimSpace(rest); !closed || rest != "" && rest[0] != '#' {
			return key, "", fmt.Errorf("%s is no text in quotes", value)
		}
		return key, inside, nil
	}
	if at := strings.IndexByte(value, '#'); at == 0 || at > 0 && strings.ContainsRune(" \t", rune(value[at-1])) {
		value = strings.TrimSpace(value[:at])
	}
	return key, value, nil
}

func isSwitch(f *flag.Flag) bool {
	_, err := strconv.ParseBool(f.DefValue)
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return err == nil && ok && b.IsBoolFlag()
}
