//go:build amd64 && !noasm && !race

#include "textflag.h"

// func moveString(dst, src unsafe.Pointer, n int)
TEXT ·moveString(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	REP
	MOVSB
	RET
