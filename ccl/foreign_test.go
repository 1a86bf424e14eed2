package ccl

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/internal/engine"
)

// A library gets a call's arguments as they are, by address, and what a SendRecv sends as elements.
func TestForeignCall(t *testing.T) {
	dst, src := make([]byte, 12), make([]byte, 20)
	k := &call.Call{Record: call.Record{Kind: call.SendRecv, Type: uint8(TypeInt32), Op: uint8(Max), Root: 1, Count: 3}, To: 2, Elem: 4, Dst: dst, Src: src}
	want := engine.Call{Kind: engine.SendRecv, Type: engine.Int32, Op: engine.Max, Root: 1, To: 2, Count: 3, Sent: 5, Dst: address(dst), Src: address(src)}
	assert.Equal(t, want, foreignCall(k))
	assert.NotZero(t, address(dst))
	assert.Zero(t, address(nil))
	k = &call.Call{Record: call.Record{Kind: call.AllReduce, Op: uint8(firstScaled + 1), Root: -1}, Factor: 0.25, DC: []int{1}, SC: []int{2}}
	assert.Equal(t, engine.Call{Kind: engine.AllReduce, Op: engine.Scaled, Factor: 0.25, Root: -1, DC: []int{1}, SC: []int{2}}, foreignCall(k))
	assert.Zero(t, foreignCall(&call.Call{Record: call.Record{Kind: call.SendRecv}, Src: nil}).Sent, "a call without a type divides by nothing")
}

// The launcher is told once what was said can have been read; a library that does not answer is not waited for.
func TestEndJob(t *testing.T) {
	(&library{lib: &engine.Library{}}).endJob() // one that cannot
	told := 0
	began := time.Now()
	(&library{lib: &engine.Library{EndJob: func(status int) { told = status }}}).endJob()
	assert.Equal(t, ExitStuck, told)
	assert.GreaterOrEqual(t, time.Since(began), readFor)
	block := make(chan struct{})
	defer close(block)
	(&library{lib: &engine.Library{EndJob: func(int) { <-block }}}).endJob()
}
