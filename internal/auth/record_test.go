package auth

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// directed returns the two ends of one direction.
func directed(t testing.TB, hide bool) (out, in *Direction) {
	out, err := newDirection([]byte("the same on both ends"), "one way", hide)
	require.NoError(t, err)
	in, err = newDirection([]byte("the same on both ends"), "one way", hide)
	require.NoError(t, err)
	return out, in
}

// A record carries its bytes, in the open where they are not to be hidden.
func TestRecord(t *testing.T) {
	for _, hide := range []bool{false, true} {
		out, in := directed(t, hide)
		for _, n := range []int{1, 8, 15, 16, 17, 4096, MaxRecord} {
			a := bytes.Repeat([]byte("payload "), MaxRecord/8)[:n]
			b := a[:min(n, MaxRecord-n)]
			record := out.Seal([]byte("before"), a, b)[len("before"):]
			require.Len(t, record, n+len(b)+RecordOver)
			got, err := RecordLen(record)
			require.NoError(t, err)
			require.Equal(t, len(record), got)
			require.Equal(t, !hide, bytes.Contains(record, a))
			plain, err := in.Open(record)
			require.NoError(t, err)
			require.Equal(t, string(a)+string(b), string(plain))
		}
	}
}

func TestRecordLen(t *testing.T) {
	for _, head := range [][]byte{{0, 0, 0, 0}, {0, 0, 0, tagLen}, {0, 1, 0, tagLen + 1}, {255, 255, 255, 255}} {
		_, err := RecordLen(head)
		require.ErrorIs(t, err, ErrChanged, "%v", head)
	}
	for _, head := range [][]byte{{0, 0, 0, tagLen + 1}, {0, 1, 0, tagLen}} {
		_, err := RecordLen(head)
		require.NoError(t, err, "%v", head)
	}
}

// Both ends take the next key after as many records, and the one before opens nothing more.
func TestRekey(t *testing.T) {
	out, in := directed(t, true)
	old := *in
	out.number, in.number, old.number = rekeyEvery-1, rekeyEvery-1, rekeyEvery-1
	for i := range 3 {
		record := out.Seal(nil, []byte("next"), nil)
		if i == 1 {
			old.number, old.nonce = rekeyEvery, out.nonce
			old.number++ // as if it had taken no next key
			_, err := old.aead.Open(nil, out.nonce[:], record[RecordHead:], record[:RecordHead])
			require.Error(t, err)
		}
		plain, err := in.Open(record)
		require.NoError(t, err)
		require.Equal(t, "next", string(plain))
	}
	require.Equal(t, out.key, in.key)
	require.NotEqual(t, old.key, in.key)
}

// Sealing and opening allocate nothing.
func TestRecordAllocs(t *testing.T) {
	for _, hide := range []bool{false, true} {
		out, in := directed(t, hide)
		payload, record := make([]byte, 4096), make([]byte, 0, 8192)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			record = out.Seal(record[:0], payload[:96], payload)
			if _, err := in.Open(record); err != nil {
				panic(err)
			}
		}))
	}
}

// BenchmarkRecord is the time to seal and to open what is sent.
func BenchmarkRecord(b *testing.B) {
	for _, bc := range []struct {
		name string
		hide bool
		size int
	}{{"auth/8", false, 8}, {"encrypt/8", true, 8}, {"auth/64K", false, MaxRecord}, {"encrypt/64K", true, MaxRecord}} {
		b.Run(bc.name, func(b *testing.B) {
			out, in := directed(b, bc.hide)
			payload, record := make([]byte, bc.size), make([]byte, 0, bc.size+RecordOver)
			b.SetBytes(int64(bc.size))
			for b.Loop() {
				record = out.Seal(record[:0], payload, nil)
				if _, err := in.Open(record); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
