package shm

import (
	"fmt"
	"slices"
	"sync/atomic"
	"unsafe"
)

// The slices of the ranks of a host lie in a memory of their own, beside that of the job. A job
// that grows is a new one, and has a new memory; the slices' it takes over from the one before, so
// that slices stay what they are: memory that all ranks of the host can map. A process that comes
// to such a job late gets both.
//
// Slices outlive the job in which they were made, so nothing frees those of a process that dies but
// the others. Each process keeps a ledger in that memory, where they find what it had: see Reap.

// Slices returns the memory in which slices of the ranks of h lie. It is h itself where there is no other.
func (h *Host) Slices() *Host {
	if h.slices == nil {
		return h
	}
	return h.slices
}

// ShareSlices has h use the memory of slices that from has. It is false if from has none, or it is
// closed: another goroutine may have closed from and been the last.
func (h *Host) ShareSlices(from *Host) bool {
	return from != nil && from.slices != nil && h.holdSlices(from.slices, func() bool { return true })
}

// holdSlices makes s the memory of h's slices, if that is open and right says that it is the right one.
func (h *Host) holdSlices(s *Host, right func() bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || !right() { // else its descriptor may be another's by now
		return false
	}
	s.jobs++
	if s.ledger == nil {
		s.ledger = new(ledger)
	}
	h.slices = s
	return true
}

// letGo is the Close of a Host that has h as the memory of its slices.
func (h *Host) letGo() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.jobs--; h.jobs == 0 {
		h.close()
	}
}

// Jobs is how many Hosts of this process have h as the memory of their slices.
func (h *Host) Jobs() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.jobs
}

// ledger is where a process keeps what it has of the memory of slices: pages of words, of which one
// page names the next. A word is a Range, or 0. A killed process may leave a word of a slice that
// it was about to free; then its memory is emptied twice. Most processes have no slices, so its
// first page is made with the first of them.
type ledger struct {
	first uint64 // where the first page lies, 0 if there is none
	pages []*ledgerPage
	home  atomic.Uint64    // what the first page is to say, while there is none
	shown []*atomic.Uint64 // words that others read, which are to say where the first page lies
}

const ledgerBytes = 4 << 10

// ledgerPage is one of these pages.
type ledgerPage struct {
	next  atomic.Uint64 // where the next one lies, 0 if there is none
	home  atomic.Uint64 // of the first page: see SetHome
	words [ledgerBytes/8 - 2]atomic.Uint64
}

var _ [0]byte = [unsafe.Sizeof(ledgerPage{}) - ledgerBytes]byte{}

// addPage adds a page to the ledger.
func (h *Host) addPage() error {
	off, err := h.Alloc(ledgerBytes)
	if err != nil {
		return err
	}
	mem, err := h.View(off, ledgerBytes)
	if err != nil {
		h.Free(off, ledgerBytes)
		return err
	}
	p := (*ledgerPage)(unsafe.Pointer(&mem[0]))
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.ledger
	if n := len(l.pages); n > 0 {
		l.pages[n-1].next.Store(off)
	} else {
		l.first = off
		p.home.Store(l.home.Load())
		for _, own := range l.shown {
			own.Store(off)
		}
	}
	l.pages = append(l.pages, p)
	return nil
}

// ShowLedger has own, which others read, say where this process's ledger lies, from the first slice
// on and until HideLedger.
func (h *Host) ShowLedger(own *atomic.Uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ledger != nil {
		own.Store(h.ledger.first)
		h.ledger.shown = append(h.ledger.shown, own)
	}
}

// HideLedger ends what ShowLedger began: nothing is written to own any more.
func (h *Host) HideLedger(own *atomic.Uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ledger != nil {
		h.ledger.shown = slices.DeleteFunc(h.ledger.shown, func(w *atomic.Uint64) bool { return w == own })
	}
}

// note enters r, in which a slice of this process lies.
func (h *Host) note(r Range) error {
	if h.ledger == nil {
		return nil
	}
	for {
		h.mu.Lock()
		noted := h.over || h.ledger.swap(0, r)
		h.mu.Unlock()
		if noted {
			return nil
		}
		if err := h.addPage(); err != nil {
			return fmt.Errorf("shared memory: no room to note a slice: %w", err)
		}
	}
}

// strike takes r out. It must come before the place of r is given back.
func (h *Host) strike(r Range) {
	if h.ledger == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.over {
		h.ledger.swap(r, 0)
	}
}

// swap replaces a word, and reports whether it is there.
func (l *ledger) swap(old, to Range) bool {
	for _, p := range l.pages {
		for i := range p.words {
			if p.words[i].Load() == uint64(old) {
				p.words[i].Store(uint64(to))
				return true
			}
		}
	}
	return false
}

// SetHome sets the job that this process's slices belong to, and returns the job before: only
// processes of that job Reap the slices.
func (h *Host) SetHome(job uint64) (before uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if home := h.home(); home != nil {
		before = home.Swap(job)
	}
	return before
}

// LeaveHome ends what SetHome began, unless the slices belong to a later job by now.
func (h *Host) LeaveHome(job, before uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if home := h.home(); home != nil {
		home.CompareAndSwap(job, before)
	}
}

// IsHome reports whether this process's slices belong to that job.
func (h *Host) IsHome(job uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	home := h.home()
	return home != nil && home.Load() == job
}

// home is where that stands, nil if this process keeps no ledger. h.mu is held.
func (h *Host) home() *atomic.Uint64 {
	if h.over || h.ledger == nil {
		return nil
	}
	if len(h.ledger.pages) == 0 {
		return &h.ledger.home
	}
	return &h.ledger.pages[0].home
}

// Reap empties the slices of a process that has ended, whose ledger lies at off, if that belongs to
// that job, and reports whether nothing is left of them. Their places are not used again: what
// others write there late goes nowhere. A word of the ledger, and a page of it, goes after what it
// names, so that another can begin anew where a process is killed in this; two at once do no harm.
func (h *Host) Reap(off, job uint64) bool {
	var read []uint64 // pages; so that no ring of them leads anywhere twice
	for off != 0 && isRegion(RangeOf(off, ledgerBytes)) && !slices.Contains(read, off) {
		mem, err := h.View(off, ledgerBytes)
		if err != nil {
			return false
		}
		p := (*ledgerPage)(unsafe.Pointer(&mem[0]))
		if home := p.home.Load(); len(read) == 0 && home != job {
			h.Drop(PlaceAt(off, ledgerBytes))
			return home == 0 // another has emptied it
		}
		read = append(read, off)
		next := p.next.Load()
		for i := range p.words {
			if r := Range(p.words[i].Load()); r.Pages() > 0 && isRegion(r) {
				h.Forget(r.First()*uint64(Page), int(r.Pages())*Page)
			}
			p.words[i].Store(0)
		}
		h.Drop(PlaceAt(off, ledgerBytes))
		off = next
	}
	for _, off := range slices.Backward(read) { // the first, which leads to the others, is the last
		h.Forget(off, ledgerBytes)
	}
	return true
}

// isRegion reports whether r may be of a region.
func isRegion(r Range) bool {
	return r.First() >= headerBytes/uint64(Page) && r.end() <= memfdBytes/uint64(Page)
}
