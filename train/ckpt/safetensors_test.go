package ckpt

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/test/cache"
	"github.com/goccl/goccl/train/ckpt/internal/header"
)

// stCase is a file of another program: a header, the bytes of the tensors, and what safetensors' own reader does with it.
type stCase struct {
	name string
	head string
	data int  // bytes
	ok   bool // it loads
	raw  []byte
}

// file is the whole of it. The bytes of the tensors count up.
func (k *stCase) file() []byte {
	if k.raw != nil {
		return k.raw
	}
	data := make([]byte, k.data)
	for i := range data {
		data[i] = byte(i)
	}
	return slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(len(k.head))), []byte(k.head), data)
}

// stCases are good files and bad ones. Whether each is good Python's safetensors 0.8 has said: TestPythonAgrees asks it again.
func stCases() (cases []stCase) {
	add := func(ok bool, name, head string, data int) { cases = append(cases, stCase{name, head, data, ok, nil}) }
	one := func(field string) string { return `{"w":{` + field + `}}` }
	f32 := func(name string, lo, hi int) string {
		return fmt.Sprintf(`%q:{"dtype":"F32","shape":[%d],"data_offsets":[%d,%d]}`, name, (hi-lo)/4, lo, hi)
	}
	const w = `"dtype":"F32","shape":[4],"data_offsets":[0,16]`

	for dtype, bits := range header.Bits { // each type, whole; and with a byte too many
		n := int(bits)
		add(true, "type "+dtype, fmt.Sprintf(`{"w":{"dtype":%q,"shape":[2,4],"data_offsets":[0,%d]}}`, dtype, n), n)
		add(false, "type too long "+dtype, fmt.Sprintf(`{"w":{"dtype":%q,"shape":[2,4],"data_offsets":[0,%d]}}`, dtype, n+1), n+1)
	}
	slices.SortFunc(cases, func(a, b stCase) int { return strings.Compare(a.name, b.name) })
	for _, dtype := range []string{"X9", "f32", "C128", "I4", "F8_E4M3FN", "", "F32 "} {
		add(false, "no type "+dtype, fmt.Sprintf(`{"w":{"dtype":%q,"shape":[0],"data_offsets":[0,0]}}`, dtype), 0)
	}
	add(false, "F4, an odd number", `{"w":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}}`, 2)
	add(true, "F6, a whole number of bytes", `{"w":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[0,3]}}`, 3)

	// What there is.
	add(true, "nothing", `{}`, 0)
	add(true, "one", one(w), 16)
	add(true, "scalar", one(`"dtype":"F32","shape":[],"data_offsets":[0,4]`), 4)
	add(true, "no elements", one(`"dtype":"F32","shape":[0,7],"data_offsets":[0,0]`), 0)
	add(true, "ten dimensions", one(`"dtype":"F32","shape":[1,2,1,1,2,1,1,1,1,1],"data_offsets":[0,16]`), 16)
	add(true, "two", "{"+f32("a", 0, 16)+","+f32("b", 16, 24)+"}", 24)
	add(true, "two in another order", "{"+f32("b", 16, 24)+","+f32("a", 0, 16)+"}", 24)
	add(true, "fields in another order", one(`"data_offsets":[0,16],"shape":[4],"dtype":"F32"`), 16)
	add(true, "unaligned", `{"w":{"dtype":"F32","shape":[4],"data_offsets":[1,17]},"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 17)
	add(true, "an empty one between two", "{"+f32("a", 0, 8)+","+f32("e", 8, 8)+","+f32("b", 8, 16)+"}", 16)
	add(true, "an empty one at the end", "{"+f32("a", 0, 8)+","+f32("e", 8, 8)+"}", 8)
	add(true, "an empty one at the beginning", "{"+f32("e", 0, 0)+","+f32("a", 0, 8)+"}", 8)
	add(false, "an empty one inside another", "{"+f32("a", 0, 8)+","+f32("e", 4, 4)+"}", 8)
	add(false, "an empty one beyond", "{"+f32("a", 0, 8)+","+f32("e", 12, 12)+"}", 8)

	// Where it lies.
	add(false, "the same bytes", "{"+f32("k", 0, 16)+","+f32("v", 0, 16)+"}", 16)
	add(false, "half the same bytes", "{"+f32("k", 0, 16)+","+f32("v", 8, 24)+"}", 24)
	add(false, "one inside another", "{"+f32("k", 0, 16)+","+f32("v", 4, 8)+"}", 16)
	add(false, "a hole", "{"+f32("k", 0, 16)+","+f32("v", 20, 36)+"}", 36)
	add(false, "a hole first", "{"+f32("k", 8, 24)+"}", 24)
	add(false, "bytes behind", one(w), 20)
	add(false, "bytes behind nothing", `{}`, 1)
	add(false, "short", one(w), 12)
	add(false, "no data", one(w), 0)
	add(false, "backwards", one(`"dtype":"F32","shape":[4],"data_offsets":[16,0]`), 16)
	add(false, "beyond int64", one(`"dtype":"F32","shape":[0],"data_offsets":[9223372036854775808,9223372036854775808]`), 0)
	add(false, "three offsets", one(`"dtype":"F32","shape":[4],"data_offsets":[0,16,32]`), 16)
	add(false, "one offset", one(`"dtype":"F32","shape":[0],"data_offsets":[0]`), 0)
	add(false, "no offsets", one(`"dtype":"F32","shape":[0],"data_offsets":[]`), 0)
	add(false, "offsets in an object", one(`"dtype":"F32","shape":[4],"data_offsets":{"0":0,"1":16}`), 16)
	add(false, "offsets that are strings", one(`"dtype":"F32","shape":[4],"data_offsets":["0","16"]`), 16)
	add(false, "an offset with a fraction", one(`"dtype":"F32","shape":[4],"data_offsets":[0,16.0]`), 16)
	add(false, "an offset with an exponent", one(`"dtype":"F32","shape":[4],"data_offsets":[0,16e0]`), 16)
	add(false, "a negative offset", one(`"dtype":"F32","shape":[4],"data_offsets":[-16,0]`), 0)

	// Shapes.
	add(false, "a shape of another size", one(`"dtype":"F32","shape":[5],"data_offsets":[0,16]`), 16)
	add(false, "a shape with a fraction", one(`"dtype":"F32","shape":[4.0],"data_offsets":[0,16]`), 16)
	add(false, "a shape with half an element", one(`"dtype":"F32","shape":[4.5],"data_offsets":[0,16]`), 16)
	add(false, "a negative shape", one(`"dtype":"F32","shape":[-4],"data_offsets":[0,16]`), 16)
	add(false, "minus zero", one(`"dtype":"F32","shape":[-0],"data_offsets":[0,0]`), 0)
	add(false, "a shape that is a string", one(`"dtype":"F32","shape":["4"],"data_offsets":[0,16]`), 16)
	add(false, "a shape that is a number", one(`"dtype":"F32","shape":4,"data_offsets":[0,16]`), 16)
	add(false, "a shape that is null", one(`"dtype":"F32","shape":null,"data_offsets":[0,4]`), 4)
	add(false, "a dimension that is null", one(`"dtype":"F32","shape":[null],"data_offsets":[0,0]`), 0)
	add(false, "a shape that overflows", one(`"dtype":"F32","shape":[8589934592,8589934592],"data_offsets":[0,16]`), 16)
	add(false, "a shape that overflows, then is empty", one(`"dtype":"F32","shape":[4611686018427387904,4,0],"data_offsets":[0,0]`), 0)
	add(true, "a shape that is empty, then large", one(`"dtype":"F32","shape":[0,4611686018427387904,4],"data_offsets":[0,0]`), 0)
	add(true, "a dimension beyond int64", one(`"dtype":"F32","shape":[9223372036854775808,0],"data_offsets":[0,0]`), 0)
	add(false, "a dimension beyond uint64", one(`"dtype":"F32","shape":[18446744073709551616,0],"data_offsets":[0,0]`), 0)
	add(false, "bits that overflow", one(`"dtype":"F64","shape":[1152921504606846976],"data_offsets":[0,0]`), 0)

	// Fields.
	add(false, "no dtype", one(`"shape":[4],"data_offsets":[0,16]`), 16)
	add(false, "no shape", one(`"dtype":"F32","data_offsets":[0,4]`), 4)
	add(false, "no data_offsets", one(`"dtype":"F32","shape":[0]`), 0)
	add(false, "fields in capitals", one(`"DTYPE":"F32","Shape":[4],"Data_Offsets":[0,16]`), 16)
	add(true, "another field", one(w+`,"strides":[1],"x":{"y":[1,2.5e3,null,true,"z"]}`), 16)
	add(true, "another field in capitals", one(w+`,"DTYPE":"F64"`), 16)
	add(false, "dtype twice", one(w+`,"dtype":"F32"`), 16)
	add(false, "shape twice", one(w+`,"shape":[4]`), 16)
	add(false, "data_offsets twice", one(w+`,"data_offsets":[0,16]`), 16)
	add(true, "another field twice", one(w+`,"x":1,"x":2`), 16)
	add(true, "an escaped field", one(`"\u0064type":"F32","shape":[4],"data_offsets":[0,16]`), 16)
	add(true, "fields in a list", `{"w":["F32",[4],[0,16]]}`, 16)
	add(false, "four fields in a list", `{"w":["F32",[4],[0,16],1]}`, 16)
	add(false, "no fields in a list", `{"w":[]}`, 0)
	add(true, "a type as a variant", one(`"dtype":{"F32":null},"shape":[4],"data_offsets":[0,16]`), 16)
	add(false, "a type as a variant of something", one(`"dtype":{"F32":[]},"shape":[4],"data_offsets":[0,16]`), 16)
	add(false, "a type that is a number", one(`"dtype":17,"shape":[4],"data_offsets":[0,16]`), 16)
	add(false, "a type that is null", one(`"dtype":null,"shape":[4],"data_offsets":[0,16]`), 16)
	add(false, "a tensor that is null", `{"w":null}`, 0)
	add(false, "a tensor that is a number", `{`+f32("w", 0, 16)+`,"v":1}`, 16)
	add(false, "a tensor that is a string", `{"w":"F32"}`, 0)

	// Names.
	for _, name := range []string{``, ` `, `a/b\\c`, `é日本🙂`, `x\ny\"z`, `a#[0][0:4]`, `<b>&amp;`, `\u2028`, `a\u0000b`, `\ud83d\ude00`, `a\/b`, `\uffff`,
		`__metadata`, strings.Repeat("n", 10000)} {
		add(true, "name "+name[:min(len(name), 20)], `{"`+name+`":{`+w+`}}`, 16)
	}
	add(false, "name of half a character", `{"\ud800":{`+w+`}}`, 16)
	add(false, "name of the other half", `{"\udc00":{`+w+`}}`, 16)
	add(false, "name of two first halves", `{"\ud800\ud800":{`+w+`}}`, 16)
	add(false, "half a character in another field", one(w+`,"x":"\ud800"`), 16)
	add(false, "half a character in a field's name", one(w+`,"\udfff":0`), 16)
	add(true, "an escaped backslash before u", `{"\\ud800":{`+w+`}}`, 16)
	add(false, "name that is not UTF-8", "{\"\xff\xfe\":{"+w+"}}", 16)
	add(false, "name with a surrogate in UTF-8", "{\"\xed\xa0\x80\":{"+w+"}}", 16)
	add(false, "another field that is not UTF-8", one(w+",\"x\":\"\xff\""), 16)
	add(false, "name with a control character", "{\"a\x01b\":{"+w+"}}", 16)
	add(false, "name with a bad escape", `{"a\qb":{`+w+`}}`, 16)
	add(true, "the same name twice, the same tensor", `{"w":{`+w+`},"w":{`+w+`}}`, 16)
	add(false, "the same name twice, other bytes", `{`+f32("w", 0, 16)+`,`+f32("w", 16, 32)+`}`, 32)
	add(true, "the same name twice, the last one fits", `{`+f32("w", 16, 32)+`,`+f32("w", 0, 16)+`}`, 16)
	add(false, "the same name twice, the first one bad", `{"w":{"dtype":"X"},"w":{`+w+`}}`, 16)

	// Metadata.
	for meta, ok := range map[string]bool{`{}`: true, `{"a":"b","format":"pt"}`: true, `{"a":"b","a":"c"}`: true, `null`: true, `{"a":1}`: false,
		`{"a":null}`: false, `{"a":{}}`: false, `[]`: false, `"a"`: false, `1`: false, `{"dtype":"F32","shape":"[4]"}`: true} {
		add(ok, "metadata "+meta, `{"__metadata__":`+meta+`,`+f32("w", 0, 16)+`}`, 16)
	}
	add(false, "metadata twice", `{"__metadata__":{"a":"b"},"__metadata__":{"a":"b"},`+f32("w", 0, 16)+`}`, 16)
	add(true, "metadata by an escape", `{"\u005f_metadata__":{"a":"b"}}`, 0)
	add(true, "metadata last", `{`+f32("w", 0, 16)+`,"__metadata__":{"a":"b"}}`, 16)

	// JSON.
	for text, ok := range map[string]bool{`null`: false, `[]`: false, `1`: false, `""`: false, ``: false, `{`: false, `{}}`: false, "{}\x00": false,
		" \t\r\n{} \t\r\n": true, "\ufeff{}": false, `{/**/}`: false, `{"w":}`: false, `{,}`: false, "{}\v": false, `{'a':1}`: false} {
		add(ok, "JSON "+text, text, 0)
	}
	add(true, "spaces behind", one(w)+strings.Repeat(" ", 1001), 16)
	add(true, "a space first", " "+one(w), 16)
	add(false, "junk behind", one(w)+" junk", 16)
	add(false, "a comma too many", one(w+","), 16)
	add(false, "NaN", one(w+`,"x":NaN`), 16)
	add(false, "a number out of range", one(w+`,"x":1e999`), 16)
	add(false, "a negative number out of range", one(w+`,"x":-1e999`), 16)
	add(true, "a small number", one(w+`,"x":1e-999`), 16)
	add(true, "a long number", one(w+`,"x":123456789012345678901234567890`), 16)
	add(false, "a number with a zero first", one(w+`,"x":01`), 16)
	add(true, "nested 127 deep", one(w+`,"x":`+strings.Repeat("[", 125)+strings.Repeat("]", 125)), 16)
	add(false, "nested 128 deep", one(w+`,"x":`+strings.Repeat("[", 126)+strings.Repeat("]", 126)), 16)
	add(true, "brackets in a string", one(w+`,"x":"`+strings.Repeat("[", 200)+`"`), 16)

	// The file.
	raw := func(ok bool, name string, b []byte) { cases = append(cases, stCase{name: name, ok: ok, raw: b}) }
	raw(false, "an empty file", []byte{})
	raw(false, "seven bytes", []byte("1234567"))
	raw(false, "a length alone", make([]byte, 8))
	raw(false, "a pickle", append([]byte("PK\x03\x04"), make([]byte, 200)...))
	raw(false, "HTML", []byte("<!DOCTYPE html><html><body>404</body></html>"))
	raw(false, "a pointer of git-lfs", []byte("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"))
	raw(false, "a length beyond the file", append(binary.LittleEndian.AppendUint64(nil, 3), "{}"...))
	raw(false, "a length of 2^40", append(binary.LittleEndian.AppendUint64(nil, 1<<40), "{}"...))
	raw(false, "a length of 2^64-1", append(binary.LittleEndian.AppendUint64(nil, 1<<64-1), "{}"...))
	raw(false, "a length of 2^63", append(binary.LittleEndian.AppendUint64(nil, 1<<63), "{}"...))
	raw(false, "a length in the other order", append(binary.BigEndian.AppendUint64(nil, 2), "{}"...))
	return cases
}

