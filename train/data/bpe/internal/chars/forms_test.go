package chars_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/train/data/bpe/internal/chars"
)

func TestForms(t *testing.T) {
	marks := strings.Repeat("\u0301", 40)
	for _, tc := range []struct{ form, in, want string }{
		{"NFC", "e\u0301", "é"},
		{"NFD", "é", "e\u0301"},
		{"NFKC", "\ufb01\u2460", "fi1"},
		{"NFKD", "\u1e9b\u0323", "s\u0323\u0307"},
		{"NFC", "\u1100\u1161\u11a8\u1100\u1161", "\uac01\uac00"},
		{"NFD", "\uac01", "\u1100\u1161\u11a8"},
		{"NFC", "a\u0301\u0323", "\u1ea1\u0301"},                            // the order of marks
		{"NFC", "\u0344\u0958\u212b", "\u0308\u0301\u0915\u093c\u00c5"},     // what is never composed
		{"NFC", "e\u0301" + marks, "é" + marks},                             // no joiner among many marks
		{"NFC", "e\u0301\xff\u0301\xe2\x82", "é\xff\u0301\xe2\x82"},         // no UTF-8
		{"NFC", "\U000e0042\u0331\u212b", "\U000e0042\u0331\u00c5"},         // no B
		{"NFC", "\U00011935\U00011930\u212b", "\U00011935\U00011930\u00c5"}, // of Unicode 13
		{"NFC", "\U00011099\U000110ba", "\U0001109a"},                       // of Unicode 5
		{"NFKC", "\u32ff\u212b", "\u32ff\u00c5"},                            // of Unicode 12.1
		{"NFC", "a\u0d3b\u0b3c\u212b", "a\u0d3b\u0b3c\u00c5"},               // whose class came with Unicode 10
	} {
		require.Equal(t, tc.want, chars.Forms[tc.form](tc.in), "%s of %+q", tc.form, tc.in)
	}
}

func TestLossy(t *testing.T) {
	for in, want := range map[string]string{
		"a": "a", "\xff": "\ufffd", "\xe2\x82": "\ufffd", "\xe2\x82a": "\ufffda", "\xed\xa0\x80": "\ufffd\ufffd\ufffd",
		"\xf0\x9f\x98": "\ufffd", "\xf0\x9f\x98\xf0\x9f\x98\x80": "\ufffd😀", "\xc0\x80": "\ufffd\ufffd", "\xf5": "\ufffd", "\xe2\x28": "\ufffd(",
	} {
		require.Equal(t, want, chars.Lossy([]byte(in)), "%+q", in)
	}
	for in, want := range map[string]int{"": 0, "a": 1, "a\xe2": 1, "a\xe2\x82": 1, "a\xe2\x82\xac": 4, "\xff": 1, "\x80\x80\x80\x80": 4, "\xf0\x9f\x98": 0} {
		require.Equal(t, want, chars.Complete([]byte(in)), "%+q", in)
	}
}
