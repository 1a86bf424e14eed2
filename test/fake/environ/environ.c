//go:build cgo && linux

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;

char **goccl_environ(void) { return __atomic_load_n(&environ, __ATOMIC_ACQUIRE); }

static int is(const char *entry, const char *name, size_t n) { return !strncmp(entry, name, n) && entry[n] == '='; }

const char *goccl_environ_find(char **array, const char *name) {
	size_t n = strlen(name);
	for (; array && *array; array++)
		if (is(*array, name, n))
			return *array + n + 1;
	return "";
}

// change makes an environment without name, and with entry where that is not NULL. What was there is kept, for threads that read it.
static int change(const char *name, char *entry, int overwrite) {
	size_t n = strlen(name), k = 0;
	int known = 0;
	pthread_mutex_lock(&mu);
	char **old = environ;
	while (old && old[k])
		known |= is(old[k++], name, n);
	if (entry ? !known || overwrite : known) {
		char **array = malloc((k + 2) * sizeof *array), **to = array;
		if (!array) {
			pthread_mutex_unlock(&mu);
			errno = ENOMEM;
			return -1;
		}
		for (size_t i = 0; i < k; i++)
			if (!is(old[i], name, n))
				*to++ = old[i];
		if (entry)
			*to++ = entry;
		*to = NULL;
		__atomic_store_n(&environ, array, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&mu);
	return 0;
}

static int refused(const char *name) {
	if (name && *name && !strchr(name, '='))
		return 0;
	errno = EINVAL;
	return -1;
}

int setenv(const char *name, const char *value, int overwrite) {
	if (refused(name))
		return -1;
	size_t n = strlen(name), m = strlen(value);
	char *entry = malloc(n + m + 2);
	if (!entry)
		return -1;
	memcpy(entry, name, n);
	entry[n] = '=';
	memcpy(entry + n + 1, value, m + 1);
	return change(name, entry, overwrite);
}

int unsetenv(const char *name) { return refused(name) ? -1 : change(name, NULL, 1); }
