package links

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
)

func aHead() head {
	return head{comm: 0x8000000000000001, bytes: 4 << 20, step: 3, kind: messageData, summed: true, shares: 1<<23 - 2, lanes: 5, lane: 3,
		record: call.Record{Place: 41, Seq: 1 << 33, Count: 1024, Root: -1, Hash: 0xcafe, Kind: call.AllReduce, Type: 11, Op: 2, State: 1, Times: 0.5},
		before: call.Record{Place: 40, Seq: 43, Count: 7, Root: 2, Hash: 0xbeef, Kind: call.Broadcast, Type: 5}}
}

func TestHeadWire(t *testing.T) {
	h := aHead()
	var b [HeadBytes]byte
	h.encode(b[:])
	assert.Equal(t, "Gccl", string(b[:4]))
	assert.Equal(t, []byte{1, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 0x40, 0, 0, 0, 0, 0, 3, 0, 0, 0, messageData, 0xff, 0xfe, 0xff}, b[8:32])
	assert.Equal(t, []byte{41, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xfe, 0xca, 0, 0, byte(call.AllReduce), 11, 2, 1,
		0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0x3f}, b[40:80])
	assert.Equal(t, []byte{40, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0xef, 0xbe, 0, 0, byte(call.Broadcast), 5, 0, 0,
		43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, b[80:120])
	assert.Equal(t, []byte{0, 0, 0, 0, 5, 3, 0, 0}, b[32:40])
	var back head
	require.NoError(t, back.decode(b[:]))
	assert.Equal(t, h, back)
	h.lane = h.lanes
	h.encode(b[:])
	assert.EqualError(t, back.decode(b[:]), "a message header says lanes that cannot be")
}

// A header in which any one bit has changed is damaged.
func TestHeadThatIsDamaged(t *testing.T) {
	h := aHead()
	var b [HeadBytes]byte
	h.encode(b[:])
	for bit := range 8 * HeadBytes {
		b[bit/8] ^= 1 << (bit % 8)
		var back head
		assert.EqualError(t, back.decode(b[:]), "a message header is damaged", "bit %d", bit)
		b[bit/8] ^= 1 << (bit % 8)
	}
	var back head
	assert.Error(t, back.decode(b[:HeadBytes-1]))
	assert.Error(t, back.decode(nil))
	assert.NoError(t, back.decode(b[:]))
}

func FuzzHead(f *testing.F) {
	h := aHead()
	b := make([]byte, HeadBytes)
	h.encode(b)
	f.Add(b)
	bye := head{comm: 1, kind: messageBye}
	c := make([]byte, HeadBytes)
	bye.encode(c)
	f.Add(c)
	f.Add(make([]byte, HeadBytes))
	f.Add([]byte("Gccl"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var h, back head
		if h.decode(in) != nil {
			return
		}
		b := make([]byte, HeadBytes)
		h.encode(b)
		if err := back.decode(b); err != nil || back != h {
			t.Fatalf("%+v became %+v: %v", h, back, err)
		}
	})
}
