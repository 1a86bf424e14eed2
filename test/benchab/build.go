package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// variable tells a program of [programs] by how many percent its calls are to be longer.
const variable = "GOCCL_TEST_SLOWDOWN"

// plant makes the calls longer. It takes the place of a method of bench's harness.
//
//go:embed testdata/plant.go
var plant []byte

// method is what plant replaces, and what it calls the original.
const method, renamed = "func (t *test[T]) call(st *set[T]) error {", "func (t *test[T]) unslowed(st *set[T]) error {"

// programs builds bench so that variable can slow it down, twice, since two programs are rarely one file. Bench itself
// knows nothing of it: the compiler is shown other sources than there are.
func programs(dir string) (sides [2]string, err error) {
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/goccl/goccl/bench/internal/harness").Output()
	if err != nil {
		return sides, fmt.Errorf("finding bench's sources: %w", err)
	}
	harness := strings.TrimSpace(string(out))
	call, err := os.ReadFile(filepath.Join(harness, "call.go"))
	if err != nil {
		return sides, err
	}
	if n := strings.Count(string(call), method); n != 1 {
		return sides, fmt.Errorf("call.go has %q %d times: build.go and testdata/plant.go must follow what has changed there", method, n)
	}
	shown := map[string]map[string]string{"Replace": {}}
	for name, text := range map[string]string{"call.go": strings.Replace(string(call), method, renamed, 1),
		"plant.go": string(plant)} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return sides, err
		}
		shown["Replace"][filepath.Join(harness, name)] = path
	}
	text, err := json.Marshal(shown)
	if err != nil {
		return sides, err
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		return sides, err
	}
	for i := range sides {
		sides[i] = filepath.Join(dir, fmt.Sprintf("bench-%d", i))
		cmd := exec.Command("go", "build", "-overlay", overlay, "-o", sides[i], "github.com/goccl/goccl/bench")
		if out, err := cmd.CombinedOutput(); err != nil {
			return sides, fmt.Errorf("%v: %w\n%s", cmd, err, out)
		}
	}
	return sides, nil
}
