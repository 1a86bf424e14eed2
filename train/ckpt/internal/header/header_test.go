package header

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The cases that safetensors' own reader was asked about are package ckpt's.
func TestParse(t *testing.T) {
	got, err := Parse([]byte(`{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":["U8",[1],[8,9]]}`), 9)
	require.NoError(t, err)
	require.Equal(t, map[string]*Entry{"a": {"F32", []uint64{2}, 0, 8}, "b": {"U8", []uint64{1}, 8, 9}}, got)
	for text, why := range map[string]string{
		`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`:             "the tensors have 8 bytes, and the file has 9 for them",
		`{"a":{"dtype":"F32","shape":[2],"data_offsets":[1,9]}}`:             "where the one before it ends at 0",
		`{"a":{"dtype":"F31","shape":[2],"data_offsets":[0,9]}}`:             `type "F31" is not one of safetensors`,
		`{"a":{"dtype":"U8","shape":[9]}}`:                                   "data_offsets is missing",
		`{"a":{"dtype":"U8","dtype":"U8","shape":[9],"data_offsets":[0,9]}}`: "dtype is there twice",
		`{`: "it is not JSON",
	} {
		_, err := Parse([]byte(text), 9)
		require.ErrorContains(t, err, why)
	}
}
