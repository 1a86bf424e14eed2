package machine

import (
	"bufio"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// CPU is the processor's name, as far as the system under root tells.
func CPU(root string) string {
	for _, key := range []string{"model name", "Model", "cpu model"} {
		if name := field(filepath.Join(root, "/proc/cpuinfo"), key); name != "" {
			return strings.Join(strings.Fields(name), " ")
		}
	}
	if name := os.Getenv("PROCESSOR_IDENTIFIER"); name != "" { // Windows
		return name
	}
	return runtime.GOARCH
}

// Memory is how much memory the machine has in bytes; 0 if the system does not tell.
func Memory(root string) int {
	kib, _, _ := strings.Cut(field(filepath.Join(root, "/proc/meminfo"), "MemTotal"), " ")
	n, _ := strconv.Atoi(kib)
	return n << 10
}

// field is the value of the first line "key : value" of a file.
func field(file, key string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if k, v, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// Word is the first line of a small file, without the space around it.
func Word(root, file string) string {
	b, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(first)
}
