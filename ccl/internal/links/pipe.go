package links

import (
	"sync/atomic"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/ordered"
	"github.com/goccl/goccl/ccl/internal/tuning"
	"github.com/goccl/goccl/internal/op"
)

// A pipe carries records from one rank to another of the same host, through memory that both have mapped:
//
//	256 bytes    what the reader says: how many records it has taken, which chunks it has given back; a rendezvous
//	cells        one of 64 bytes for each record under way, used in turn
//	ring         data that do not fit into a cell, in the order of the records
//	chunks       for much data, where there is room for chunks
//
// A cell begins with its flag, number of the record<<32 | hash, over which only flags are ever written. A rank
// that waits for the record looks there, and finds a few bytes of data beside it (FastForward, Giacomoni et al.,
// PPoPP 2008). So a small message costs one cache line, and the counter of records taken, which the writer looks at
// only when it has run out of room, is written once for a quarter of the pipe.
//
// What limits large messages is the way of lines between caches: in a ring a line is taken from the
// reader to be written, and from the writer to be read. So a chunk belongs to one of the two ranks.
// A rank that has received data in a chunk, and has something to send to the other, keeps the chunk
// and sends its data in there: each line goes once. See pipeReader.keep.
type pipe struct {
	mem    []byte
	cells  []cell
	ring   []byte
	chunks int // how many there are
	// makes a larger pipe, or, of a reader, maps the one at off; nil: there is none
	larger func(off uint64) (uint64, []byte)
}

// cell is the head of one record of a pipe: where its data lie, and of which message they are.
type cell struct {
	flag  uint64 // number of the record, from 1<<32 | hash
	size  uint32 // of its data, in bytes
	where uint32 // they lie, and what the record is: see whereOf
	// Of the first record of a message.
	bytes, nth, seq uint64 // of the message; nth is among those of its link, seq that of its call
	root            int32
	kind            call.Kind
	typ, op, state  uint8
	data            [cellData]byte
}

const (
	cellBytes = 64
	cellData  = 16 // bytes of data beside the flag

	pipeHead   = 256
	headAt     = 0   // records taken
	givenAt    = 64  // by chunk, how often it was given back
	meetAt     = 128 // the rendezvous
	grownAt    = 192 // where the larger pipe is
	chunkBytes = 8 << 10
	chunkFrom  = 1 << 10 // bytes of data that go into a chunk, where chunks do not go back and forth
	chunkFirst = 4 << 10 // of up to 4 chunks', so that the reader begins before all are written
	chunksOf   = 6       // of a pipe of tuning.PipeMax and more
)

var (
	_ [0]byte = [unsafe.Sizeof(cell{}) - cellBytes]byte{}
	_         = [meetAt - givenAt - 8*chunksOf]byte{}
)

// What a record is.
const (
	recordStream  = iota << 4 // bytes of a stream
	recordMessage             // a message begins
	recordMore                // more of it
	RecordOffer               // a message begins, whose data are to be fetched: see rendezvous; or see recordMoved
	recordMask    = 3 << 4
)

// Where its data lie.
const (
	inCell    = iota
	inRing    // from unit whereOf on
	inChunk   // number whereOf of the writer's chunks
	inReturn  // number whereOf of the reader's chunks
	placeMask = 3
)

// ringUnit is what places in the ring are counted in.
const ringUnit = 64

func (e *cell) place() uint32   { return e.where & placeMask }
func (e *cell) Record() uint32  { return e.where & recordMask }
func (e *cell) whereOf() uint32 { return e.where >> 8 }

func pipeBytes(n int) int { return pipeHead + tuning.PipeSize(n) }

