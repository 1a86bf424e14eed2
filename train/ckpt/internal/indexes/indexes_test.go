package indexes

import (
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// memory is an Object.
type memory struct{ *strings.Reader }

func (m memory) Close() error { return nil }

// The files of an index are found, whatever its state holds.
func TestFiles(t *testing.T) {
	for _, state := range []string{`"files"`, `{"files":[{"name":"no"}],"index":[[{}],1,null]}`, `7`} {
		list, err := Files(memory{strings.NewReader(`{"format":"f","crc32c":1,"index":{"sequence":1,"state":` + state + `,"tensors":{"files":{}},"files":[{"name":"a","size":3,"crc32c":[1]}],"pieces":[]}}`)})
		require.NoError(t, err)
		require.Equal(t, []File{{"a", 3, []uint32{1}}}, list)
	}
	for _, text := range []string{"", "{}", "[1]", `{"index":{"file":[]}}`, `{"index":{"files":{}}}`, `{"index":[`, "7"} {
		_, err := Files(memory{strings.NewReader(text)})
		require.Error(t, err, text)
	}
}

func TestSum(t *testing.T) {
	const body = `{"sequence":1}`
	want := crc32.Checksum([]byte(body), castagnoli)
	text := fmt.Sprintf(`{"format":"goccl-ckpt/1","crc32c":%d,"index":%s}`, want, body)
	for text, wants := range map[string]bool{text: true, text[:len(text)-1]: false, strings.Replace(text, "1}", "2}", 1): false,
		text + " ": false, "{": false, "": false} {
		_, sum, good, err := Sum(memory{strings.NewReader(text)})
		require.NoError(t, err)
		require.Equal(t, wants, good, text)
		require.True(t, !good || sum == want)
	}
}
