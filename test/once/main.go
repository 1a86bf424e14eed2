// Once prints what the checks have to look at so that they look at everything, and at nothing twice.
//
//	go run ./test/once long       the tests that -short skips or shortens, as arguments of test/halves.sh
//	go run ./test/once platforms  which packages each platform and set of tags changes:
//	                              GOOS GOARCH CGO_ENABLED TAGS PACKAGE.., a line each; TAGS is "-" where there are none
package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

func main() {
	var lines []string
	var err error
	switch what := strings.Join(os.Args[1:], " "); what {
	case "long":
		lines, err = long(".")
	case "platforms":
		lines, err = platforms(variants(compiler()), list)
	default:
		err = fmt.Errorf("%q is nothing that it prints: long, platforms", what)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "once:", err)
		os.Exit(1)
	}
	for _, line := range lines {
		fmt.Println(line)
	}
}

// compiler reports whether there is one for C.
func compiler() bool {
	_, err := exec.LookPath("cc")
	return err == nil
}
