// A store in the directory ctx: a file for each key.
#include <stdio.h>
#include <unistd.h>

#include "goccl.h"

// file is where a key lies, in the directory ctx.
static char *file(char *name, size_t n, void *ctx, const char *key) {
	int at = snprintf(name, n, "%s/", (char *)ctx);
	for (; *key && at < (int)n - 1; key++)
		name[at++] = *key == '/' ? '_' : *key;
	name[at] = 0;
	return name;
}

static int32_t set(void *ctx, const char *key, const void *value, uint64_t n) {
	char name[512], part[520];
	snprintf(part, sizeof part, "%s.part", file(name, sizeof name, ctx, key));
	FILE *f = fopen(part, "w");
	return !f || fwrite(value, 1, n, f) != n || fclose(f) || rename(part, name);
}

static int32_t get(void *ctx, const char *key, int64_t timeout, uintptr_t value) {
	char name[512];
	static char text[1 << 16];
	for (int64_t left = timeout; left > 0; left -= 1000000, usleep(1000)) {
		FILE *f = fopen(file(name, sizeof name, ctx, key), "r");
		if (!f)
			continue;
		goccl_value(value, text, fread(text, 1, sizeof text, f));
		fclose(f);
		return 0;
	}
	return 1;
}
