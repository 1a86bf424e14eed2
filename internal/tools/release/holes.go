package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// whole are the first versions of modules without the last hole in them that the list knows, and
// that hole. It is kept by hand, so that the check needs no network: before a release, compare it
// with pkg.go.dev/vuln.
var whole = map[string]struct{ version, hole string }{
	"github.com/gogo/protobuf":            {"v1.3.2", "CVE-2021-3121"},
	"github.com/prometheus/client_golang": {"v1.11.1", "CVE-2022-21698"},
	"golang.org/x/crypto":                 {"v0.45.0", "CVE-2025-58181"},
	"golang.org/x/image":                  {"v0.18.0", "CVE-2024-24792"},
	"golang.org/x/net":                    {"v0.45.0", "CVE-2025-58190"},
	"golang.org/x/oauth2":                 {"v0.27.0", "CVE-2025-22868"},
	"golang.org/x/sys":                    {"v0.1.0", "CVE-2022-29526"},
	"golang.org/x/text":                   {"v0.3.8", "CVE-2022-32149"},
	"google.golang.org/grpc":              {"v1.56.3", "CVE-2023-44487"},
	"google.golang.org/protobuf":          {"v1.33.0", "CVE-2024-24786"},
	"gopkg.in/yaml.v2":                    {"v2.2.8", "CVE-2019-11254"},
	"gopkg.in/yaml.v3":                    {"v3.0.1", "CVE-2022-28948"},
}

// noHoles is an error where a module of the tree requires another in a version with a known hole.
// It returns how many modules there are.
func noHoles(root string) (modules int, err error) {
	files, err := output(root, "git", "ls-files", "-co", "--exclude-standard", "go.mod", "*/go.mod")
	if err != nil {
		return 0, err
	}
	for _, name := range strings.Fields(files) {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return 0, err
		}
		if err := holes(name, text); err != nil {
			return 0, err
		}
		modules++
	}
	if modules == 0 {
		return 0, fmt.Errorf("no go.mod is known to git in %s", root)
	}
	return modules, nil
}

// holes is an error that names the first such requirement of one go.mod.
func holes(name string, text []byte) error {
	m, err := modfile.Parse(name, text, nil)
	if err != nil {
		return err
	}
	for _, r := range m.Require {
		if w, known := whole[r.Mod.Path]; known && semver.Compare(r.Mod.Version, w.version) < 0 {
			return fmt.Errorf("%s requires %s %s, which has %s: %s is the first without", name, r.Mod.Path, r.Mod.Version,
				w.hole, w.version)
		}
	}
	return nil
}