// What safetensors' own reader refuses is refused, and what it takes is taken.
func TestForeignFiles(t *testing.T) {
	cases := stCases()
	require.Greater(t, len(cases), 160)
	good, seen := 0, map[string]bool{}
	for _, k := range cases {
		require.False(t, seen[k.name], "%s is there twice", k.name)
		seen[k.name] = true
		b := k.file()
		_, _, err := parseHeader(bytes.NewReader(b), int64(len(b)))
		if k.ok {
			require.NoError(t, err, k.name)
			good++
		} else {
			require.Error(t, err, k.name)
		}
	}
	require.Greater(t, good, 60)
}

// A header of 100,000,000 bytes is the longest.
func TestLongestHeader(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: takes 200 MB")
	}
	for n, ok := range map[int]bool{maxHeader: true, maxHeader + 1: false} {
		b := slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(n)), []byte("{}"), bytes.Repeat([]byte(" "), n-2))
		_, _, err := parseHeader(bytes.NewReader(b), int64(len(b)))
		require.Equal(t, ok, err == nil, "%d bytes: %v", n, err)
	}
}

// Python's safetensors says of each file of stCases what the table says, and finds the same tensors with the same bytes.
func TestPythonAgrees(t *testing.T) {
	packages := pythonPackages(t)
	dir := t.TempDir()
	cases := stCases()
	var files []string
	for i, k := range cases {
		files = append(files, filepath.Join(dir, fmt.Sprintf("%03d.safetensors", i)))
		require.NoError(t, os.WriteFile(files[i], k.file(), 0o666))
	}
	out := cache.Python(t, packages, strings.Join(files, "\n"), filepath.Join("testdata", "judge.py"))
	var said []struct {
		Error   *string
		Tensors map[string]pythonTensor
	}
	require.NoError(t, json.Unmarshal(out, &said))
	require.Len(t, said, len(cases))
	for i, k := range cases {
		reason := ""
		if said[i].Error != nil {
			reason = *said[i].Error
		}
		require.Equal(t, k.ok, said[i].Error == nil, "%s: Python says %q", k.name, reason)
		if !k.ok {
			continue
		}
		b := k.file()
		ps, others, err := parseHeader(bytes.NewReader(b), int64(len(b)))
		require.NoError(t, err, k.name)
		require.Len(t, said[i].Tensors, len(ps)+len(others), k.name)
		for _, p := range ps {
			sum := sha256.Sum256(b[p.At:][:p.Hi*dtypes[p.Type]])
			want := said[i].Tensors[p.Name]
			require.Equal(t, []any{want.Type, want.Sum}, []any{p.Type, hex.EncodeToString(sum[:])}, "%s: %q", k.name, p.Name)
			require.Equal(t, append([]int{}, want.Shape...), append([]int{}, p.Shape...))
		}
		for name, o := range others {
			require.Equal(t, said[i].Tensors[name].Type, o.Type)
		}
	}
}