// newPipe is the pipe in mem: a 16th of it is cells, a quarter at least the ring.
func newPipe(mem []byte) pipe {
	room := len(mem) - pipeHead
	cells := max(4, min(64, room/4/cellBytes))
	p := pipe{mem: mem, cells: unsafe.Slice((*cell)(unsafe.Pointer(&mem[pipeHead])), cells)}
	if room >= tuning.PipeMax {
		p.chunks = chunksOf
	}
	p.ring = mem[pipeHead+cells*cellBytes : len(mem)-p.chunks*chunkBytes]
	return p
}

// taken is how many records the reader has taken, as far as it has said.
func (p *pipe) taken() *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&p.mem[headAt])) }

// given is how often the reader has given chunk i back.
func (p *pipe) given(i int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&p.mem[givenAt+8*i]))
}

func (p *pipe) chunk(i int) []byte {
	at := len(p.mem) - (p.chunks-i)*chunkBytes
	return p.mem[at : at+chunkBytes]
}

// at is the cell of record number n, counted from 0.
func (p *pipe) at(n uint32) *cell { return &p.cells[n&uint32(len(p.cells)-1)] }

func inUnits(n int) int { return (n + ringUnit - 1) &^ (ringUnit - 1) }

// PipeWriter is the end of a pipe that is written to.
type PipeWriter struct {
	pipe         pipe
	wrote, freed uint32   // records written, and those of them known to have been taken
	free         int      // bytes of the ring
	next         int      // where the next data go there
	took         []uint32 // bytes of the ring, by cell

	// The chunks that this end has, those that it has got last at the end: of this pipe and, kept, of the other
	// direction's.
	have  [2 * chunksOf]uint8
	nHave int
	nKept int
	back  *pipeReader
	away  [chunksOf]bool   // by chunk of this pipe
	seen  [chunksOf]uint64 // given, as last looked at
	more  bool             // a stream waits for room

	unread  bool // the reader cannot read this process's memory
	crowded bool // the reader may share this rank's core: it begins only once the writer has filled the room
}

// kept marks a chunk of the other direction's pipe.
const kept = 1 << 7

func newPipeWriter(mem []byte) *PipeWriter {
	w := &PipeWriter{pipe: newPipe(mem)}
	w.free, w.took = len(w.pipe.ring), make([]uint32, len(w.pipe.cells))
	for i := range w.pipe.chunks {
		w.push(uint8(i))
	}
	return w
}

// cell is where the next record goes, nil if there is no room.
func (w *PipeWriter) cell() *cell {
	if w.wrote-w.freed >= uint32(len(w.pipe.cells)) && !w.look() {
		return nil
	}
	return w.pipe.at(w.wrote)
}

// look finds out what the reader has taken.
func (w *PipeWriter) look() bool {
	taken, before := uint32(w.pipe.taken().Load()), w.freed
	for ; w.freed != taken; w.freed++ {
		w.free += int(w.took[w.freed&uint32(len(w.pipe.cells)-1)])
	}
	return taken != before
}

// put writes the next record, whose cell is e, with as much of b as one record takes: that many bytes; -1 if
// there is no room for any.
func (w *PipeWriter) put(e *cell, what, hash uint32, b []byte) int {
	n, where := len(b), uint32(inCell)
	e.where = where // stored first: a check whether e is nil would be a load, which waits for the line
	took := 0
	if n <= cellData {
		copy(e.data[:], b)
	} else if to, at := w.room(n); to == nil {
		if to, took = w.inRing(n); to == nil {
			return -1
		}
		n = copy(to, b)
		where = inRing | uint32(w.next/ringUnit)<<8
		w.next += inUnits(n)
	} else {
		if n <= 4*chunkBytes && !w.crowded {
			n = min(n, chunkFirst)
		}
		n, where = copy(to, b[:n]), at
	}
	w.post(e, n, took, where|what, hash)
	return n
}

// post says that the next record, of n bytes, is there; it took so many of the ring.
func (w *PipeWriter) post(e *cell, n, took int, where, hash uint32) {
	w.took[w.wrote&uint32(len(w.pipe.cells)-1)] = uint32(took)
	e.size, e.where = uint32(n), where
	w.wrote++
	ordered.Post(&e.flag, uint64(w.wrote)<<32|uint64(hash), &w.pipe.at(w.wrote).flag)
}

