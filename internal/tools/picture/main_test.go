package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const page = `# Measured
## allreduce-2

15 rounds

  operation            bytes      ours us      best us  of            ratio 95 %            bar
  allreduce                8         0.23         0.43  Open MPI/UCX   0.54 0.51..0.56    0.65
  allreduce          1048576       100.00       200.00  Open MPI       0.50 0.49..0.51    0.70

## allreduce-4
  allreduce                8         9.00         9.00  Open MPI       1.00 1.00..1.00    0.80
`

func TestDraw(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "page.md"), filepath.Join(dir, "x.svg")
	if err := os.WriteFile(in, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := rows(in, "allreduce-2")
	if err != nil || len(all) != 2 || all[1] != (point{1048576, 100, 200}) {
		t.Fatal(all, err)
	}
	if err := picture(in, out); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(strings.NewReader(string(text))); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(string(text), "goccl") || strings.Contains(string(text), "NaN") {
		t.Fatal("not the picture that was asked for")
	}
	if err := picture(filepath.Join(dir, "none.md"), out); err == nil {
		t.Fatal("a page that is not there was drawn")
	}
	if _, err := rows(in, "tcp-2"); err == nil {
		t.Fatal("a section that is not there was read")
	}
}
