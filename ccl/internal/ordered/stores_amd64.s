//go:build amd64 && !noasm && !race

#include "textflag.h"

// func Post(p *uint64, v uint64, next *uint64)
TEXT ·Post(SB), NOSPLIT, $0-24
	MOVQ p+0(FP), AX
	MOVQ v+8(FP), BX
	MOVQ next+16(FP), CX
	MOVQ BX, (AX)
	BYTE $0x0f; BYTE $0x0d; BYTE $0x09 // PREFETCHW (CX)
	RET

// func Claim(p unsafe.Pointer, n int)
TEXT ·Claim(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), CX
	MOVQ n+8(FP), DX
	ADDQ CX, DX
	ANDQ $~63, CX
	JMP  check

next:
	BYTE $0x0f; BYTE $0x0d; BYTE $0x09 // PREFETCHW (CX)
	ADDQ $64, CX

check:
	CMPQ CX, DX
	JCS  next
	RET

// func Fetch(p unsafe.Pointer, n int)
TEXT ·Fetch(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), CX
	MOVQ n+8(FP), DX
	ADDQ CX, DX
	ANDQ $~63, CX
	JMP  check

next:
	PREFETCHT0 (CX)
	ADDQ $64, CX

check:
	CMPQ CX, DX
	JCS  next
	RET

// func moveString(dst, src unsafe.Pointer, n int)
TEXT ·moveString(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	REP
	MOVSB
	RET