// room is a chunk for n bytes or some of them, nil if the ring is to take them.
func (w *PipeWriter) room(n int) (to []byte, where uint32) {
	if n < chunkFrom && (w.back == nil || !w.back.keep) || w.pipe.chunks == 0 || w.nHave == 0 && !w.reclaim() {
		return nil, 0
	}
	w.nHave--
	i := w.have[w.nHave]
	if i&kept != 0 {
		w.nKept--
		return w.back.pipe.chunk(int(i &^ kept)), inReturn | uint32(i&^kept)<<8
	}
	w.away[i] = true
	return w.pipe.chunk(int(i)), inChunk | uint32(i)<<8
}

// push adds a chunk to those that this end has.
func (w *PipeWriter) push(i uint8) {
	w.have[w.nHave] = i
	w.nHave++
	if i&kept != 0 {
		w.nKept++
	} else {
		w.away[i] = false
	}
}

// reclaim finds the chunks that were given back.
func (w *PipeWriter) reclaim() bool {
	for i := range w.pipe.chunks {
		if !w.away[i] {
			continue
		}
		if n := w.pipe.given(i).Load(); n != w.seen[i] {
			w.seen[i] = n
			w.push(uint8(i))
		}
	}
	return w.nHave > 0
}

// inRing is room for n bytes, or some of them, from next on, and what it takes; nil if there is none.
func (w *PipeWriter) inRing(n int) (to []byte, took int) {
	// A quarter: as much as the reader may have taken and not said, with as much again lost at the end of the ring, leaves
	// room for it.
	n = min(n, len(w.pipe.ring)/4&^(ringUnit-1))
	at, took := w.next, inUnits(n)
	if at+took > len(w.pipe.ring) {
		took += len(w.pipe.ring) - at
		at = 0
	}
	if took > w.free {
		if w.look(); took > w.free {
			return nil, 0
		}
	}
	w.free -= took
	w.next = at
	return w.pipe.ring[at : at+n], took
}

// TrySend writes what fits, as a stream.
func (w *PipeWriter) TrySend(b []byte) (int, error) {
	sent := 0
	for sent < len(b) {
		e := w.cell()
		if e == nil {
			break
		}
		n := w.put(e, recordStream, 1, b[sent:])
		if n >= 0 {
			sent += n
		} else if w.pipe.larger == nil || !w.grow() {
			break
		}
	}
	w.more = sent < len(b)
	return sent, nil
}

// pipeReader is the end of a pipe that is read from.
type pipeReader struct {
	pipe       pipe
	read, told uint32 // records taken, and those of them that the writer has been told of
	ringTaken  int    // bytes of the ring taken and not told
	back       *PipeWriter
	keep       bool // what comes in chunks of the writer stays: this rank has data for the other in turn
	gave       [chunksOf]uint64
	pid        int32 // of the process at the other end, whose memory this one can read; -1 if it cannot

	// Records read as a stream: a message becomes its header and its data.
	comm  uint64
	front []byte // of the header
	head  [HeadBytes]byte
	begun bool // the record has been looked at
	in    int  // bytes of its data that have been taken
}

func newPipeReader(mem []byte, comm uint64) *pipeReader {
	return &pipeReader{pipe: newPipe(mem), comm: comm}
}

// join tells the two ends of the pipes between two ranks of each other.
func (r *pipeReader) join(w *PipeWriter) { r.back, w.back = w, r }

// Cell is that of the next record, nil if that has not come.
func (r *pipeReader) Cell() *cell {
	e := r.pipe.at(r.read)
	if uint32(atomic.LoadUint64(&e.flag)>>32) != r.read+1 {
		return nil
	}
	return e
}

