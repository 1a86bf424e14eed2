package auth

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

// A record is how bytes travel between two ends that share a secret:
//
//	length 4, big-endian, of what follows | the bytes, encrypted or as they are | tag 16
//
// The tag is that of AES-256-GCM over the record. Its key is that of one direction of one connection, and its nonce
// counts the records. So a record opens at the other end of its connection alone, once, and in its turn.
const (
	// MaxRecord is the most bytes that a record carries.
	MaxRecord = 64 << 10
	// RecordHead is the size of a record's length, RecordOver of all that a record adds to its bytes.
	RecordHead = 4
	RecordOver = RecordHead + tagLen

	tagLen = 16
	keyLen = 32
	// rekeyEvery is how many records a key seals: at most 2^32 blocks, where RFC 8446 (5.5) allows 2^34.
	rekeyEvery = 1 << 20
)

// ErrChanged is the error for a record that does not open: what the other end sent was changed,
// left out, repeated or moved on its way here, or it was not the other end that sent it.
var ErrChanged = errors.New("bytes were changed on the way")

// Direction seals what goes one way over a connection, or opens it at the other end. It belongs to
// one goroutine at a time.
type Direction struct {
	aead   cipher.AEAD
	key    []byte
	hide   bool // encrypt, too
	number uint64
	nonce  [12]byte
}

// newDirection is the direction called name of a connection whose keys are derived from prk.
func newDirection(prk []byte, name string, hide bool) (*Direction, error) {
	d := &Direction{hide: hide}
	return d, d.rekey(prk, "goccl "+name)
}

// rekey makes the key for what comes next of one from which it cannot be undone.
func (d *Direction) rekey(from []byte, info string) (err error) {
	if d.key, err = hkdf.Expand(sha256.New, from, info, keyLen); err != nil {
		return err
	}
	block, err := aes.NewCipher(d.key)
	if err != nil {
		return err
	}
	if d.aead, err = cipher.NewGCM(block); err != nil {
		return fmt.Errorf("%w (%v)", ErrCipher, err)
	}
	return nil
}

// ErrCipher is the error where the process may not use what protects the connections of a job with a secret.
var ErrCipher = errors.New("connections of a job with a secret are protected by AES-GCM with nonces that count, which GODEBUG=fips140=only refuses: set fips140=on")

// Usable is ErrCipher if the process may not use it.
func Usable() error {
	_, err := newDirection(make([]byte, sha256.Size), "try", false)
	return err
}

// next is the nonce of the next record.
func (d *Direction) next() []byte {
	if d.number > 0 && d.number%rekeyEvery == 0 {
		if err := d.rekey(d.key, "goccl next"); err != nil {
			panic(err) // the same derivation has worked before
		}
	}
	binary.BigEndian.PutUint64(d.nonce[4:], d.number)
	d.number++
	return d.nonce[:]
}

// Seal appends to dst the record of a and then b, which are 1 to MaxRecord bytes together. It
// allocates nothing where dst has room.
func (d *Direction) Seal(dst, a, b []byte) []byte {
	at := len(dst)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(a)+len(b)+tagLen))
	dst = append(append(dst, a...), b...)
	if !d.hide {
		return d.aead.Seal(dst, d.next(), nil, dst[at:])
	}
	body := at + RecordHead
	return d.aead.Seal(dst[:body], d.next(), dst[body:], dst[at:body])
}

// RecordLen returns the size of the record that begins with head, at least RecordHead bytes. A
// length that no record has is ErrChanged.
func RecordLen(head []byte) (int, error) {
	n := binary.BigEndian.Uint32(head)
	if n <= tagLen || n > MaxRecord+tagLen {
		return 0, fmt.Errorf("%w: a record of %d bytes", ErrChanged, n)
	}
	return RecordHead + int(n), nil
}

// Open returns what the next record carries, in the record's memory. The record is whole: as long as RecordLen says.
func (d *Direction) Open(record []byte) ([]byte, error) {
	head, body := record[:RecordHead], record[RecordHead:]
	var err error
	if d.hide {
		body, err = d.aead.Open(body[:0], d.next(), body, head)
	} else {
		end := len(record) - tagLen
		_, err = d.aead.Open(nil, d.next(), record[end:], record[:end])
		body = record[RecordHead:end]
	}
	if err != nil {
		return nil, ErrChanged
	}
	return body, nil
}
