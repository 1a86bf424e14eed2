// Package promises holds the project to what docs/measured/promises.md promises, R1 to R21. Each
// promise is a test with its number in its name, which fails at ten times the number, since
// machines are shared and noisy:
//
//	go test ./test/promises
//
// With -write the tests measure with care, and write what they have measured into the table of
// docs/measured/promises.md:
//
//	go test ./test/promises -v -args -write        make promises
package promises
