#!/usr/bin/env python3
"""Runs programs that read a line before each of their windows, in turns, and prints the medians of their windows.

turns.py LOGS SECONDS WINDOWS ROWS NAME=COMMAND...

The first window of each program warms it up and does not count. A program that fails, or is late, is left out, and the end of its
log is shown: a window may last a sixth of SECONDS, the first, before which programs compile side by side, two thirds. The losses of all
are printed beside each other.
"""
import os
import queue
import re
import statistics
import subprocess
import sys
import threading
import time

logs, limit, windows, rows = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
deadline = time.time() + limit


class Program:
    def __init__(self, name, command):
        self.name, self.lines, self.tps, self.dt, self.loss, self.failed, self.notes = name, queue.Queue(), [], [], {}, None, []
        self.path = os.path.join(logs, f"{name}-{rows}.log")
        self.log = open(self.path, "w")
        self.began = time.time()
        self.p = subprocess.Popen(["bash", "-c", "exec " + command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  errors="replace", bufsize=1)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.p.stdout:
            self.log.write(line)
            self.log.flush()
            self.lines.put(line)
        self.lines.put(None)

    def go(self):
        try:
            self.p.stdin.write("\n")
            self.p.stdin.flush()
        except OSError:
            pass  # it has ended: its lines say why

    def window(self, number, steps):
        """Waits for the end of a window."""
        late = min(deadline, self.began + limit * 2 / 3 if number == 0 else time.time() + limit / 6)
        while not self.failed:
            try:
                line = self.lines.get(timeout=max(late - time.time(), 0.01))
            except queue.Empty:
                self.failed = f"late in window {number}, {time.time() - self.began:.0f} s after its start"
                break
            if line is None:
                self.failed = f"it has ended, with status {self.p.wait()}"
                break
            m = re.match(r"step=(\d+) loss=(\S+) dt=(\S+) tps=(\d+)", line)
            if not m:
                if line.startswith("program step"):
                    self.notes.append(line.strip())
                continue
            step = int(m[1])
            self.loss[step] = float(m[2])
            if step == 1:
                self.first = time.time() - self.began
            if step == steps * (number + 1):
                if number > 0:
                    self.dt.append(float(m[3]))
                    self.tps.append(int(m[4]))
                return
        self.p.kill()  # so that it does not disturb the others

    def end(self):
        try:
            self.p.stdin.close()
        except OSError:
            pass
        try:
            self.p.wait(1 if self.failed else 10)
        except subprocess.TimeoutExpired:
            self.p.kill()
        try:
            while (line := self.lines.get(timeout=5)) is not None:
                if line.startswith("at most"):
                    self.notes.append(line.strip())
        except queue.Empty:  # a child of its own holds its output open
            pass


steps = int(os.environ["STEPS"])
programs = [Program(*a.split("=", 1)) for a in sys.argv[5:]]
for p in programs:
    p.go()
for p in programs:
    p.window(0, steps)
for number in range(1, windows + 1):
    for p in programs:
        if not p.failed:
            p.go()
            p.window(number, steps)
for p in programs:
    p.end()
print(f"\n{rows} rows: medians of {windows} windows of {steps} steps, in turns; nothing waits within a window")
print(f"{'program':22} {'ms/step':>8} {'tokens/s':>9} {'lowest':>9} {'highest':>9} {'first s':>8}  notes")
for p in programs:
    if p.tps:
        mid = statistics.median(p.tps)
        note = "; ".join(p.notes) + (f"; FAILED later: {p.failed}" if p.failed else "")
        print(f"{p.name:22} {1e3 * statistics.median(p.dt):8.2f} {mid:9.0f} {min(p.tps):9d} {max(p.tps):9d} {p.first:8.1f}  {note}")
    else:
        print(f"{p.name:22} FAILED: {p.failed}")
done = {p.name: statistics.median(p.tps) for p in programs if p.tps}
for name in done:
    ratios = [f"{done[name] / done[t]:.3f} of {t}" for t in done if t.startswith("torch") and t != name]
    if name.startswith("go") and ratios:
        print(f"  {name}: {', '.join(ratios)}")
at = sorted(set().union(*[p.loss for p in programs]))
print("losses at step " + " ".join(f"{s:>9}" for s in at))
for p in programs:
    if p.loss:
        print(f"  {p.name:13}" + " ".join(f"{p.loss[s]:9.5f}" if s in p.loss else "        -" for s in at))
for p in programs:
    if p.failed:
        print(f"-- {p.name}, the end of {p.path}:")
        print("".join("    " + line[:300] for line in open(p.path).readlines()[-12:]))
sys.exit(any(p.failed for p in programs))
