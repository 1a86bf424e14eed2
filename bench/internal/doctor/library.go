package doctor

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/goccl/goccl/internal/engine"
)

// library is a shared library for engines or launchers, as it was found on this node.
type library struct{ Name, Path, Version string }

// parts are the libraries to look for besides the backends' own, by the names of their files.
var parts = []struct {
	name  string
	files []string
}{
	{"cuda", []string{"libcuda.so.1"}},
	{"cudart", []string{"libcudart.so.13", "libcudart.so.12", "libcudart.so"}},
	{"hip", []string{"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"}},
	{"level zero", []string{"libze_loader.so.1"}},
	{"libfabric", []string{"libfabric.so.1"}},
	{"ucx", []string{"libucp.so.0"}},
	{"nccl net plugin", []string{"libnccl-net.so", "libnccl-net-ofi.so", "librccl-net.so"}},
}

// roots are variables that name where a library is installed.
var roots = []string{"NCCL_HOME", "CUDA_HOME", "ROCM_PATH", "CCL_ROOT", "I_MPI_ROOT", "MPICH_DIR", "CRAY_MPICH_DIR",
	"MPI_HOME", "CONDA_PREFIX"}

// libraries finds them where the loader would, under root, which is / but in tests.
func libraries(root string, getenv func(string) string) (found []library) {
	dirs := searched(root, getenv)
	find := func(name, variable string, files []string) {
		named := ""
		if variable != "" {
			named = getenv(variable)
		}
		file := named
		switch {
		case named == "none": // GOCCL_MPI_LIB: without MPI
			return
		case named == "":
			file = first(root, dirs, files)
		case !strings.Contains(named, "/"): // the loader looks for it
			file = first(root, dirs, []string{named})
		}
		switch _, err := os.Stat(filepath.Join(root, file)); {
		case file != "" && err == nil:
			found = append(found, library{name, file, version(root, file)})
		case named != "":
			found = append(found, library{name, named, "missing"})
		}
	}
	for _, b := range engine.Backends() {
		find(b.Name, b.Files.Env, b.Files.Names)
	}
	for _, p := range parts {
		find(p.name, "", p.files)
	}
	return found
}

// first is the first of files, by the directories' order.
func first(root string, dirs, files []string) string {
	for _, name := range files {
		for _, dir := range dirs {
			file := filepath.Join(dir, name)
			if _, err := os.Stat(filepath.Join(root, file)); err == nil {
				return file
			}
		}
	}
	return ""
}

// searched are the directories where the loader looks.
func searched(root string, getenv func(string) string) (dirs []string) {
	for dir := range strings.SplitSeq(getenv("LD_LIBRARY_PATH"), ":") {
		if filepath.IsAbs(dir) {
			dirs = append(dirs, dir)
		}
	}
	for _, name := range roots {
		if dir := getenv(name); filepath.IsAbs(dir) {
			dirs = append(dirs, dir+"/lib64", dir+"/lib", dir+"/lib/release")
		}
	}
	confs, _ := filepath.Glob(filepath.Join(root, "/etc/ld.so.conf.d/*.conf"))
	for _, conf := range confs {
		f, err := os.Open(conf)
		if err != nil {
			continue
		}
		for s := bufio.NewScanner(f); s.Scan(); {
			if dir := strings.TrimSpace(s.Text()); filepath.IsAbs(dir) {
				dirs = append(dirs, dir)
			}
		}
		f.Close()
	}
	multi := map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[runtime.GOARCH]
	dirs = append(dirs, "/lib/"+multi, "/usr/lib/"+multi, "/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib",
		"/usr/local/cuda/lib64", "/opt/rocm/lib")
	seen := map[string]bool{}
	return slices.DeleteFunc(dirs, func(d string) bool { was := seen[d]; seen[d] = true; return was })
}

var number = regexp.MustCompile(`\.so\.(\d+(\.\d+)*)$`)

// version is what the name of the file behind the links says, and its size: two builds
// of one version are seldom of one size.
func version(root, file string) string {
	real, err := filepath.EvalSymlinks(filepath.Join(root, file))
	if err != nil {
		return "unreadable"
	}
	v := "?"
	if m := number.FindStringSubmatch(real); m != nil {
		v = m[1]
	}
	info, err := os.Stat(real)
	if err != nil {
		return v
	}
	return v + " (" + strconv.FormatInt(info.Size(), 10) + " bytes)"
}
