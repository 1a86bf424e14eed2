package auth

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
)

// What Bytes returns stands for itself, also where hex digits stand for hex digits.
func FuzzBytes(f *testing.F) {
	once := hex.EncodeToString([]byte("\x00 a secret \n"))
	for _, s := range []string{"", " ", "a secret", " a secret\n", "abc", once, once + "\n", hex.EncodeToString([]byte(once))} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, secret []byte) {
		got := Bytes(secret)
		require.Equal(t, got, Bytes(got))
		require.Equal(t, got, Bytes([]byte(hex.EncodeToString(secret))))
	})
}

func TestBytes(t *testing.T) {
	raw := []byte("\x00 a secret \n")
	for _, s := range []string{string(raw), hex.EncodeToString(raw), " " + hex.EncodeToString(raw) + "\n"} {
		require.Equal(t, raw, Bytes([]byte(s)))
	}
	require.Equal(t, "abc", string(Bytes([]byte("abc"))), "no whole number of bytes")
	require.Nil(t, Bytes(nil))
}
