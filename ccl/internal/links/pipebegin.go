package links

// BeginAt sets the counters of a pipe that nobody reads yet.
func (p *PipeWriter) beginAt(start uint32) {
	if start == 0 {
		return
	}
	p.wrote, p.freed = start, start
	for i := range uint32(len(p.pipe.cells)) {
		p.pipe.at(start - 1 - i).flag = uint64(start-i)<<32 | 1
	}
	p.pipe.taken().Store(uint64(start))
}

func (p *pipeReader) beginAt(start uint32) { p.read, p.told = start, start }
