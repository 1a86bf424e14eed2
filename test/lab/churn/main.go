// Command churn trains on the hosts of netlab.sh while processes are killed, hosts are unplugged, and others come. It
// says whether all ranks had the same bits after each round, and how long a loss and a join took. test/lab/churn.sh
// runs it.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/goccl/goccl/ccl/boot"
)

// settings are the flags.
type settings struct {
	net      string
	hosts, n int
	last     time.Duration
	work     time.Duration
	gap      time.Duration
	silent   time.Duration
	faults   []string
	hall     string
	seed     uint64
	verbose  bool
	bars     bool
}

func main() {
	var s settings
	mode := flag.String("mode", "drive", "drive, hall or peer")
	faults := flag.String("faults", "kill,unplug", "what happens to hosts")
	flag.StringVar(&s.net, "net", "", "netlab.sh")
	flag.IntVar(&s.hosts, "hosts", 4, "hosts, with a peer each")
	flag.DurationVar(&s.last, "last", time.Minute, "how long it goes on")
	flag.IntVar(&s.n, "n", 250_000, "parameters")
	flag.DurationVar(&s.work, "work", 300*time.Millisecond, "local work of a round")
	flag.DurationVar(&s.gap, "gap", 4*time.Second, "between two events, about")
	flag.DurationVar(&s.silent, "peertimeout", 2*time.Second, "Options.PeerTimeout")
	flag.StringVar(&s.hall, "hall", "10.77.0.254:29900", "where the hall listens")
	flag.Uint64Var(&s.seed, "seed", 1, "of what happens")
	flag.BoolVar(&s.verbose, "v", false, "print what the peers say")
	flag.BoolVar(&s.bars, "bars", false, "fail if a time is above its bar")
	flag.Parse()
	log.SetFlags(0)
	s.faults = strings.Split(*faults, ",")
	switch *mode {
	case "hall":
		if _, err := boot.ListenHall(s.hall, nil); err != nil {
			log.Fatal(err)
		}
		select {}
	case "peer":
		if err := runPeer(s.n, s.work, s.silent); err != nil {
			say("ended", err)
			os.Exit(1)
		}
	default:
		d, err := drive(&s)
		if err != nil {
			log.Fatal(err)
		}
		if bad := d.report(); len(bad) > 0 {
			fmt.Println("FAIL " + strings.Join(bad, "; "))
			os.Exit(1)
		}
		fmt.Println("ok")
	}
}
