package dl_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/dl"
)

func TestErrorText(t *testing.T) {
	for _, tc := range []struct {
		name string
		err  dl.Error
		want string
	}{
		{"names", dl.Error{
			Search:   dl.Search{What: "NCCL", Env: "GOCCL_NCCL_LIB", Advice: "install NCCL 2.10 or newer"},
			Attempts: []dl.Attempt{{"libnccl.so.2", "libnccl.so.2: cannot open"}, {"libnccl.so", "invalid ELF header"}},
		}, "NCCL cannot be loaded: GOCCL_NCCL_LIB is not set; libnccl.so.2: cannot open; libnccl.so: invalid ELF header. " +
			"To fix this, install NCCL 2.10 or newer, or set GOCCL_NCCL_LIB to the library's file"},
		{"variable", dl.Error{
			Search:   dl.Search{What: "NCCL", Env: "GOCCL_NCCL_LIB"},
			Set:      "/x.so",
			Attempts: []dl.Attempt{{"/x.so", "/x.so: cannot open"}},
		}, "NCCL cannot be loaded: GOCCL_NCCL_LIB=/x.so: cannot open"},
		{"no variable", dl.Error{
			Search:   dl.Search{What: "ROCm", Advice: "install it"},
			Attempts: []dl.Attempt{{"a.so", ""}},
		}, "ROCm cannot be loaded: a.so. To fix this, install it"},
	} {
		t.Run(tc.name, func(t *testing.T) { require.Equal(t, tc.want, tc.err.Error()) })
	}
}
