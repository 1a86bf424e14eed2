package option

import (
	"errors"
	"math"
	"strconv"
)

var (
	errSize     = errors.New("a size is a number with an optional K, M or G, such as 64K")
	errOverflow = errors.New("the size is larger than this machine's integers")
)

// ParseSize reads a number of bytes, as nccl-tests does: K, M and G are powers of
// 1024.
func ParseSize(s string) (int, error) {
	shift := 0
	if s != "" {
		switch s[len(s)-1] {
		case 'k', 'K':
			shift = 10
		case 'm', 'M':
			shift = 20
		case 'g', 'G':
			shift = 30
		}
		if shift > 0 {
			s = s[:len(s)-1]
		}
	}
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, errSize
		}
	}
	n, err := strconv.ParseUint(s, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, errOverflow
	case err != nil:
		return 0, errSize
	case n > math.MaxInt>>shift:
		return 0, errOverflow
	}
	return int(n) << shift, nil
}

// FormatSize writes a number of bytes with the largest suffix that keeps it whole.
func FormatSize(n int) string {
	for _, u := range []struct {
		shift int
		name  string
	}{{30, "G"}, {20, "M"}, {10, "K"}} {
		if n > 0 && n&(1<<u.shift-1) == 0 {
			return strconv.Itoa(n>>u.shift) + u.name
		}
	}
	return strconv.Itoa(n)
}
