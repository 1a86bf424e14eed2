package disks

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/ckpt/store"
)

// wide is how many elements of the tensors have parts of several blocks, with three ranks or fewer.
const wide = 5 << 20 / 4 * 3

// tensors are what a rank of n holds of values that tell where they belong.
func tensors(r, n, elements int, value float32) []ckpt.Tensor {
	lo, hi := elements*r/n, elements*(r+1)/n
	data := make([]float32, hi-lo)
	for i := range data {
		data[i] = value + float32((lo+i)%1021)
	}
	return []ckpt.Tensor{{Name: "x", Shape: []int{elements}, Lo: lo, Hi: hi, Data: data},
		{Name: "all", Shape: []int{3}, Data: []float32{value, 1, 2}}}
}

// blank are the same with nothing in them.
func blank(r, n, elements int) []ckpt.Tensor {
	ts := tensors(r, n, elements, 0)
	clear(ts[0].Data.([]float32))
	clear(ts[1].Data.([]float32))
	return ts
}

// alike compares tensors, which are large, faster than require.Equal does.
func alike(t testing.TB, want, got []ckpt.Tensor) {
	for i := range want {
		require.True(t, slices.Equal(want[i].Data.([]float32), got[i].Data.([]float32)), want[i].Name)
	}
}

// on runs f on a rank for each disk.
func on(t *testing.T, disks []store.Store, o *Options, f func(t testing.TB, c *ccl.Comm, d *Disks), opts ...ccltest.Option) {
	ccltest.Run(t, len(disks), func(t testing.TB, c *ccl.Comm) {
		d, err := New(t.Context(), c, disks[c.Rank()], o)
		require.NoError(t, err)
		f(t, c, d)
		require.NoError(t, d.Close())
	}, opts...)
}

// save saves steps whose values tell them.
func save(t testing.TB, c *ccl.Comm, d *Disks, dir string, elements int, steps ...int) {
	for _, step := range steps {
		require.NoError(t, d.Save(t.Context(), ckpt.Step(dir, step), step, tensors(c.Rank(), c.Size(), elements, float32(step))))
	}
}

// saveOn saves a step from a rank for each disk, loadOn loads the latest there, which is to be it.
func saveOn(t *testing.T, disks []store.Store, o *Options, elements, step int, opts ...ccltest.Option) {
	on(t, disks, o, func(t testing.TB, c *ccl.Comm, d *Disks) { save(t, c, d, "", elements, step) }, opts...)
}

func loadOn(t *testing.T, disks []store.Store, elements, step int, opts ...ccltest.Option) {
	on(t, disks, nil, func(t testing.TB, c *ccl.Comm, d *Disks) { require.Equal(t, step, loaded(t, c, d, elements)) }, opts...)
}

// hosts are so many disks, in directories.
func hosts(t testing.TB, n int) (list []store.Store) {
	for range n {
		list = append(list, store.Dir(t.TempDir()))
	}
	return list
}

// files are the names on a disk that end so.
func files(t testing.TB, s store.Store, end string) (list []string) {
	es, err := s.List(context.Background(), "")
	require.NoError(t, err)
	for _, e := range es {
		if strings.HasSuffix(e.Name, end) {
			list = append(list, e.Name)
		}
	}
	return list
}

const (
	parts    = ".safetensors"
	indexEnd = ".json"
)

// at is the file of a name on a disk.
func at(s store.Store, name string) string { return filepath.Join(string(s.(store.Dir)), name) }

// loaded is the state of the latest checkpoint, whose values must be of it.
func loaded(t testing.TB, c *ccl.Comm, d *Disks, elements int) int {
	latest, passed, err := d.Latest(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, passed)
	state, ts := 0, blank(c.Rank(), c.Size(), elements)
	_, err = d.Load(t.Context(), latest, &state, ts, ckpt.LoadOptions{})
	require.NoError(t, err)
	require.Equal(t, ckpt.Step("", state), latest)
	alike(t, tensors(c.Rank(), c.Size(), elements, float32(state)), ts)
	return state
}

