#include "fake.h"

#include <time.h>

// goccl_fake marks the library: who loads it must have asked for a fake.
int goccl_fake = 1;

static atomic_int live[LIVE_KINDS];
void born(int kind) { live[kind]++; }
void died(int kind) { live[kind]--; }

// goccl_fake_live is how many blocks of memory, streams, events, graphs, communicators and operations under way
// there are: what a test leaks.
int goccl_fake_live(int kind) { return kind >= 0 && kind < LIVE_KINDS ? live[kind] : -1; }

static atomic_int violations;
void violation(const char *what) {
	violations++;
	if (getenv("NCCL_DEBUG"))
		fprintf(stderr, "fake NCCL: %s\n", what);
}

// goccl_fake_violations is how often memory was used that a real library would have freed.
int goccl_fake_violations(void) { return violations; }

const char *knob_text(const char *name) {
	char variable[64];
	snprintf(variable, sizeof variable, "FAKE_%s", name);
	const char *v = getenv(variable);
	return v && *v ? v : NULL;
}

long knob(const char *name, long otherwise) {
	const char *v = knob_text(name);
	return v ? strtol(v, NULL, 0) : otherwise;
}

double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

int knob_fail(const char *function) {
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct { char name[48], knob[96]; int n; } seen[32];
	const char *all = knob_text("FAIL");
	int code = 0;
	for (const char *s = all; s; s = (s = strchr(s, ',')) ? s + 1 : NULL) {
		char name[48];
		int nth, error;
		if (sscanf(s, "%47[^:]:%d:%d", name, &nth, &error) != 3 || strcmp(name, function))
			continue;
		pthread_mutex_lock(&lock);
		for (int i = 0; i < 32; i++) { // counts begin anew when the knob changes
			if (seen[i].name[0] && strcmp(seen[i].name, function))
				continue;
			if (strncmp(seen[i].knob, all, sizeof seen[i].knob - 1))
				seen[i].n = 0;
			snprintf(seen[i].name, sizeof seen[i].name, "%s", function);
			snprintf(seen[i].knob, sizeof seen[i].knob, "%s", all);
			if (++seen[i].n == nth || nth == 0)
				code = error;
			break;
		}
		pthread_mutex_unlock(&lock);
	}
	return code;
}
