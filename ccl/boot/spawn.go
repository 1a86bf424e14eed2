package boot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/environ"
	"github.com/goccl/goccl/internal/subprocess"
)

// Command says what [Spawn] runs.
type Command struct {
	// N is the number of ranks.
	N int
	// Path is the program: a path, or a name that is looked up in PATH.
	Path string
	// Args are the program's arguments, without its name.
	Args []string
	// Env is the program's environment. nil is this process's. Spawn sets GOCCL_RANK and the like.
	Env []string
	// Dir is the program's working directory. "" is this process's.
	Dir string
	// Hosts makes the ranks act as on so many hosts, in blocks. 0 leaves them as they are.
	Hosts int
	// Stdin is the input of rank 0. The other ranks have none. Rank 0 gets a file itself, so that what
	// it does not read stays there; of a terminal, and of anything else, it gets a copy.
	Stdin io.Reader
	// Stdout and Stderr receive the ranks' output, one write at a time, so the two may be one: line by
	// line, a line in which the cursor goes back as it grows. nil drops it. If one fails, Spawn does.
	Stdout, Stderr io.Writer
	// Prefix puts "[3] " before each line of rank 3.
	Prefix bool
	// Logs is a directory in which each rank's output is also written, as it is, to a file of its own,
	// such as rank-3.log. "" writes none.
	Logs string
	// KeepGoing lets the other ranks go on when one fails.
	KeepGoing bool
	// Grace is the time between SIGTERM and SIGKILL. 0 means one second.
	Grace time.Duration
	// Restart starts a rank that fails again, at most so many times in a row: at once, then after 1 s,
	// 2 s, 4 s, and so on up to a minute. A rank that has run for a minute begins a new row. It implies KeepGoing. A rank
	// that is started again is a newcomer: it waits in ccl.Join until the others take it in by ccl.Grow.
	// Nobody is started again once all ranks that were in the job have ended.
	Restart int
	// Hall is host:port where Spawn listens for processes that start late, such as those of Restart:
	// they find the job by GOCCL_HALL, which is set for all ranks. "" means a free port of this host
	// with Restart, and none without.
	Hall string
}

// ExitError says which rank failed, and how.
type ExitError struct {
	// Rank is the rank at fault, as far as it is known; else the one that failed first.
	Rank int
	// Code is its exit code, or -1 if a signal ended it.
	Code int
	// Signal is the signal that ended it, or nil.
	Signal os.Signal
	// Well is how many ranks ended with exit code 0. With KeepGoing these have survived the failure.
	Well int
	// Unused is how many of these were spares that the job has not needed: ccl.Join has returned
	// ccl.ErrUnused there. It is 0 on systems other than Unix.
	Unused int
	// Failed is how many ranks failed, this one included, and not those that a signal of Spawn ended.
	Failed int
	// Stopped is how many ranks Spawn has ended because of the failure.
	Stopped int
	// Restarted is how many times Spawn has started a rank again: see Command.Restart. A rank that was
	// started again, taken in and ended well counts in Well alone. One that was not taken in does not.
	Restarted int

	named int // 1 more than the rank that the others hold to be the cause; 0 if there is none
}

// Named is the rank that the others hold to be the cause, where it did not fail by itself.
func (e *ExitError) Named() (rank int, ok bool) { return e.named - 1, e.named > 0 }

// Error returns a line such as: rank 2 exited with code 1
func (e *ExitError) Error() string {
	text := fmt.Sprintf("rank %d exited with code %d", e.Rank, e.Code)
	if e.Signal != nil {
		text = fmt.Sprintf("rank %d was ended by a signal: %v", e.Rank, e.Signal)
	}
	if r, ok := e.Named(); ok {
		text += fmt.Sprintf(", for which the ranks name rank %d as the cause", r)
	}
	return text
}

// maxSpawn is how many processes Spawn starts at most.
const maxSpawn = 16384

// Spawn runs a command as N ranks on this host and waits until all have ended. Each rank finds the
// others with [Env]. Interrupts and similar signals are passed on to the ranks, which then have
// Grace to end; so are SIGUSR1, SIGUSR2 and SIGCONT, and SIGTSTP stops the ranks and this process. If a rank
// fails, the others are ended, unless KeepGoing is set. The error is an *ExitError for the rank at fault; the
// others may have failed only as a consequence. Whatever ends this process ends the ranks and what they have
// started, on Unix systems with a shell.
//
// A secret that Env has stays the job's; one that could be guessed is an error. Otherwise Spawn makes
// one, which passes through the environment, where only the user's own processes can read it. Spawn
// opens rank 0's socket itself, so that no other process can take the port in between.
func Spawn(ctx context.Context, c Command) error {
	if err := noContext(ctx); err != nil {
		return err
	}
	return spawnAt(ctx, c, usualTempo)
}

