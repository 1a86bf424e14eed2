package cpu

import "time"

const (
	tick      = 5 * time.Millisecond
	beatTicks = 50 // 250 ms
)

// monitor is the one goroutine that keeps the coarse clock, reads what other processes have to say, and looks
// after calls that wait.
func (j *job) monitor() {
	defer j.wg.Done()
	t := time.NewTicker(tick)
	defer t.Stop()
	for n := 0; ; n++ {
		select {
		case <-j.stopCh:
			return
		case <-t.C:
		}
		rest()
		now := time.Now()
		j.now.Store(int64(now.Sub(j.born)))
		j.lived.lap(now)
		for _, s := range j.parts() {
			s.feel(n%beatTicks == 0)
			s.scan()
			s.catchUp()
			s.readBoard()
			s.insist()
			s.reconsider()
			if n%beatTicks == 0 {
				s.beat()
			}
		}
		j.lookAt(j.now.Load())
		for _, s := range j.parts() {
			s.flush()
		}
		j.develop(j.now.Load())
		if n%beatTicks == 0 {
			j.findCircle()
		}
	}
}
