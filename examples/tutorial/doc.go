// Package tutorial holds the programs of docs/tutorial.md, which has the commands and their output:
// one program that grows in six steps from hello to a job that trains, saves, loses a rank and goes
// on.
package tutorial
