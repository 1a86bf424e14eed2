package main

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/internal/cores"
	"github.com/goccl/goccl/test/internal/measure"
)

const (
	bounces = 2000 // of a line, in one round
	rows    = 200  // of reads, in one round
	inRow   = 32   // lines of a row
	apart   = 4096 + 64
)

// usable are those of all that this process may run on.
func usable(all []cores.Processor) []cores.Processor {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(p cores.Processor) bool { return !set.IsSet(p.CPU) })
}

// word is a word with a cache line, and the one beside it, for itself.
type word struct {
	atomic.Uint64
	_ [120]byte
}

// onCores runs each f on a thread that is bound to its core. The threads end with it.
func onCores(cpus []int, f func(i int)) error {
	var wg sync.WaitGroup
	errs := make([]error, len(cpus))
	var bound sync.WaitGroup
	bound.Add(len(cpus))
	for i, cpu := range cpus {
		wg.Go(func() {
			runtime.LockOSThread() // and never unlocked: the thread ends
			var one unix.CPUSet
			one.Set(cpu)
			errs[i] = unix.SchedSetaffinity(0, &one)
			bound.Done()
			bound.Wait()
			if slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
				return
			}
			f(i)
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// until looks at p until it is v. A thread without a core of its own gives way now and then.
func until(p *word, v uint64) {
	for looks := 1; p.Load() != v; looks++ {
		if looks%4096 == 0 {
			runtime.Gosched()
		}
	}
}

// pingPong is how long a line takes from a store on one core until the other core sees it: the fastest of some rounds, half
// of there and back.
func pingPong(a, b, rounds int) (float64, error) {
	best := time.Duration(1<<63 - 1)
	var lines [2]word
	err := onCores([]int{a, b}, func(i int) {
		for round := range rounds {
			began := time.Now()
			for n := range bounces {
				v := uint64(round*bounces + n + 1)
				if i == 0 {
					lines[0].Store(v)
					until(&lines[1], v)
				} else {
					until(&lines[0], v)
					lines[1].Store(v)
				}
			}
			if i == 0 {
				best = min(best, time.Since(began))
			}
		}
	})
	return float64(best.Nanoseconds()) / (2 * bounces), err
}

// further is what each further line adds that core b reads in a row and that core a has written.
func further(a, b, rounds int) (float64, error) {
	memory := make([]uint64, inRow*apart/8)
	var lines [2]word
	var took [2][]float64
	sum := uint64(0)
	err := onCores([]int{a, b}, func(i int) {
		for n := range uint64(rounds * rows) {
			if i == 0 {
				for at := 0; at < len(memory); at += apart / 8 {
					atomic.StoreUint64(&memory[at], n)
				}
				lines[0].Store(n + 1)
				until(&lines[1], n+1)
				continue
			}
			until(&lines[0], n+1)
			count := 1
			if n%2 == 1 {
				count = inRow
			}
			began := time.Now()
			for j := range count {
				sum += atomic.LoadUint64(&memory[j*apart/8])
			}
			took[n%2] = append(took[n%2], float64(time.Since(began).Nanoseconds()))
			lines[1].Store(n + 1)
		}
	})
	runtime.KeepAlive(sum)
	one, _, _ := measure.Median(took[0])
	row, _, _ := measure.Median(took[1])
	return max(row-one, 0) / (inRow - 1), err
}

// sharing is what each further core adds that reads one line: the first of cpus writes it, and waits until all others have
// answered, each in a line of its own; what the answers take is the same again.
func sharing(cpus []int, rounds int) (float64, error) {
	took := func(readers int) (float64, error) {
		best := time.Duration(1<<63 - 1)
		lines := make([]word, readers+1)
		err := onCores(cpus[:readers+1], func(i int) {
			for round := range rounds {
				began := time.Now()
				for n := range bounces {
					v := uint64(round*bounces + n + 1)
					if i > 0 {
						until(&lines[0], v)
						lines[i].Store(v)
						continue
					}
					lines[0].Store(v)
					for r := 1; r <= readers; r++ {
						until(&lines[r], v)
					}
				}
				if i == 0 {
					best = min(best, time.Since(began))
				}
			}
		})
		return float64(best.Nanoseconds()) / bounces, err
	}
	one, err := took(1)
	if err != nil {
		return 0, err
	}
	readers := min(len(cpus)-1, 15)
	many, err := took(readers)
	return max(many-one, 0) / float64(2*(readers-1)), err
}
