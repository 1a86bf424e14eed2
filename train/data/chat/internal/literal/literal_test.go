package literal_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/train/data/chat/internal/literal"
)

// What CPython 3.11 writes.
func TestLiterals(t *testing.T) {
	for _, tc := range []struct{ in, json, ascii, python string }{
		{"a'b", `"a'b"`, `"a'b"`, `"a'b"`},
		{`a"'\`, `"a\"'\\"`, `"a\"'\\"`, `'a"\'\\'`},
		{"\n\r\t\b\f\x01\x7f", `"\n\r\t\b\f\u0001` + "\x7f" + `"`, `"\n\r\t\b\f\u0001` + "\x7f" + `"`, `'\n\r\t\x08\x0c\x01\x7f'`},
		{"é\u2028😀", "\"é\u2028😀\"", `"\u00e9\u2028\ud83d\ude00"`, `'é\u2028😀'`},
		{"\U000e0001", "\"\U000e0001\"", `"\udb40\udc01"`, `'\U000e0001'`},
		{`\u2028`, `"\\u2028"`, `"\\u2028"`, `'\\u2028'`},
	} {
		require.Equal(t, tc.json, literal.JSON(tc.in, false))
		require.Equal(t, tc.ascii, literal.JSON(tc.in, true))
		require.Equal(t, tc.python, literal.Python(tc.in))
	}
	for v, want := range map[float64]string{1: "1.0", 0.1: "0.1", 1e15: "1000000000000000.0", 1e16: "1e+16", 1.5e300: "1.5e+300", 0.0001: "0.0001", 0.00001: "1e-05",
		123456.789: "123456.789", math.Inf(1): "inf", math.Inf(-1): "-inf"} {
		require.Equal(t, want, literal.Float(v, true))
	}
	require.Equal(t, "nan", literal.Float(math.NaN(), true))
	require.Equal(t, "NaN", literal.Float(math.NaN(), false))
	require.Equal(t, "-Infinity", literal.Float(math.Inf(-1), false))
}
