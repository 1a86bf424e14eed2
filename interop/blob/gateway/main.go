// Command gateway serves a directory as an S3 server, by Versity's gateway, for the tests of package
// blob: gateway ADDRESS ACCESS SECRET DIRECTORY.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

func main() {
	if err := serve(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}

func serve(args []string) error {
	if len(args) != 4 {
		return fmt.Errorf("%d arguments, not ADDRESS ACCESS SECRET DIRECTORY", len(args))
	}
	dir := args[3]
	attributes := filepath.Join(filepath.Dir(dir), "attributes")
	if err := os.MkdirAll(attributes, 0o777); err != nil {
		return err
	}
	side, err := meta.NewSideCar(attributes)
	if err != nil {
		return err
	}
	be, err := posix.New(dir, side, posix.PosixOpts{SideCarDir: attributes, Concurrency: 64})
	if err != nil {
		return err
	}
	return embedgw.RunVersityGW(context.Background(), be, &embedgw.Config{RootUserAccess: args[1], RootUserSecret: args[2],
		Ports: []string{args[0]}, MaxConnections: 1000, MaxRequests: 1000, MultipartMaxParts: 10000, Quiet: true})
}
