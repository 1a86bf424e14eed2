package links

// beginAt sets the counters of a pipe that nobody reads yet.
func (w *PipeWriter) beginAt(start uint32) {
	if start == 0 {
		return
	}
	w.wrote, w.freed = start, start
	for i := range uint32(len(w.pipe.cells)) {
		w.pipe.at(start - 1 - i).flag = uint64(start-i)<<32 | 1
	}
	w.pipe.taken().Store(uint64(start))
}

func (r *pipeReader) beginAt(start uint32) { r.read, r.told = start, start }
