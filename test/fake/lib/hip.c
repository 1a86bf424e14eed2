// The same functions under HIP's names, but for those that device.c has of its own. A function of the
// table that the fake lacks does not link.
#include "fake.h"

#ifdef __aarch64__
#define JUMP "b"
#define PLT ""
#else
#define JUMP "jmp"
#define PLT "@PLT"
#endif

#define DECLARE(required, ret, name, params) ret cuda##name params;
#define EXPORT(required, ret, name, params) \
	__asm__(".weak hip" #name "\n.type hip" #name ",@function\nhip" #name ": " JUMP " cuda" #name PLT);
GDEV_FUNCS(DECLARE)
GDEV_FUNCS(EXPORT)
