package ckpt

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccl/goccl/train/internal/same"
)

// Step is the name of the checkpoint of a step in dir: dir/step-00001000. Latest, Keep and Forget look for those of
// steps from 0 on.
func Step(dir string, step int) string { return filepath.Join(dir, fmt.Sprintf("step-%08d", step)) }

// stepOf is the number in a name that Step has made.
func stepOf(name string) (number int, ok bool) {
	digits, ok := strings.CutPrefix(name, "step-")
	number, err := strconv.Atoi(digits)
	return number, ok && err == nil && number >= 0 && Step("", number) == name
}

// A checkpoint that is written is NAME.tmp-SEQUENCE-RANDOM until it is whole, and one that is removed is
// NAME.gone-RANDOM. A damaged one in whose place another one is written becomes NAME.damaged-RANDOM: no writer and no
// remover uses a name of another one, and what has lost its name is never given one again. Only names with what random
// makes at their end are of this package: a NAME.tmp-old or a NAME.gone-wrong is the user's, and stays.
const (
	tmpSuffix     = ".tmp-"
	goneSuffix    = ".gone-"
	damagedSuffix = ".damaged-"
)

var entryNames = regexp.MustCompile(`^(.+?)(\.tmp-(\d{1,18})-[0-9a-f]{16})?(\.gone-[0-9a-f]{16})?$`)

// entryName is what the name of an entry of a directory of checkpoints says.
type entryName struct {
	of       string // the name of the checkpoint
	number   int    // of its step; -1: Step has not made the name
	tmp      bool   // it is being written, or was
	sequence int64  // and this is its place in time
	gone     bool   // it is being removed, or was
}

func parseName(name string) (e entryName) {
	e.of, e.number = name, -1
	if m := entryNames.FindStringSubmatch(name); m != nil {
		e.of, e.tmp, e.gone = m[1], m[2] != "", m[4] != ""
		e.sequence, _ = strconv.ParseInt(m[3], 10, 64)
	}
	if n, ok := stepOf(e.of); ok {
		e.number = n
	}
	return e
}

func random() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // which never fails
	return hex.EncodeToString(b)
}

// take makes a directory for what is to be dir, with a name of its own. What another writer of dir
// has left unfinished, or is writing now, goes: of two writers the one that began first gets an
// error.
func (d *disk) take(dir string) (tmp string, sequence int64, err error) {
	if err := d.do("", dir, func() error { return vacant(dir) }); errors.Is(err, fs.ErrExist) && damaged(dir) {
		moved := dir + damagedSuffix + random()
		err := d.do("rename", dir, func() error { return os.Rename(dir, moved) })
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", 0, err
		}
		if err == nil && whole(folder(moved)) == nil { // another writer has published dir since then: it gets its name back
			if err := os.Rename(moved, dir); err != nil {
				return "", 0, fmt.Errorf("%s is whole: %w", moved, err)
			}
			return "", 0, vacant(dir)
		}
	} else if err != nil {
		return "", 0, err
	}
	above, name := filepath.Split(dir)
	above = filepath.Clean(above)
	if err := d.makeAbove(above); err != nil {
		return "", 0, err
	}
	var es []os.DirEntry
	if err := d.do("", above, func() error { es, err = os.ReadDir(above); return err }); err != nil {
		return "", 0, err
	}
	for _, e := range es {
		if x := parseName(e.Name()); x.tmp && x.of == name {
			gone, err := d.setAside(filepath.Join(above, e.Name()))
			if err == nil && gone != "" {
				err = d.remove(gone)
			}
			if err != nil {
				return "", 0, err
			}
		}
	}
	if _, ok := stepOf(name); ok {
		steps, err := d.list(above)
		if err != nil {
			return "", 0, err
		}
		for _, s := range steps {
			sequence = max(sequence, s.sequence)
		}
		sequence++
	}
	tmp = fmt.Sprintf("%s%s%d-%s", dir, tmpSuffix, sequence, random())
	return tmp, sequence, d.mkdir(tmp)
}

// damaged reports whether dir is a checkpoint of a step that has lost something, and nothing else:
// a training that has gone on from the one before comes to that step again. What has another format
// may be whole for another version.
func damaged(dir string) bool {
	if _, ok := stepOf(filepath.Base(dir)); !ok {
		return false
	}
	if err := whole(folder(dir)); err == nil || errors.Is(err, errFormat) {
		return false
	}
	es, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range es {
		if e.Name() != indexName && !partNames.MatchString(e.Name()) {
			return false
		}
	}
	return true
}

var partNames = regexp.MustCompile(`^part-\d{5,}-of-\d{5,}\.safetensors$`)

// taken is the error for a name that a checkpoint has.
func taken(dir string) error {
	why := ""
	if _, ok := stepOf(filepath.Base(dir)); ok {
		why = ": another job saves there, or this training has gone back to a step before it without Forget"
	}
	return fmt.Errorf("%s: %w%s", dir, fs.ErrExist, why)
}

// vacant is an error if there is anything at dir.
func vacant(dir string) error {
	_, err := os.Lstat(dir)
	if err == nil {
		return taken(dir)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// setAside renames name, so that nobody takes half of it for the whole, and a writer of it finds it
// gone. gone is "" if there is none: another has set it aside.
func (d *disk) setAside(name string) (gone string, err error) {
	if parseName(filepath.Base(name)).gone {
		return name, nil
	}
	gone = name + goneSuffix + random()
	err = d.do("rename", name, func() error { return os.Rename(name, gone) })
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return gone, err
}

// rename gives tmp, whose files are on disk, its name.
func (d *disk) rename(dir, tmp string) error {
	if err := d.syncDir(tmp); err != nil {
		return d.lost(tmp, err)
	}
	err := d.do("rename", dir, func() error {
		if err := os.Rename(tmp, dir); err != nil {
			return cmp.Or(vacant(dir), err) // which says on every system that it is taken
		}
		return nil
	})
	if err != nil {
		return d.lost(tmp, err)
	}
	return d.syncDir(filepath.Dir(dir))
}

// lost is an error in what is written to tmp, and says so if tmp is not there.
func (d *disk) lost(tmp string, err error) error {
	if err == nil || d.silent != nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	if missing := same.Do(tmp, func() error { _, err := os.Lstat(tmp); return err }); !errors.Is(missing, fs.ErrNotExist) {
		return err
	}
	return fmt.Errorf("%w: another job that saves to the same directory has removed what this one writes, or this host does not see the directory", err)
}
