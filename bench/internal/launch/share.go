package launch

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/internal/environ"
	"github.com/goccl/goccl/internal/files"
)

// Joined removes this node's copy of the program, if srun has made one: once all ranks
// have met, each of them runs.
func Joined(getenv func(string) string, l boot.Launch) {
	if copied := environ.BenchSpread.Text(getenv); copied != "" && l.Local == 0 {
		os.Remove(copied)
	}
}

// ofNode are the directories that each node has for itself.
var ofNode = []string{"/tmp", "/var/tmp", "/dev/shm", "/run", "/local", "/scratch/local"}

// local reports whether a file is where other nodes do not see it. What go run has
// built is.
func local(file string) bool {
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	}
	for _, dir := range append([]string{filepath.Clean(os.TempDir())}, ofNode...) {
		if file == dir || strings.HasPrefix(file, dir+string(filepath.Separator)) {
			return true
		}
	}
	return false
}

// places are the directories that all nodes see, as far as can be told.
func places(getenv func(string) string) (dirs []string) {
	cwd, _ := os.Getwd()
	for _, dir := range []string{getenv("PBS_O_WORKDIR"), getenv("SLURM_SUBMIT_DIR"), cwd, getenv("HOME")} {
		if dir != "" && !local(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// allHere reports whether all of these hosts are this machine, by its name or its addresses.
func allHere(hosts []string) bool {
	return !slices.ContainsFunc(hosts, func(h string) bool { return !isHere(h) })
}

func isHere(host string) bool {
	if ip := net.ParseIP(host); ip != nil {
		own, _ := net.InterfaceAddrs()
		return ip.IsLoopback() || slices.ContainsFunc(own,
			func(a net.Addr) bool { n, is := a.(*net.IPNet); return is && n.IP.Equal(ip) })
	}
	self, _ := os.Hostname()
	short, _, _ := strings.Cut(self, ".")
	return host == "localhost" || host == self || host == short || strings.HasPrefix(host, self+".")
}

// share copies a program, by copy, into the first directory that takes it. The copy has a
// directory of its own, which only its owner can write.
func share(program string, dirs []string, copy func(to, from string) error) (copied string, remove func(), err error) {
	if len(dirs) == 0 {
		return "", nil, fmt.Errorf("only this node sees %s, this directory and $HOME; name a directory that all nodes see with -share DIR", program)
	}
	for _, dir := range dirs {
		var own string
		if own, err = os.MkdirTemp(dir, ".goccl-bench-"); err != nil {
			continue
		}
		remove = func() { os.RemoveAll(own) }
		copied = filepath.Join(own, filepath.Base(program))
		if err = copy(copied, program); err == nil {
			return copied, remove, nil
		}
		remove()
	}
	return "", nil, fmt.Errorf("copying %s to where all nodes see it: %w; name a directory with -share DIR", program, err)
}

// refuseShare is the error where no directory takes the copy of the program that all nodes are to see.
func (p *Plan) refuseShare() error {
	if p.shared == nil {
		return nil
	}
	_, remove, err := share(p.Program[0], p.shared, func(string, string) error { return nil })
	if err == nil {
		remove()
	}
	return err
}

// mostProgram is how many bytes a program may have.
const mostProgram = 4 << 30

// copyFile copies a program, and has it on the disk before any other node looks.
func copyFile(to, from string) error {
	in, _, err := files.Open(from, mostProgram)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := files.New(to, os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

// sum is the SHA-256 of a file.
func sum(file string) (string, error) {
	f, _, err := files.Open(file, mostProgram)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Verify refuses to run if this node has another program than the one that the job was
// started with.
func Verify(getenv func(string) string) error {
	want := environ.BenchSum.Text(getenv)
	if want == "" {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program, to compare it with the one that the job was started with: %w", err)
	}
	return verify(self, want)
}

// verify compares a file with the sum it should have.
func verify(file, want string) error {
	host, _ := os.Hostname()
	got, err := sum(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("on %s there is no %s: name a directory that all nodes see with -share DIR", host, file)
	case err != nil:
		return fmt.Errorf("on %s: %w", host, err)
	case got != want:
		return fmt.Errorf("on %s %s is not the program that the job was started with (SHA-256 %.12s, not %.12s): name a directory that all nodes see with -share DIR", host, file, got, want)
	}
	return nil
}

// Sum is this program's SHA-256, shortened; "" if it cannot be read.
func Sum() string {
	self, _ := os.Executable()
	s, _ := sum(self)
	return s[:min(len(s), 16)]
}
