package pp

import "fmt"

// model runs a schedule in virtual time, with messages that take none.
type model struct {
	p, v int
	todo [][]Step // of each stage
}

// link is the messages from one stage to the next in one direction, in order.
type link struct {
	sent []message
	got  []float64 // when the receiver had done with each
}

type message struct {
	step Step // as the receiver runs it
	at   float64
}

// buffers of a link, at each end. The receiver asks for message k when it has done with k-2, and the sender may fill
// its buffer again once that message is taken.
const buffers = 2

// run gives each forward pass time f, each backward pass time b, and the gradients of the weights time
// w where they are apart. idle is the share of the span that stage 0 idles.
func (m *model) run(f, b, w float64) (held []int, idle float64, err error) {
	clock, busy, now := make([]float64, m.p), make([]float64, m.p), make([]int, m.p)
	held = make([]int, m.p)
	links := [2][]link{make([]link, m.p), make([]link, m.p)} // by direction and receiver
	done := make([]map[Step]bool, m.p)                       // of each stage
	last := make([]func(Step) bool, m.p)
	for r, steps := range m.todo {
		done[r], last[r] = map[Step]bool{}, lets(steps)
	}
	span := 0.
	for moved := true; moved; {
		moved = false
		for r := range m.p {
			for len(m.todo[r]) > 0 {
				x := m.todo[r][0]
				dir, part, took := 0, x.Chunk*m.p+r, f
				next := part + 1
				if x.Backward {
					dir, next, took = 1, part-1, b
				}
				start := clock[r]
				in := &links[dir][r]
				first := part == 0 && dir == 0 || part == m.p*m.v-1 && dir == 1
				if x.Weights {
					first, next, took = true, -1, w
				}
				if !first {
					k := len(in.got)
					if k >= len(in.sent) {
						break
					}
					if in.sent[k].step != x {
						return nil, 0, fmt.Errorf("stage %d expects the %v, but is sent the %v", r, x, in.sent[k].step)
					}
					start = max(start, in.sent[k].at)
				}
				if x.Backward && !done[r][Step{Micro: x.Micro, Chunk: x.Chunk}] {
					return nil, 0, fmt.Errorf("stage %d has the %v before its forward", r, x)
				}
				if x.Weights && !done[r][Step{Backward: true, Micro: x.Micro, Chunk: x.Chunk}] {
					return nil, 0, fmt.Errorf("stage %d has the %v before its backward", r, x)
				}
				var out *link
				if next >= 0 && next < m.p*m.v {
					out = &links[dir][next%m.p]
					// The send before the last must have been taken, for which the receiver must have asked.
					if k := len(out.sent) - 2*buffers; k >= 0 {
						if k >= len(out.got) {
							break
						}
						start = max(start, out.got[k])
					}
				}
				clock[r] = start + took
				busy[r] += took
				if !first {
					in.got = append(in.got, clock[r])
				}
				if out != nil {
					out.sent = append(out.sent, message{Step{Backward: x.Backward, Micro: x.Micro, Chunk: next / m.p}, clock[r]})
				}
				if !x.Backward && !x.Weights {
					now[r]++
					held[r] = max(held[r], now[r])
				}
				done[r][x] = true
				if last[r](x) {
					now[r]--
				}
				span = max(span, clock[r])
				m.todo[r] = m.todo[r][1:]
				moved = true
			}
		}
	}
	for r, left := range m.todo {
		if len(left) > 0 {
			return nil, 0, fmt.Errorf("deadlock: stage %d cannot begin the %v", r, left[0])
		}
	}
	return held, 1 - busy[0]/span, nil
}
