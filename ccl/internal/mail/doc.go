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
// A match is undone if the sender gives the message up before all of it has come. Its receive waits
// again then, where it did, unless a message has been matched since that would have been given to it:
// then it has lost its place, and ends (Box.undo). A receive is given up by being withdrawn first
// (Receiving.giveUp): whatever has been matched with it by then goes on, except a payload that is on
// its way. Only what has come whole, to a receive that ends well, is told its sender as received.
//
// # Streams
//
// All that one rank sends to another goes over one stream, which the sender's Office dials when it
// first has something to send (line.go). Over it the sender writes heads of messages and payload, and
// the receiver writes answers (inlet.go):
//
//	begin     the first: the number of the next message, and from which on some may have been lost
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
// A head gets its number as it is written, and each number follows the one before. A stream that
// breaks may take with it all that has not been answered, also messages whose senders have had
// success. Nothing of their Comms is sent any more, and these fail, unless the other rank has left
// them (Account.severed). All else goes by a stream that begins anew; the receiver compares its
// numbers with what has come.
//
// A payload of a rank in another process of the host is read from that process's memory, where the
// kernel allows it. A number in the sender's memory, which is another for each message and becomes 0
// before the sender gets its memory back, says before and after that the bytes are those of the
// message. Ranks of one process copy it piece by piece, each under the locks of both messages.
//
// # Buffers
//
// The receiver keeps heads of messages that nobody has asked for yet, and payloads of at most
// eagerMost bytes, creditMost bytes from each sender together. A message whose payload is kept there is complete
// for its sender. All others are complete once they are received. A Comm that is closed, or fails,
// gives back what is kept for it, also on a rank that has no Account in it (Office.Shut).
//
// # Time
//
// Limits are counted in the time that the process has lived through, by the control plane's clock
// (Way.Lived). Tickers only say when to look at it.
//
// # Locks
//
// A goroutine that holds one of these takes only those that follow: Office.mu, Box.mu, line.mu or
// inlet.mu, the lock of a Sending, that of a Receiving. Account.mu, Office.starts and the teller's are
// leaves. No function of a caller runs under any of them, nor within anything that ends a message: an
// Account's teller runs them, on a goroutine of its own.
package mail