// spawnAt is Spawn, and starts ranks again at that tempo.
func spawnAt(ctx context.Context, c Command, p tempo) error {
	if c.Restart < 0 {
		return fault(Argument, "Restart is %d; it is at least 0", c.Restart)
	}
	if c.N < 1 || c.N > maxSpawn {
		return fault(Argument, "%d ranks; a host can run from 1 to %d", c.N, maxSpawn)
	}
	if c.Hosts < 0 || c.Hosts > c.N {
		return fault(Argument, "%d hosts for %d ranks; each host needs one rank at least", c.Hosts, c.N)
	}
	path, err := exec.LookPath(c.Path)
	if err != nil {
		return fault(Argument, "%s cannot be run: %v", c.Path, err)
	}
	c.Path = path
	if c.Grace <= 0 {
		c.Grace = time.Second
	}
	if c.Env == nil {
		c.Env = os.Environ()
	}
	if c.Env, err = auth.Provide(environ.Without(c.Env, ownVars)); err != nil {
		return fault(Argument, "the job's secret is refused: %v", err)
	}
	root, err := listenHere(environ.Of(c.Env), "127.0.0.1:0", "[::1]:0")
	if err != nil {
		return cannotListen(err, "no free port")
	}
	defer root.Close()
	if err := reachHere(root); err != nil {
		return err
	}
	c.KeepGoing = c.KeepGoing || c.Restart > 0
	again, err := newRestarts(&c, p)
	if err != nil {
		return err
	}
	defer again.close()
	s := &spawn{
		Command: c, root: root, logs: make([]*rankLog, c.N), ranks: make([]*exec.Cmd, c.N), again: again,
		exits: make(chan int), tally: tally{ended: make([]bool, c.N), well: make([]bool, c.N),
			failed: make([]*ExitError, c.N)}, sent: map[os.Signal]bool{},
	}
	if err := s.openLogs(); err != nil {
		return err
	}
	defer s.closeLogs()
	return subprocess.Locked(func() error { return s.run(ctx) })
}

// spawn is one run of Spawn.
type spawn struct {
	Command
	root  net.Listener
	ranks []*exec.Cmd
	alive int
	out   output
	logs  []*rankLog // by rank; nil without Command.Logs
	guard *guard
	names *blamed
	exits chan int // ranks that have ended
	again *restarts

	tally  tally
	ending bool               // the ranks have been told to end
	sent   map[os.Signal]bool // what they have been sent
}

// tally is how ranks have ended.
type tally struct {
	ended  []bool       // by rank
	well   []bool       // by rank: those that ended with exit code 0
	cause  *ExitError   // the first failure
	failed []*ExitError // by rank, those that ended by themselves
}

func (s *spawn) run(ctx context.Context) error {
	signals := make(chan os.Signal, 8)
	for _, sig := range forwarded {
		if !signal.Ignored(sig) { // as nohup wants it
			signal.Notify(signals, sig)
		}
	}
	defer signal.Stop(signals)

	s.guard = newGuard()
	defer s.guard.dismiss()
	s.names = newBlamed()
	defer s.names.close()
	err := s.start()
	var kill, idle <-chan time.Time
	end := func(sig os.Signal) {
		s.signal(sig)
		if !s.ending {
			s.ending = true
			kill = time.After(s.Grace)
		}
	}
	if err != nil {
		end(terminate)
	}
	done := ctx.Done()
	for s.alive > 0 {
		select {
		case r := <-s.exits:
			if s.note(r) && !s.KeepGoing && !s.ending {
				s.tally.cause.Stopped = s.alive
				end(terminate)
			}
			if s.alive > 0 && !s.ending && idle == nil && s.again.idle(s.isAlive) {
				idle = time.After(s.Grace)
			}
		case <-idle:
			end(terminate)
		case r := <-s.again.due:
			if !s.ending && s.again.next(r) {
				if serr := s.startRank(r, nil); serr != nil {
					s.out.say(s.Stderr, "%v", asError(serr).Text)
				}
			}
		case sig := <-signals:
			if endsRanks(sig) {
				end(sig)
			} else {
				subprocess.PassOn(sig, s.signal)
			}
		case <-done:
			done = nil
			if err == nil {
				err = ended(ctx.Err(), "ended the ranks because the context is over")
			}
			end(terminate)
		case <-kill:
			s.signal(os.Kill)
		}
	}
	switch {
	case err != nil:
		return err
	case s.out.lost() != nil:
		return s.out.lost()
	case s.tally.cause != nil:
		return s.fault()
	}
	return s.logFailed()
}

