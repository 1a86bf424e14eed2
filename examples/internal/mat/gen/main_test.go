package main

import (
	"os"
	"testing"
)

// TestGenerated compares the files in the package with what this program makes.
func TestGenerated(t *testing.T) {
	files, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile("../" + name)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s is not what gen makes: run go generate in package mat", name)
		}
	}
}
