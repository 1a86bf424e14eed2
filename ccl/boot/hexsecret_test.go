package boot

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
)

// A secret in hex digits is the same one as its bytes, whoever gives it in which way.
func TestHexSecret(t *testing.T) {
	raw := []byte("\x00\xfe of 18 bytes  ")
	ways := map[string][]byte{"bytes": raw, "hex": []byte(hex.EncodeToString(raw)), "a line of a file": []byte(hex.EncodeToString(raw) + "\n")}
	dir := t.TempDir()
	for listens, a := range ways {
		h := hallFor(t, a)
		for dials, b := range ways {
			s, err := DialHall(h.Addr(), b)
			require.NoError(t, err)
			require.NoError(t, s.Set(within(t, long), dials, []byte("x")), "%s for %s", dials, listens)
			left, err := FileStore(dir, a)
			require.NoError(t, err)
			require.NoError(t, left.Set(within(t, long), "key", []byte(dials)))
			found, err := FileStore(dir, b)
			require.NoError(t, err)
			v, err := found.Get(within(t, long), "key")
			require.NoError(t, err)
			require.Equal(t, dials, string(v))
			root := freeRoot(t)
			swap(t, joined(t, 2, func(r int) (*Boot, error) {
				return TCP(within(t, long), root, r, 2, &TCPOptions{Secret: [][]byte{a, b}[r]})
			}))
		}
	}
}
