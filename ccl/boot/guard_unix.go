//go:build unix

package boot

import (
	"fmt"
	"io"
	"os/exec"
	"syscall"
)

// guardScript keeps the process groups of a job, and kills them once nobody can write to it any more.
// It reads what the guard writes: add and gone with the number of a group.
const guardScript = `trap '' HUP INT QUIT TERM
all= dead=
while read -r what group; do
	case $what in
	add) all="$all $group" ;;
	gone) dead="$dead $group" ;;
	esac
done
for g in $all; do
	case "$dead " in
	*" $g "*) ;;
	*) kill -s KILL -- "-$g" ;;
	esac
done
`

// guard is a process that ends the ranks, with all that they have started, when this process has ended in a
// way that leaves it no time to do so. Linux alone would end a rank with its parent, and not what a rank
// has started: the program that a shell runs as a rank.
type guard struct {
	in  io.WriteCloser
	cmd *exec.Cmd
}

// newGuard starts a guard, in a process group of its own; nil where there is no shell.
func newGuard() *guard {
	cmd := exec.Command("/bin/sh", "-c", guardScript)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil || cmd.Start() != nil {
		return nil
	}
	return &guard{in, cmd}
}

// add has the guard know of a process group.
func (g *guard) add(group int) { g.tell("add", group) }

// gone has it forget one that has ended.
func (g *guard) gone(group int) { g.tell("gone", group) }

func (g *guard) tell(what string, group int) {
	if g != nil {
		fmt.Fprintln(g.in, what, group) // a guard that was killed is no reason to end a job
	}
}

// dismiss ends the guard, which leaves the groups alone.
func (g *guard) dismiss() {
	if g != nil {
		g.cmd.Process.Kill()
		g.cmd.Wait()
	}
}