// data are those of the next record, where they lie.
func (r *pipeReader) data(e *cell) []byte {
	switch e.place() {
	case inCell:
		return e.data[:e.size]
	case inRing:
		return r.pipe.ring[e.whereOf()*ringUnit:][:e.size]
	case inChunk:
		return r.pipe.chunk(int(e.whereOf()))[:e.size]
	}
	return r.back.pipe.chunk(int(e.whereOf()))[:e.size]
}

// done says that the next record is taken.
func (r *pipeReader) done(e *cell) {
	switch i := e.whereOf(); e.place() {
	case inRing:
		r.ringTaken += inUnits(int(e.size))
	case inChunk:
		if r.keep {
			r.back.push(uint8(i) | kept)
		} else {
			r.give(int(i))
		}
	case inReturn:
		r.back.push(uint8(i))
	}
	r.read++
	if r.read-r.told >= uint32(len(r.pipe.cells)/4) || r.ringTaken >= len(r.pipe.ring)/4 {
		r.told, r.ringTaken = r.read, 0
		ordered.Store((*uint64)(unsafe.Pointer(r.pipe.taken())), uint64(r.read))
	}
}

// give gives chunk i of the writer back.
func (r *pipeReader) give(i int) {
	r.gave[i]++
	ordered.Store((*uint64)(unsafe.Pointer(r.pipe.given(i))), r.gave[i])
}

// release gives back the chunks that have been kept.
func (r *pipeReader) release() {
	r.keep = false
	w := r.back
	if w == nil || w.nKept == 0 {
		return
	}
	have := w.have[:w.nHave]
	w.nHave, w.nKept = 0, 0
	for _, i := range have {
		if i&kept != 0 {
			r.give(int(i &^ kept))
		} else {
			w.push(i)
		}
	}
}

// Peek is up to limit of the next bytes, as they lie; Discard says they are read.
func (r *pipeReader) Peek(_ []byte, limit int) ([]byte, error) {
	e := r.Cell()
	for ; e != nil && e.Record() == RecordOffer; e = r.Cell() {
		if !e.moved() { // what comes as a stream goes through the pipe
			r.answer(e, refused)
			return nil, nil
		} else if !r.follow() {
			return nil, errUnmapped
		}
	}
	if e == nil {
		return nil, nil
	}
	if !r.begun {
		r.begun, r.in = true, 0
		if e.Record() == recordMessage {
			h := head{comm: r.comm, kind: messageData, bytes: e.bytes, record: e.said()}
			h.encode(r.head[:])
			r.front = r.head[:]
		}
	}
	if len(r.front) > 0 {
		return r.front[:min(limit, len(r.front))], nil
	}
	v := r.data(e)[r.in:]
	return v[:min(limit, len(v))], nil
}

// said is the record of the call that sent the message that e begins, with the message's count.
func (e *cell) said() call.Record {
	t := op.Type(e.typ)
	return call.Record{Place: e.nth, Seq: e.seq, Count: e.bytes / uint64(max(t.Size(), 1)), Root: e.root,
		Hash: uint32(e.flag), Kind: e.kind, Type: t, Op: op.Op(e.op), State: e.state}
}

// Discard takes n bytes that Peek has shown.
func (r *pipeReader) Discard(n int) {
	if n == 0 {
		return
	}
	k := min(n, len(r.front))
	r.front = r.front[k:]
	r.in += n - k
	if e := r.pipe.at(r.read); len(r.front) == 0 && r.in == int(e.size) {
		if r.keep = r.back != nil && r.back.more; !r.keep {
			r.release()
		}
		r.begun = false
		r.done(e)
	}
}

// TryRecv reads what is there.
func (r *pipeReader) TryRecv(b []byte) (int, error) {
	n := 0
	for n < len(b) {
		v, err := r.Peek(nil, len(b)-n)
		if len(v) == 0 {
			return n, err
		}
		n += copy(b[n:], v)
		r.Discard(len(v))
	}
	return n, nil
}
