// Package value encodes Go values for processes that run the same program. What is encoded arrives
// as it was, by reflect.DeepEqual, or is refused with the path of what cannot travel.
//
// Package gob, which programs know, leaves out what is zero, so pointers to zero come as nil, and
// fields that are not exported. CBOR and JSON do not know the types of what is in an interface. Here
// both sides have the type, so the bytes are those of its parts, in order, and a hash of the type
// comes first. Every kind of type has one way:
//
//	numbers           their bytes in memory: all bits of a float are kept
//	strings           length, bytes
//	slices, maps      length and 1, or 0 for nil; elements
//	pointers          0 for nil, or 1 and what they point to, each time that they do
//	structs           fields, in order; one that is not exported must be zero
//	interfaces        0 for nil, or a type and a value of it: see named.go
//	func, chan        must be nil
//	their own way     types with GobEncode and GobDecode, or MarshalBinary and UnmarshalBinary: what
//	                  these make of them; and time.Time, without its monotonic reading
//
// Input is untrusted: what is allocated is in proportion to its length, and nesting has a limit.
package value
