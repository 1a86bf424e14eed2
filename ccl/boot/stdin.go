package boot

import (
	"io"
	"os"
	"os/exec"
)

// input connects r to the command's input. A file is handed over: what the command does not read stays in
// it, for a shell's loop around this process, say. Of anything else, and of a terminal, which lets only
// the processes in its foreground read, the command gets a copy; what has been read of it when the
// command ends is lost.
func input(cmd *exec.Cmd, r io.Reader) (feed func(), err error) {
	f, isFile := r.(*os.File)
	if isFile && !controls(f) {
		cmd.Stdin = f
		return func() {}, nil
	}
	w, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	return func() {
		go func() { // not waited for: a terminal may say nothing ever more
			if isFile {
				r = foreground{f}
			}
			io.Copy(w, r)
			w.Close()
		}()
	}, nil
}
