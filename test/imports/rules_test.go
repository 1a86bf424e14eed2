package imports

import (
	"io/fs"
	"os"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// rule is one that each file of some directories keeps, read by itself.
type rule struct {
	name    string
	dirs    []string                               // the files of these directories and below
	alone   bool                                   // of the directories themselves alone
	finds   func(s *source, bad func(what string)) // calls bad for each offence
	allowed []string                               // offences that the tree has, each with its reason where it is listed
	planted map[string]string                      // files with offences, and with what is none
	want    []string                               // the offences in them
}

// offences are what r finds in files, sorted, each once. Directories that are not there are left out if they may be.
func (r *rule) offences(files fs.FS, mayLack bool) (list []string, err error) {
	for _, dir := range r.dirs {
		if _, err := fs.Stat(files, dir); err != nil && mayLack {
			continue
		}
		walk := below
		if r.alone {
			walk = in
		}
		if err := walk(files, dir, func(s *source) { r.finds(s, func(what string) { list = append(list, what) }) }); err != nil {
			return nil, err
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// The tree keeps each rule, and what breaks it is found.
func TestRules(t *testing.T) {
	for _, r := range []*rule{&explained, &blindChoices, &monotonicTime, &oneClock, &contexts, &oneMemory, &oneListOfBackends, &registered, &plainTexts, &bounded, &ownSockets, &passesTheSeam, &framedByStreams, &oneVocabulary,
		&openedByFiles, &shortFiles, &askForMaker, &askForLayout, &begunByPreludes} {
		t.Run(r.name, func(t *testing.T) {
			list, err := r.offences(os.DirFS("../.."), false)
			require.NoError(t, err)
			slices.Sort(r.allowed)
			require.ElementsMatch(t, r.allowed, list)
			planted := fstest.MapFS{}
			for name, text := range r.planted {
				planted[name] = &fstest.MapFile{Data: []byte(text)}
			}
			list, err = r.offences(planted, true)
			require.NoError(t, err)
			require.Equal(t, r.want, list)
		})
	}
}
