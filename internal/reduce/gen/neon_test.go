package main

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var write = flag.Bool("write", false, "write testdata/neon.txt anew, by llvm-mc")

// TestNEONWords compares the words that are written for instructions with those of LLVM's assembler, which the file has.
func TestNEONWords(t *testing.T) {
	const name = "testdata/neon.txt"
	_, words := generateNEON()
	if *write {
		if err := os.WriteFile(name, assembled(t, slices.Sorted(maps.Keys(words))), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for line := range strings.Lines(string(want)) {
		listed[strings.TrimSpace(line)] = true
	}
	for text, w := range words {
		line := fmt.Sprintf("%08x %s", w, text)
		if !listed[line] {
			t.Errorf("%s: not in %s, which go test -args -write makes where there is llvm-mc", line, name)
		}
		delete(listed, line)
	}
	for line := range listed {
		t.Errorf("%s: not used", line)
	}
}

// assembled is a line for each instruction: its word, by llvm-mc, and it.
func assembled(t *testing.T, instructions []string) []byte {
	cmd := exec.Command("llvm-mc", "-triple=aarch64", "-mattr=+fullfp16,+bf16", "-show-encoding")
	cmd.Stdin = strings.NewReader(strings.Join(instructions, "\n"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("llvm-mc: %v\n%s", err, out)
	}
	found := regexp.MustCompile(`encoding: \[0x(..),0x(..),0x(..),0x(..)\]`).FindAllSubmatch(out, -1)
	if len(found) != len(instructions) {
		t.Fatalf("llvm-mc has %d encodings of %d instructions", len(found), len(instructions))
	}
	var b bytes.Buffer
	for i, f := range found { // the first byte is the lowest
		fmt.Fprintf(&b, "%s%s%s%s %s\n", f[4], f[3], f[2], f[1], instructions[i])
	}
	return b.Bytes()
}