// Each rank writes to its own disk, and loads from all: on other hosts, in other numbers, with a new host beside the old ones,
// and with ranks that share a disk.
func TestLoadsFromOtherDisks(t *testing.T) {
	old := hosts(t, 3)
	on(t, old, nil, func(t testing.TB, c *ccl.Comm, d *Disks) {
		state := ckpt.State{Job: 1, Rank: strings.Repeat(fmt.Sprint(c.Rank()), 100)}
		require.NoError(t, d.Save(t.Context(), ckpt.Step("", 1), state, tensors(c.Rank(), 3, wide, 1)))
	})
	for r, s := range old {
		list := files(t, s, parts)
		require.Len(t, list, 1, "each has its own part alone")
		require.Contains(t, list[0], fmt.Sprintf("part-%05d-of-00003", r+1))
		require.Equal(t, []string{"step-00000001/index.json"}, files(t, s, indexEnd))
	}
	for name, ranks := range map[string][]int{"as before": {0, 1, 2}, "moved": {2, 0, 1}, "one more": {1, 3, 0, 2}, "shared": {0, 0, 1, 1, 2, 2}} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name == "moved" {
				t.Skip("-short: the other cases also read other disks")
			}
			all := append(slices.Clone(old), hosts(t, 1)...)
			var now []store.Store
			for _, h := range ranks {
				now = append(now, all[h])
			}
			on(t, now, nil, func(t testing.TB, c *ccl.Comm, d *Disks) {
				require.Equal(t, 1, loaded(t, c, d, wide))
				job, own := 0, ""
				_, err := d.Load(t.Context(), ckpt.Step("", 1), ckpt.State{Job: &job, Rank: &own}, nil, ckpt.LoadOptions{})
				require.NoError(t, err)
				require.Equal(t, 1, job)
				if c.Size() == 3 {
					require.Equal(t, strings.Repeat(fmt.Sprint(c.Rank()), 100), own)
				} else {
					require.Empty(t, own)
				}
				r, err := d.Load(t.Context(), ckpt.Step("", 1), nil, []ckpt.Tensor{{Name: "y", Shape: []int{1}, Data: []float32{7}}}, ckpt.LoadOptions{Partial: true})
				require.NoError(t, err)
				require.Equal(t, &ckpt.Report{Missing: []string{"y"}, Unused: []string{"all", "x"}}, r)
			})
			require.Equal(t, slices.Contains(ranks, 3), len(files(t, all[3], indexEnd)) == 1, "a new disk gets the indexes")
			require.Empty(t, files(t, all[3], parts))
		})
	}
}

// A step of which a disk is away is passed over, on all ranks, and counts again when the disk is back. A Load of it says what is
// missing and whose it was.
func TestDiskIsAway(t *testing.T) {
	old := hosts(t, 3)
	on(t, old[:2], nil, func(t testing.TB, c *ccl.Comm, d *Disks) {
		_, _, err := d.Latest(t.Context(), "")
		require.ErrorIs(t, err, fs.ErrNotExist)
		save(t, c, d, "", 100, 1)
	})
	saveOn(t, old, nil, 100, 2)
	replaced := []store.Store{old[1], hosts(t, 1)[0], old[0]}
	on(t, replaced, nil, func(t testing.TB, c *ccl.Comm, d *Disks) {
		latest, passed, err := d.Latest(t.Context(), "")
		require.NoError(t, err)
		require.Equal(t, ckpt.Step("", 1), latest)
		require.Len(t, passed, 1)
		require.ErrorContains(t, passed[0], "part-00003-of-00003")
		require.ErrorContains(t, passed[0], "is missing")
		_, err = d.Load(t.Context(), ckpt.Step("", 2), nil, blank(c.Rank(), 3, 100), ckpt.LoadOptions{})
		require.ErrorContains(t, err, "part-00003-of-00003")
		require.ErrorContains(t, err, "is on no disk of the job: rank 2 of the 3 that saved wrote it")
		state, ts := 0, blank(c.Rank(), 3, 100)
		_, err = d.Load(t.Context(), latest, &state, ts, ckpt.LoadOptions{})
		require.NoError(t, err)
		alike(t, tensors(c.Rank(), 3, 100, 1), ts)
	})
	loadOn(t, old, 100, 2)
	on(t, replaced, nil, func(t testing.TB, c *ccl.Comm, d *Disks) { // the step again: it gives way, and all disks learn so
		save(t, c, d, "", 50, 2)
	})
	on(t, old, nil, func(t testing.TB, c *ccl.Comm, d *Disks) {
		latest, passed, err := d.Latest(t.Context(), "")
		require.NoError(t, err)
		require.Equal(t, ckpt.Step("", 1), latest, "the new one has a part on a disk that is away now")
		require.Len(t, passed, 1)
		save(t, c, d, "", 50, 3)
		require.NoError(t, d.Keep(t.Context(), "", 1))
	})
	require.Len(t, slices.DeleteFunc(files(t, old[2], parts), func(n string) bool { return strings.HasPrefix(n, ckpt.Step("", 3)) }), 0, "%v", files(t, old[2], parts))
}

