package boot

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/auth"
)

const fipsVar = "CCL_TEST_FIPS"

// TestFIPSOnly: a process that may not use AES-GCM with nonces of its own says so at once, as rank 0 and as another.
func TestFIPSOnly(t *testing.T) {
	if os.Getenv(fipsVar) != "" {
		began := time.Now()
		errs := make(chan error, 2)
		for rank := range 2 {
			go func() {
				b, err := TCP(t.Context(), os.Getenv(fipsVar), rank, 2, &TCPOptions{Secret: []byte("a secret of the job")})
				if err == nil {
					b.Close()
				}
				errs <- err
			}()
		}
		for range 2 {
			assert.ErrorIs(t, <-errs, auth.ErrCipher)
		}
		assert.Less(t, time.Since(began), 30*time.Second)
		return
	}
	self := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFIPSOnly$")
	self.Env = append(os.Environ(), "GODEBUG=fips140=only", fipsVar+"="+freeRoot(t))
	out, err := self.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
