// Package control is the connection between the processes that lead two hosts, apart from all data
// connections: the frames that it carries ([ReadFrame]), how they are written ([Conn]), and which
// of them a host passes on ([Flood]). A neighbor that does not read holds up nobody, and a frame is
// never cut. A Conn is made of an auth.Stream: what was changed on the way is no frame.
package control
