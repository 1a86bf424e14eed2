package cpu

import (
	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/mail"
	"github.com/goccl/goccl/internal/op"
)

// letterBox is where the notes of an attempt come.
type letterBox struct {
	a    *mail.Account
	tag  int64
	open map[*letter]bool // posted, and not read yet
	came chan *letter
}

// letter is a note that is waited for, or the hello that is to be taken.
type letter struct {
	use  mail.Use
	from int
	in   *mail.Receiving
	out  *mail.Sending // the hello; else nil
	note note
}

// post waits for a note from a rank, or any.
func (b *letterBox) post(use mail.Use, from int) {
	l := &letter{use: use, from: from}
	l.in = b.a.Recv(b.what(use, &l.note), from)
	b.await(l, l.in)
}

func (b *letterBox) what(use mail.Use, n *note) mail.What {
	return mail.What{Use: use, Tag: b.tag, Type: op.Uint64, Count: noteWords, Mem: n.bytes(), Within: -1}
}

// await has l come once its message has ended. It does not wait for functions of the program, as
// those of Then may have to.
func (b *letterBox) await(l *letter, message interface{ Done() <-chan struct{} }) {
	b.open[l] = true
	go func() {
		<-message.Done()
		b.came <- l // for which there is room
	}()
}

// took notes that l has come, and returns why it is none.
func (b *letterBox) took(l *letter) *call.Fault {
	delete(b.open, l)
	if l.out != nil {
		return l.out.Fault()
	}
	return l.in.Fault()
}
