// Package control is the connection between the processes that lead two hosts, apart from all data connections: the frames
// that it carries ([ReadFrame]), and how they are written ([Conn]). A neighbor that does not read holds up nobody, and a frame
// is never cut.
package control
