package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// line is what a peer has said about a round.
type line struct {
	what              string // worked, round
	round, size, rank int
	hash              string
	at                time.Time
	host              int
	p                 *peer
}

// event is what has happened to a host.
type event struct {
	what string // kill, unplug, plug, start, three
	at   time.Time
	host int
	p    *peer
}

// peer is a process on a host.
type peer struct {
	host    int
	cmd     *exec.Cmd
	off     bool // its host is unplugged
	settled bool // it has ended a round since it was started, or plugged in
}

// driver makes things happen, and writes down what the peers say.
type driver struct {
	set    *settings
	self   string
	mu     sync.Mutex
	live   map[int]*peer // by host
	lines  []line
	events []event
	ended  []string
}

func drive(s *settings) (*driver, error) {
	d := &driver{set: s, live: map[int]*peer{}}
	d.self, _ = os.Executable()
	hall := exec.Command(d.self, "-mode", "hall", "-hall", s.hall)
	hall.Stderr = os.Stderr
	if err := hall.Start(); err != nil {
		return nil, err
	}
	defer func() { hall.Process.Kill(); hall.Wait() }()
	time.Sleep(300 * time.Millisecond)
	defer d.killAll()
	if err := d.start(1); err != nil {
		return nil, err
	}
	d.until(1)
	three := []int{2, 3, 4}[:min(3, s.hosts-1)]
	for _, h := range three {
		if err := d.start(h); err != nil {
			return nil, err
		}
	}
	d.until(1 + len(three))
	r := rand.New(rand.NewPCG(s.seed, 1))
	for over := time.Now().Add(s.last); time.Now().Before(over); {
		time.Sleep(s.gap/2 + time.Duration(r.Int64N(int64(s.gap))))
		if err := d.happen(r); err != nil {
			return nil, err
		}
	}
	time.Sleep(s.gap + 3*s.silent) // what has begun is to end
	return d, nil
}

// until waits until so many peers have ended a round together.
func (d *driver) until(size int) {
	for range 3000 {
		d.mu.Lock()
		there := slices.ContainsFunc(d.lines, func(l line) bool { return l.what == "round" && l.size == size })
		d.mu.Unlock()
		if there {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// happen makes one thing happen: a host that stands idle gets a peer, one that is unplugged is plugged in, or one of
// at least three peers that are in the job is lost.
func (d *driver) happen(r *rand.Rand) error {
	d.mu.Lock()
	var settled, off, free []int
	for h := 1; h <= d.set.hosts; h++ {
		switch p := d.live[h]; {
		case p == nil:
			free = append(free, h)
		case p.off:
			off = append(off, h)
		case p.settled:
			settled = append(settled, h)
		}
	}
	d.mu.Unlock()
	pick := func(of []int) int { return of[r.IntN(len(of))] }
	switch {
	case len(settled) > 2 && (len(free)+len(off) == 0 || r.IntN(2) == 0):
		h, what := pick(settled), d.set.faults[r.IntN(len(d.set.faults))]
		d.mu.Lock()
		p := d.live[h]
		if p.settled = false; what == "kill" {
			delete(d.live, h)
		} else {
			p.off = true
		}
		d.events = append(d.events, event{what, time.Now(), h, p})
		d.mu.Unlock()
		if what == "kill" {
			return p.cmd.Process.Kill()
		}
		return d.link(h, "down")
	case len(off) > 0 && (len(free) == 0 || r.IntN(2) == 0):
		h := pick(off)
		d.mu.Lock()
		p := d.live[h]
		p.off = false
		d.events = append(d.events, event{"plug", time.Now(), h, p})
		d.mu.Unlock()
		return d.link(h, "up")
	case len(free) > 0:
		return d.start(pick(free))
	}
	return nil
}

func (d *driver) link(host int, state string) error {
	return exec.Command(d.set.net, "link", fmt.Sprint(host), state).Run()
}

// start starts a peer on a host.
func (d *driver) start(host int) error {
	p := &peer{host: host, cmd: exec.Command(d.set.net, "exec", fmt.Sprint(host), d.self, "-mode", "peer",
		"-n", fmt.Sprint(d.set.n), "-work", d.set.work.String(), "-peertimeout", d.set.silent.String())}
	p.cmd.Env = append(os.Environ(), "GOCCL_HALL="+d.set.hall)
	if !d.set.verbose {
		p.cmd.Env = append(p.cmd.Env, "GOCCL_LOG=quiet")
	}
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, event{"start", time.Now(), host, p})
	if err := p.cmd.Start(); err != nil {
		return err
	}
	d.live[host] = p
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			d.hear(p, s.Text())
		}
		p.cmd.Wait()
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.live[host] == p {
			d.ended = append(d.ended, fmt.Sprintf("host %d: %v", host, p.cmd.ProcessState))
			delete(d.live, host)
		}
	}()
	return nil
}

// hear notes what a peer says.
func (d *driver) hear(p *peer, text string) {
	if d.set.verbose {
		fmt.Printf("h%d %s\n", p.host, text)
	}
	l := line{host: p.host, p: p}
	var at int64
	f := strings.Fields(text)
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case len(f) < 2:
		return
	case f[1] == "ended":
		d.ended = append(d.ended, fmt.Sprintf("host %d: %s", p.host, text))
		return
	case f[1] == "worked":
		fmt.Sscan(text, &at, &l.what, &l.round)
	case f[1] == "round":
		fmt.Sscan(text, &at, &l.what, &l.round, &l.size, &l.rank, &l.hash)
		p.settled = p.settled || !p.off
	}
	l.at = time.Unix(0, at)
	d.lines = append(d.lines, l)
}

// killAll ends all peers.
func (d *driver) killAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for h, p := range d.live {
		p.cmd.Process.Kill()
		delete(d.live, h)
	}
}
