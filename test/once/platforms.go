package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// variant is a way to build the module.
type variant struct {
	goos, goarch string
	cgo          string // CGO_ENABLED
	tags         string
}

// engines are the tags of those over a library, and xla.
const engines = "nccl,rccl,oneccl,mpi,xla"

// variants are those that the checks know, the plainest first. Those with cgo are for a machine with a C compiler.
func variants(cc bool) (all []variant) {
	for _, tags := range []string{"", "noasm"} {
		for _, p := range []string{"linux/amd64", "linux/arm64", "darwin/arm64", "windows/amd64"} {
			goos, goarch, _ := strings.Cut(p, "/")
			all = append(all, variant{goos, goarch, "0", tags})
		}
	}
	for _, tags := range []string{"fault", "nocheck", engines} {
		all = append(all, variant{"linux", "amd64", "0", tags})
	}
	if cc {
		for _, tags := range []string{"", engines} {
			all = append(all, variant{"linux", "amd64", "1", tags})
		}
	}
	return all
}

// pkg is what `go list -json` says of the files of a package.
type pkg struct {
	ImportPath                string
	GoFiles, CgoFiles, SFiles []string
	CFiles, HFiles            []string
	TestGoFiles, XTestGoFiles []string
}

// files names those that are compiled, in each of their roles.
func (p pkg) files() string {
	return fmt.Sprint(p.GoFiles, p.CgoFiles, p.SFiles, p.CFiles, p.HFiles, p.TestGoFiles, p.XTestGoFiles)
}

// platforms says for each variant which packages consist of files that no variant before it put together in the
// same way. A variant that changes none has no line.
func platforms(all []variant, list func(variant) ([]pkg, error)) (lines []string, err error) {
	seen := map[string]bool{}
	for _, v := range all {
		pkgs, err := list(v)
		if err != nil {
			return nil, err
		}
		var changed []string
		for _, p := range pkgs {
			if key := p.ImportPath + " " + p.files(); !seen[key] {
				seen[key] = true
				if len(p.GoFiles)+len(p.CgoFiles)+len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 {
					changed = append(changed, p.ImportPath)
				}
			}
		}
		if len(changed) > 0 {
			tags := v.tags
			if tags == "" {
				tags = "-"
			}
			lines = append(lines, strings.Join(append([]string{v.goos, v.goarch, v.cgo, tags}, changed...), " "))
		}
	}
	return lines, nil
}

// list asks the go command for the packages of the module below the working directory. Packages without a file for
// this variant are among them.
func list(v variant) (pkgs []pkg, err error) {
	cmd := exec.Command("go", "list", "-e", "-tags", v.tags, "-json", "./...")
	cmd.Env = append(os.Environ(), "GOOS="+v.goos, "GOARCH="+v.goarch, "CGO_ENABLED="+v.cgo)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", cmd, err, stderr.Bytes())
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", cmd, err)
		}
		pkgs = append(pkgs, p)
	}
}
