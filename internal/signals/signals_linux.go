//go:build cgo && linux

package signals

/*
#cgo LDFLAGS: -ldl
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { last = 64 };
struct handlers { struct sigaction of[last + 1]; };

static struct handlers *goccl_save(void) {
	struct handlers *h = calloc(1, sizeof *h);
	for (int s = 1; h && s <= last; s++) sigaction(s, NULL, &h->of[s]);
	return h;
}

// Intel's GPU driver moves shared memory on page faults: its handler passes on what is not its own. All that it
// lacks is the signal stack.
static int passes_on(void *handler) {
	Dl_info from;
	return dladdr(handler, &from) && from.dli_fname && strstr(from.dli_fname, "libze_intel_gpu");
}

// Go has one handler for all signals. What os/signal has set meanwhile is therefore known, and stays, as does what
// the library wants ignored that Go did not look at.
static int goccl_restore(struct handlers *h, int *changed) {
	int n = 0;
	void *go = (void *)h->of[SIGSEGV].sa_sigaction;
	for (int s = 1; s <= last; s++) {
		struct sigaction now;
		if (sigaction(s, NULL, &now)) continue;
		void *was = (void *)h->of[s].sa_sigaction, *is = (void *)now.sa_sigaction;
		if (is == was || is == go) continue;
		if (was != go && (is == (void *)SIG_DFL || is == (void *)SIG_IGN)) continue;
		if (passes_on(is)) {
			if (now.sa_flags & SA_ONSTACK) continue;
			now.sa_flags |= SA_ONSTACK;
			sigaction(s, &now, NULL);
		} else {
			sigaction(s, &h->of[s], NULL);
		}
		changed[n++] = s;
	}
	free(h);
	return n;
}
*/
import "C"

func guard() func() []int {
	saved := C.goccl_save()
	if saved == nil {
		return func() []int { return nil }
	}
	return func() []int {
		var changed [64]C.int
		n := C.goccl_restore(saved, &changed[0])
		var list []int
		for _, s := range changed[:n] {
			list = append(list, int(s))
		}
		return list
	}
}
