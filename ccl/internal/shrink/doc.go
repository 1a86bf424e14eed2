// Package shrink finds out which ranks of a failed Comm are alive. The agreement itself is package
// internal/agree, which knows neither connections nor clocks; here are the lines that carry its
// messages, the failure detector's word on which ranks are gone, and deadlines. Package cpu makes
// the Comm of those that are left.
package shrink
