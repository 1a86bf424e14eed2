package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"
)

// asUser does what README tells users without a checkout to do, with the tree in the place of the published module.
func asUser(root, work string, v version) error {
	number := v.number
	proxy, empty, bin := filepath.Join(work, "proxy"), filepath.Join(work, "empty"), filepath.Join(work, "bin")
	for _, dir := range []string{proxy, empty, bin} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	for _, dir := range append([]string{"."}, nested...) {
		if err := publish(root, dir, proxy, "v"+number); err != nil {
			return err
		}
	}
	env, err := environment(work, proxy, bin)
	if err != nil {
		return err
	}
	at := func(args ...string) (string, error) {
		c := exec.Command(args[0], args[1:]...)
		c.Dir, c.Env = empty, env
		out, err := c.CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
		}
		return string(out), nil
	}

	program, err := example(filepath.Join(root, "README.md"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(empty, "main.go"), []byte(program), 0o600); err != nil {
		return err
	}
	for _, step := range []struct {
		args []string
		want string // is in its output
	}{
		{[]string{"go", "mod", "init", "example.com/empty"}, ""},
		{[]string{"go", "get", modulePath("ccl") + "@v" + number}, ""},
		{[]string{"go", "build", "-o", filepath.Join(bin, "prog"), "."}, ""},
		{[]string{filepath.Join(bin, "prog")}, "rank 0 of 1"},
		{[]string{"go", "install", modulePath("bench/goccl-bench") + "@v" + number}, ""},
		{[]string{filepath.Join(bin, "goccl-bench"), "-op", "allreduce", "-e", "1K"}, "# goccl " + v.says},
		{[]string{filepath.Join(bin, "goccl-bench"), "launch", "-np", "2", "--", filepath.Join(bin, "prog")}, "rank 1 of 2"},
	} {
		out, err := at(step.args...)
		if err != nil {
			return err
		}
		if !strings.Contains(out, step.want) {
			return fmt.Errorf("%s: no %q in\n%s", strings.Join(step.args, " "), step.want, out)
		}
	}
	fmt.Printf("release: README's example and bench, from an empty module: ok\n")

	for _, dir := range nested {
		if _, err := at("go", "get", modulePath(dir)+"@v"+number); err != nil {
			return err
		}
		packages, err := at("go", "list", modulePath(dir)+"/...")
		if err != nil {
			return err
		}
		if _, err := at(append([]string{"go", "build", "-o", os.DevNull}, strings.Fields(packages)...)...); err != nil {
			return err
		}
		fmt.Printf("release: %s, from an empty module: ok\n", modulePath(dir))
	}
	return nil
}

// modulePath returns the import path of a directory of the tree.
func modulePath(dir string) string { return path.Join(goccl, dir) }

// publish writes the module in a directory of the tree as files of a module proxy.
func publish(root, dir, proxy, version string) error {
	m := module.Version{Path: modulePath(dir), Version: version}
	at := filepath.Join(proxy, m.Path, "@v")
	if err := os.MkdirAll(at, 0o700); err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(root, dir, "go.mod"))
	if err != nil {
		return err
	}
	info, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{version, time.Now().UTC()})
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{version + ".mod": mod, version + ".info": info,
		"list": []byte(version + "\n")} {
		if err := os.WriteFile(filepath.Join(at, name), text, 0o600); err != nil {
			return err
		}
	}
	z, err := os.Create(filepath.Join(at, version+".zip"))
	if err != nil {
		return err
	}
	defer z.Close()
	if err := modzip.CreateFromDir(z, m, filepath.Join(root, dir)); err != nil {
		return fmt.Errorf("the zip file of %s: %w", m, err)
	}
	return z.Close()
}

// environment is that of a user with an empty module cache. What others have published comes from the cache that is
// here, or from where this machine gets modules.
func environment(work, proxy, bin string) ([]string, error) {
	out, err := output("", "go", "env", "-json", "GOMODCACHE", "GOPROXY")
	if err != nil {
		return nil, err
	}
	var now struct{ GOMODCACHE, GOPROXY string }
	if err := json.Unmarshal([]byte(out), &now); err != nil {
		return nil, err
	}
	return append(os.Environ(),
		"GOPROXY=file://"+proxy+",file://"+filepath.Join(now.GOMODCACHE, "cache/download")+","+now.GOPROXY,
		"GONOSUMDB="+modulePath("."), "GOMODCACHE="+filepath.Join(work, "cache"), "GOFLAGS=-modcacherw", "GOWORK=off",
		"GOBIN="+bin,
		"CGO_ENABLED=1"), nil
}

var goBlock = regexp.MustCompile("(?s)```go\n(package main\n.*?)```")

// example returns the first whole program of a document.
func example(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	m := goBlock.FindSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("%s has no Go program", file)
	}
	return string(m[1]), nil
}