// start starts all ranks.
func (s *spawn) start() error {
	file, err := listenerFile(s.root)
	if err != nil {
		return fault(System, "no free port: %v", err)
	}
	defer file.Close() // of none it does nothing
	for r := range s.N {
		if err := s.startRank(r, file); err != nil {
			return err
		}
	}
	s.root.Close() // rank 0 has its own
	return nil
}

// startRank starts rank r, or a newcomer in its place. root is rank 0's socket, where it can be passed on.
func (s *spawn) startRank(r int, root *os.File) (err error) {
	cmd := exec.Command(s.Path, s.Args...)
	cmd.Dir, cmd.SysProcAttr = s.Dir, subprocess.Apart(syscall.SIGKILL)
	cmd.Env = append(s.Env[:len(s.Env):len(s.Env)], place(&s.Command, r)...)
	var feed func()
	if id := s.again.id(r); id != "" {
		cmd.Env = append(cmd.Env, environ.Newcomer.Set(id))
	} else {
		cmd.Env = append(cmd.Env, environ.Rank.Set(strconv.Itoa(r)), environ.Size.Set(strconv.Itoa(s.N)),
			environ.Root.Set(s.root.Addr().String()))
		if r == 0 && root != nil {
			cmd.ExtraFiles = []*os.File{root}
			cmd.Env = append(cmd.Env, environ.RootFD.Set("3"))
		}
		if r == 0 && s.Stdin != nil {
			if feed, err = input(cmd, s.Stdin); err != nil {
				return refused(s.N, err, "rank 0's standard input cannot be set up")
			}
		}
		if r == 0 && root == nil {
			s.root.Close() // it cannot be passed on: rank 0 opens it anew
		}
	}
	cmd.ExtraFiles, cmd.Env = s.names.pass(cmd.ExtraFiles, cmd.Env)
	outputs, err := carry(cmd, s.writer(s.Stdout, r), s.writer(s.Stderr, r))
	if err != nil {
		return refused(s.N, err, "rank %d's output cannot be set up", r)
	}
	err = cmd.Start()
	for _, o := range outputs {
		o.pipe.Started()
	}
	if err != nil {
		return refused(s.N, err, "rank %d cannot be started", r)
	}
	if feed != nil {
		feed()
	}
	s.ranks[r], s.tally.ended[r] = cmd, false
	s.alive++
	s.guard.add(cmd.Process.Pid)
	go func() {
		cmd.Wait() // what it returns is in ProcessState, too
		until := time.Now().Add(s.Grace)
		for _, o := range outputs {
			o.pipe.Wait(time.Until(until))
			o.lines.flush()
		}
		s.exits <- r
	}()
	return nil
}

// refused is the fault where the system does not give one of n ranks what args say. Where files
// are too few it says how many are enough, and nothing of the call that was refused: a line of at
// most 120 columns.
func refused(n int, err error, what string, args ...any) error {
	what = fmt.Sprintf(what, args...)
	if errors.Is(err, syscall.EMFILE) {
		return fault(System, "%s: %v; %d ranks need some %d: raise ulimit -n", what, syscall.EMFILE, n, 24+3*n)
	}
	return fault(System, "%s: %v", what, err)
}

// place says where rank r is to believe it is.
func place(c *Command, r int) []string {
	if c.Hosts == 0 {
		return []string{environ.LocalRank.Set(strconv.Itoa(r)), environ.LocalSize.Set(strconv.Itoa(c.N))}
	}
	// Host h has the ranks from first(h) to before first(h+1).
	first := func(h int) int { return (h*c.N + c.Hosts - 1) / c.Hosts }
	h := r * c.Hosts / c.N
	return []string{
		environ.HostID.Set(fmt.Sprintf("host-%d", h)),
		environ.LocalRank.Set(strconv.Itoa(r - first(h))),
		environ.LocalSize.Set(strconv.Itoa(first(h+1) - first(h))),
	}
}

