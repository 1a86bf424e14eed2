// Package mail carries messages between two ranks of a job, in which no other rank takes part and
// which have no place in the order of a Comm's calls. An [Account] is one rank's mail in one Comm; an
// [Office] is what the ranks of a process share.
//
// # Matching
//
// A message is matched with a receive by the Comm, the use, the tag and the sender. The messages of
// one sender that match the same receives are matched in the order in which they were sent, and
// receives in the order in which they were posted. The rank that receives does the matching, in its
// box, so a receive from any rank costs no more than one from a known rank.
//
// # Streams
//
// All that one rank sends to another goes over one stream, which the sender's Office dials when it
// first has something to send (line.go). Over it the sender writes heads of messages and payload, and
// the receiver writes answers (inlet.go):
//
//	head      a message: what it is, where it lies, and its payload if that is small
//	go        send the payload
//	data      a piece of it
//	taken     the message is received, or why it is not
//	revoke    the sender gives the message up, if it is not matched yet
//	revoked   it was not
//	bye       the sender has closed a Comm
//
// The goroutine that reads answers never writes, and never waits for anything else. So answers always
// get away, hence what the receiver reads is always read on, hence what the sender writes always gets
// away: no pair of ranks can wait for each other in a write.
//
// A payload of a rank in another process of the host is read from that process's memory, where the
// kernel allows it. A number in the sender's memory, which is another for each message and becomes 0
// before the sender gets its memory back, says before and after that the bytes are those of the
// message. Ranks of one process copy under the lock of the message.
//
// # Buffers
//
// The receiver keeps heads of messages that nobody has asked for yet, and payloads of at most
// eagerMost bytes, creditMost bytes from each sender together. A message whose payload is kept there is complete
// for its sender. All others are complete once they are received.
//
// # Locks
//
// A goroutine that holds one of these takes only those that follow: Office.mu, Box.mu, line.mu or
// inlet.mu, the lock of a Sending, that of a Receiving. Account.mu and Office.starts are leaves. No
// function of a caller runs under any of them.
package mail