// Old steps go from all disks, and from one that was away when it is back.
func TestKeepOnAllDisks(t *testing.T) {
	all := hosts(t, 3)
	on(t, all, nil, func(t testing.TB, c *ccl.Comm, d *Disks) {
		save(t, c, d, "run", 100, 1, 2, 3)
		require.NoError(t, d.Keep(t.Context(), "run", 2))
		require.NoError(t, d.Forget(t.Context(), "run", 2))
		latest, _, err := d.Latest(t.Context(), "run")
		require.NoError(t, err)
		require.Equal(t, ckpt.Step("run", 2), latest)
	})
	for _, s := range all {
		require.Len(t, files(t, s, parts), 1)
		require.Contains(t, files(t, s, parts)[0], ckpt.Step("run", 2))
	}
	on(t, all[:2], nil, func(t testing.TB, c *ccl.Comm, d *Disks) { // two go on, without the third
		save(t, c, d, "run", 100, 3, 4, 5)
		require.NoError(t, d.Keep(t.Context(), "run", 1))
	})
	require.Len(t, files(t, all[2], parts), 1)
	on(t, all, nil, func(t testing.TB, c *ccl.Comm, d *Disks) {
		latest, _, err := d.Latest(t.Context(), "run")
		require.NoError(t, err)
		require.Equal(t, ckpt.Step("run", 5), latest)
		require.NoError(t, d.Keep(t.Context(), "run", 1))
	})
	require.Empty(t, files(t, all[2], parts))
	require.Equal(t, files(t, all[0], indexEnd), files(t, all[2], indexEnd))
	on(t, all, &Options{Copies: 2}, func(t testing.TB, c *ccl.Comm, d *Disks) {
		save(t, c, d, "run", 100, 6, 7)
	}, ccltest.Hosts(3))
	on(t, all[:2], nil, func(t testing.TB, c *ccl.Comm, d *Disks) { require.NoError(t, d.Keep(t.Context(), "run", 1)) })
	on(t, all, nil, func(t testing.TB, c *ccl.Comm, d *Disks) {
		_, err := d.Load(t.Context(), ckpt.Step("run", 6), nil, nil, ckpt.LoadOptions{})
		require.ErrorIs(t, err, fs.ErrNotExist, "what was removed stays removed")
		require.NoError(t, d.Keep(t.Context(), "run", 1))
	})
	require.Len(t, files(t, all[2], parts), 2)
}

