package doctor

import (
	"strconv"
	"strings"

	"github.com/goccl/goccl/bench/internal/nvml"
)

// topology is how NVIDIA's devices are connected, one text a line; nothing where there
// are none.
func topology(devices map[string]int) []string {
	if devices["NVIDIA"] == 0 {
		return nil
	}
	t, err := nvml.Read()
	if err != nil {
		return []string{"not known: " + err.Error()}
	}
	return strings.Split(strings.TrimRight("driver "+t.Driver+"\n"+t.String(), "\n"), "\n")
}

// atoi is a number from 0, or -1.
func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return -1
	}
	return n
}