// ownVars are the variables that Spawn sets, or that would contradict them.
var ownVars = []string{environ.Rank.Name, environ.Size.Name, environ.LocalRank.Name, environ.LocalSize.Name,
	environ.Root.Name, environ.RootFD.Name, environ.BlameFD.Name,
	environ.Store.Name, environ.HostID.Name, environ.Launcher.Name, environ.Hall.Name, environ.Newcomer.Name}

// note takes down one rank's end; true if it failed.
func (s *spawn) note(rank int) bool {
	s.alive--
	cmd := s.ranks[rank]
	s.tally.ended[rank] = true
	signalGroup(cmd, os.Kill)     // what it has left behind
	s.guard.gone(cmd.Process.Pid) // its number may be another's before this job is over
	state := cmd.ProcessState
	if state == nil {
		return false
	}
	var x *ExitError
	switch {
	case state.Success() && s.again.belongs(rank):
		s.tally.well[rank] = true
		s.tally.failed[rank] = nil // one before it may have
	case state.Success(): // a newcomer that the job has not taken in
	default:
		x = &ExitError{Rank: rank, Code: state.ExitCode(), Signal: signalOf(state)}
		s.tally.failedBy(x, x.Signal != nil && s.sent[x.Signal])
	}
	if s.ending {
		s.again.end()
	}
	s.again.ended(rank, x, s.isAlive, func(format string, args ...any) { s.out.say(s.Stderr, format, args...) })
	return x != nil
}

// failedBy notes the failure x. It is ours where a signal of this process has ended the rank.
func (t *tally) failedBy(x *ExitError, ours bool) {
	if !ours {
		t.failed[x.Rank] = x
	}
	// A rank that was killed may be slow to go, since Linux frees its memory first, and
	// the others may have failed for its sake before: it is the cause, unless the
	// signal was ours.
	if t.cause == nil || t.cause.Signal == nil && x.Signal != nil && !ours {
		if t.cause != nil {
			x.Stopped = t.cause.Stopped
		}
		t.cause = x
	}
}

// fault is the failure of the rank at fault: the one that the others name, if it has failed by
// itself; else the one that failed first.
func (s *spawn) fault() *ExitError {
	x := s.tally.cause
	x.Restarted = s.again.count
	// After a rank was started again the ranks count otherwise than the processes here.
	if rank, ok := s.names.rank(s.N); ok && rank != x.Rank && x.Restarted == 0 {
		if named := s.tally.failed[rank]; named != nil {
			named.Stopped, x = x.Stopped, named
		} else {
			x.named = rank + 1
		}
	}
	x.Well, x.Unused, x.Failed = 0, 0, 0
	for rank, unused := range s.names.unused(s.N) {
		if s.tally.well[rank] {
			x.Well++
			if unused {
				x.Unused++
			}
		}
	}
	for _, other := range s.tally.failed {
		if other != nil {
			x.Failed++
		}
	}
	return x
}

// isAlive reports whether a process runs in the place of that rank.
func (s *spawn) isAlive(rank int) bool { return s.ranks[rank] != nil && !s.tally.ended[rank] }

// signal signals all ranks that have not ended.
func (s *spawn) signal(sig os.Signal) {
	s.sent[sig] = true
	for r, cmd := range s.ranks {
		if s.isAlive(r) {
			signalGroup(cmd, sig)
		}
	}
}

// writer is where a rank's output goes.
func (s *spawn) writer(to io.Writer, rank int) *lines {
	if to == nil && s.logs[rank] == nil {
		return nil
	}
	if to == nil {
		to = io.Discard
	}
	l := &lines{out: &s.out, to: to, log: s.logs[rank]}
	if s.Prefix {
		l.prefix = fmt.Sprintf("[%d] ", rank)
	}
	return l
}

// rankOutput is the standard output or error of a rank.
type rankOutput struct {
	pipe  *subprocess.Output
	lines *lines
}

// carry gives a command its standard output and error, those that are not nil.
func carry(cmd *exec.Cmd, stdout, stderr *lines) (outputs []rankOutput, err error) {
	for _, o := range []struct {
		lines *lines
		child *io.Writer
	}{{stdout, &cmd.Stdout}, {stderr, &cmd.Stderr}} {
		if o.lines == nil {
			continue
		}
		pipe, child, err := subprocess.NewOutput(o.lines)
		if err != nil {
			for _, o := range outputs {
				o.pipe.Started()
			}
			return nil, err
		}
		*o.child = child
		outputs = append(outputs, rankOutput{pipe, o.lines})
	}
	return outputs, nil
}
