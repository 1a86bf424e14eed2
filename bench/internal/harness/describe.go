package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/goccl/goccl/bench/internal/doctor"
	"github.com/goccl/goccl/bench/internal/machine"
	"github.com/goccl/goccl/bench/internal/prose"
	"github.com/goccl/goccl/bench/internal/report"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/plain"
)

// placeRoom is the room for one rank's description on its way to rank 0.
const placeRoom = 1024

// describe writes the header: rank 0 asks all ranks where they are.
func (s *session) describe(p *plan) error {
	place := s.world.Place()
	mine := report.Place{Rank: s.world.Rank(), Group: s.group, Pid: os.Getpid(), Host: clip(place.Host),
		Device: place.Local, Hex: "cpu", Info: clip(machine.CPU("/"))}
	if s.dev != nil {
		mine.Device, mine.Hex, mine.Info = s.dev.Number, s.dev.PCI, clip(s.dev.Name)
	}
	room, all := make([]uint8, placeRoom), make([]uint8, placeRoom*s.world.Size())
	text, _ := json.Marshal(mine)
	copy(room, text)
	if err := ccl.AllGather(s.ctx, s.world, all, room); err != nil {
		return err
	}
	ceiling, err := s.ceiling()
	if s.out == nil || err != nil {
		return err
	}
	f := s.out.file
	f.Goccl, f.Go = ccl.Version, fmt.Sprintf("%s %s/%s", runtime.Version(), runtime.GOOS, runtime.GOARCH)
	f.Startup, f.Fingerprint, f.Config.Groups = s.startup, doctor.Fingerprint("/", os.Environ()), s.groups.sizes()
	f.Config.Setup = report.Setup{
		Ranks: s.world.Size(), Processes: p.processes(), Hosts: place.Nodes, Launcher: p.starter(),
		Engine: s.engines(), Transport: s.transport(), CPU: machine.CPU("/"),
		GroupRanks: s.ranks(), GroupHosts: s.groups.hosts(), Ceiling: ceiling,
	}
	for r := range s.world.Size() {
		var at report.Place
		if err := plain.Unmarshal(bytes.TrimRight(all[r*placeRoom:(r+1)*placeRoom], "\x00"), &at); err != nil {
			return fmt.Errorf("rank %d described itself in a way that rank 0 cannot read: %w", r, err)
		}
		f.Config.Devices = append(f.Config.Devices, at)
	}
	return s.out.header()
}

// engines are the backends under test, with the versions of their libraries; that of the one for tests
// says FAKE.
func (s *session) engines() string {
	names := prose.Names(s.lanes, func(l lane) string { return strings.TrimSuffix(l.name+": "+l.c.Library(), ": ") })
	return strings.Join(names, ", ")
}

// transport is what carries the data of the CPU engine; a library of its own chooses for itself.
func (s *session) transport() string {
	if slices.ContainsFunc(s.lanes, func(l lane) bool { return l.name == "cpu" }) {
		return s.world.Transport()
	}
	return s.lanes[0].name + "'s own"
}

// starter says who started the ranks.
func (p *plan) starter() string {
	if p.ours || !p.launched {
		return report.Here
	}
	return "started by " + p.where.Launcher
}

// clip keeps a name short enough for its room, as plain text.
func clip(s string) string { return s[:min(len(s), 60)] }