// What is damaged on one disk is read from another one that has it whole: parts whose bytes or sizes are wrong, and indexes. If
// no disk has it whole, the error names disk and file.
func TestDamagedOnOneDisk(t *testing.T) {
	for name, damage := range map[string]func(t testing.TB, file string){
		"a byte of": func(t testing.TB, file string) {
			b, err := os.ReadFile(file)
			require.NoError(t, err)
			b[len(b)*2/3]++
			require.NoError(t, os.WriteFile(file, b, 0o600))
		},
		"the end of":         func(t testing.TB, file string) { require.NoError(t, os.Truncate(file, 100)) },
		"all but 8 bytes of": func(t testing.TB, file string) { require.NoError(t, os.Truncate(file, 8)) }, // as of what was removed
		"all of":             func(t testing.TB, file string) { require.NoError(t, os.Truncate(file, 0)) },
	} {
		for _, what := range []string{parts, indexEnd} {
			t.Run(name+" "+what, func(t *testing.T) {
				if testing.Short() && (name == "a byte of") != (what == parts) {
					t.Skip("-short: the other cases have a part, an index, and each kind of damage")
				}
				all := hosts(t, 3)
				saveOn(t, all, &Options{Copies: 2}, wide, 1, ccltest.Hosts(3))
				bad := files(t, all[0], what)[0]
				damage(t, at(all[0], bad))
				loadOn(t, all, wide, 1)
				for _, s := range all {
					if slices.Contains(files(t, s, what), bad) {
						damage(t, at(s, bad))
					}
				}
				on(t, all, nil, func(t testing.TB, c *ccl.Comm, d *Disks) {
					_, err := d.Load(t.Context(), ckpt.Step("", 1), nil, blank(c.Rank(), 3, wide), ckpt.LoadOptions{})
					require.Error(t, err)
					if what == indexEnd { // which the ranks had mended on the first disk
						require.ErrorContains(t, err, "is damaged")
					}
					if what == parts && name == "a byte of" {
						require.ErrorContains(t, err, "the disk of rank 0: "+bad+" is damaged between bytes")
						require.ErrorContains(t, err, "the disk of rank 1: "+bad+" is damaged between bytes")
					}
				})
			})
		}
	}
}

// A host may be lost whose parts have copies elsewhere.
func TestCopies(t *testing.T) {
	all := hosts(t, 4)
	on(t, all, &Options{Copies: 2}, func(t testing.TB, c *ccl.Comm, d *Disks) {
		save(t, c, d, "", wide, 1, 2)
		require.NoError(t, d.Keep(t.Context(), "", 1))
	}, ccltest.Hosts(2))
	for _, s := range all {
		require.Len(t, files(t, s, parts), 2, "its own, and one of the other host")
	}
	loadOn(t, append(hosts(t, 2), all[2:]...), wide, 2, ccltest.Hosts(2))
	loadOn(t, all[:2], wide, 2)
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		_, err := New(t.Context(), c, all[c.Rank()], &Options{Copies: 3})
		require.ErrorContains(t, err, "3 copies on the disks of 2 hosts")
		_, err = New(t.Context(), c, []store.Store{all[0], nil}[c.Rank()], nil)
		require.ErrorContains(t, err, "rank 1: there is no Store")
		d, err := New(t.Context(), c, all[c.Rank()], nil)
		require.NoError(t, err)
		for _, name := range []string{"../x", "/x", "."} {
			require.Error(t, d.Save(t.Context(), name, nil, nil), name)
			_, err = d.Load(t.Context(), name, nil, nil, ckpt.LoadOptions{})
			require.Error(t, err, name)
		}
		require.NoError(t, d.Close())
	}, ccltest.Hosts(2))
}

// A Saver's checkpoints are the same.
func TestSaver(t *testing.T) {
	all := hosts(t, 3)
	on(t, all, nil, func(t testing.TB, c *ccl.Comm, d *Disks) {
		s, err := d.NewSaver(t.Context())
		require.NoError(t, err)
		require.NoError(t, s.Wait(t.Context()))
		ts := tensors(c.Rank(), 3, 1000, 0)
		for step := 1; step <= 4; step++ {
			copy(ts[0].Data.([]float32), tensors(c.Rank(), 3, 1000, float32(step))[0].Data.([]float32))
			ts[1].Data.([]float32)[0] = float32(step)
			require.NoError(t, s.Save(t.Context(), ckpt.Step("", step), step, ts))
			require.NoError(t, d.Keep(t.Context(), "", 2))
		}
		require.NoError(t, s.Wait(t.Context()))
		require.Equal(t, 4, loaded(t, c, d, 1000))
		require.NoError(t, s.Save(t.Context(), ckpt.Step("", 4), 4, ts))
		require.ErrorIs(t, s.Wait(t.Context()), fs.ErrExist)
		require.NoError(t, s.Save(t.Context(), ckpt.Step("", 5), 4, tensors(c.Rank(), 3, 1000, 4)))
		require.NoError(t, s.Close(t.Context()))
		require.Error(t, s.Save(t.Context(), ckpt.Step("", 6), 4, ts))
	})
	for _, s := range all {
		require.Contains(t, []int{3, 4}, len(files(t, s, parts)), "the last Keep may have been before the fourth was whole: %v", files(t, s, parts))
	}
}
