// Package clock is the time of a job in one process: [Coarse], which calls read in place of a clock, and [Lived], which stands
// still while the process is stopped.
package clock
