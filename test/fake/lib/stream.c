// Streams are worker threads, so that all that is queued really runs behind the caller's back.
#include "fake.h"

pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

typedef struct item item;
struct item { work *w; unsigned long tag; item *next; };

// graph is the works of one stream and of those that have joined its capture, in the order in which they came.
typedef struct { work **works; int n, room, broken, mode; struct stream *of; } graph;

typedef struct stream stream;
struct stream {
	int device, closing;
	item *head, *tail;
	unsigned long queued, done;
	graph *captures;
	int joined; // back to the stream whose capture it is a part of
	stream *next;
};
static stream *streams, *defaults[64];
static atomic_int broken; // the error of FAKE_FAIL=stream:nth:code, for good, as after an illegal access

#define ENTER() \
	int failure_ = device_error(__func__); \
	if (failure_) return keep_error(failure_)

void work_free(work *w) { free(w); }
void break_streams(int error) { broken = error; }

static void unref(work *w) {
	if (--w->refs == 0)
		w->drop(w);
}

static void *worker(void *v) {
	stream *s = v;
	long delay = knob("DELAY_US", 0);
	pthread_mutex_lock(&mu);
	for (;;) {
		while (!s->head && !s->closing)
			pthread_cond_wait(&changed, &mu);
		item *i = s->head;
		if (!i)
			break;
		if (!(s->head = i->next))
			s->tail = NULL;
		pthread_mutex_unlock(&mu);
		if (delay)
			usleep(delay);
		i->w->run(i->w, i->tag);
		unref(i->w);
		int error = knob_fail("stream");
		if (error)
			broken = error;
		free(i);
		pthread_mutex_lock(&mu);
		s->done++;
		pthread_cond_broadcast(&changed);
	}
	for (stream **at = &streams; *at; at = &(*at)->next)
		if (*at == s) {
			*at = s->next;
			break;
		}
	pthread_mutex_unlock(&mu);
	free(s);
	return NULL;
}

static stream *start(int device) { // mu is held
	stream *s = calloc(1, sizeof *s);
	pthread_t thread;
	s->device = device;
	s->next = streams;
	streams = s;
	pthread_create(&thread, NULL, worker, s);
	pthread_detach(thread);
	return s;
}

// find is the stream of a handle: 0, 1 and 2 are the device's default streams. mu is held.
static stream *find(void *handle) {
	int d = current_device();
	if ((uintptr_t)handle <= 2)
		return defaults[d] ? defaults[d] : (defaults[d] = start(d));
	for (stream *s = streams; s; s = s->next)
		if (s == handle && !s->closing)
			return s;
	return NULL;
}

int stream_device(void *handle) {
	pthread_mutex_lock(&mu);
	stream *s = find(handle);
	int d = s ? s->device : NO_SUCH_THING;
	pthread_mutex_unlock(&mu);
	return d;
}

int stream_captures(void *handle) {
	pthread_mutex_lock(&mu);
	stream *s = find(handle);
	int yes = s && s->captures;
	pthread_mutex_unlock(&mu);
	return yes;
}

static void append(stream *s, work *w) { // mu is held
	item *i = malloc(sizeof *i);
	*i = (item){ w, w->begin ? w->begin(w) : 0, NULL };
	if (s->tail)
		s->tail->next = i;
	else
		s->head = i;
	s->tail = i;
	s->queued++;
	pthread_cond_broadcast(&changed);
}

static void keep(graph *g, work *w) {
	if (g->n == g->room)
		g->works = realloc(g->works, (g->room = 2 * g->room + 8) * sizeof *g->works);
	g->works[g->n++] = w;
}

// has_room waits while a stream holds all that it may: FAKE_STREAM_DEPTH. A CUDA stream holds 1,024. mu is held.
static void has_room(stream *s) {
	unsigned long depth = knob("STREAM_DEPTH", 0);
	while (depth && s && !s->captures && s->queued - s->done >= depth)
		pthread_cond_wait(&changed, &mu);
}

int enqueue(void *handle, work *w, int wait) {
	pthread_mutex_lock(&mu);
	stream *s = find(handle);
	has_room(s);
	int error = !s ? GDEV_INVALID_HANDLE : s->captures && wait ? CAPTURE_UNSUPPORTED : 0;
	if (error) {
		pthread_mutex_unlock(&mu);
		unref(w);
		return error;
	}
	if (s->captures) {
		keep(s->captures, w);
		s->joined = 0;
	} else {
		append(s, w);
		for (unsigned long want = s->queued; wait && s->done < want;)
			pthread_cond_wait(&changed, &mu);
	}
	pthread_mutex_unlock(&mu);
	return 0;
}

void drain(int device) {
	for (int again = 1; again;) {
		again = 0;
		for (stream *s = streams; s && !again; s = s->next)
			if (s->device == device && s->done < s->queued) {
				again = 1;
				pthread_cond_wait(&changed, &mu);
			}
	}
}

g_drc cudaStreamCreateWithFlags(g_stream *out, unsigned flags) {
	ENTER();
	(void)flags;
	pthread_mutex_lock(&mu);
	*out = start(current_device());
	pthread_mutex_unlock(&mu);
	born(STREAM);
	return 0;
}

g_drc cudaStreamDestroy(g_stream handle) { // at once; what is queued still runs
	ENTER();
	pthread_mutex_lock(&mu);
	stream *s = (uintptr_t)handle > 2 ? find(handle) : NULL;
	if (s) {
		s->closing = 1;
		died(STREAM);
	}
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&mu);
	return keep_error(s ? 0 : GDEV_INVALID_HANDLE);
}

// idle_state is why a stream cannot be asked whether it is idle; to ask breaks a capture. mu is held.
static int idle_state(stream *s) {
	if (s && s->captures)
		s->captures->broken = 1;
	return !s ? GDEV_INVALID_HANDLE : s->captures ? CAPTURE_UNSUPPORTED : 0;
}

g_drc cudaStreamSynchronize(g_stream handle) {
	ENTER();
	pthread_mutex_lock(&mu);
	stream *s = find(handle);
	int error = idle_state(s);
	for (unsigned long want = s ? s->queued : 0; !error && s->done < want;)
		pthread_cond_wait(&changed, &mu);
	pthread_mutex_unlock(&mu);
	return keep_error(error ? error : broken);
}

g_drc cudaStreamQuery(g_stream handle) {
	ENTER();
	pthread_mutex_lock(&mu);
	stream *s = find(handle);
	int state = idle_state(s);
	if (!state)
		state = broken ? broken : s->done < s->queued ? GDEV_NOT_READY : 0;
	pthread_mutex_unlock(&mu);
	return keep_error(state);
}

// Graphs. What another thread may do during a capture depends on its mode, and on that of the thread.
enum { GLOBAL, THREAD_LOCAL, RELAXED };
static __thread int thread_mode = GLOBAL;

static int capture_is(const char *kind) {
	const char *v = knob_text("CAPTURE");
	return v && !strcmp(v, kind);
}

g_drc cudaThreadExchangeStreamCaptureMode(g_capmode *mode) {
	ENTER();
	int former = thread_mode;
	thread_mode = *mode;
	*mode = former;
	return 0;
}

// unsafe_call breaks captures, as asking for an event does: those begun in the global mode, where the thread's own is not
// relaxed; with FAKE_CAPTURE=hip all (hipEventQuery). mu is held.
static void unsafe_call(void) {
	for (stream *s = streams; s; s = s->next)
		if (s->captures && (capture_is("hip") || (s->captures->mode == GLOBAL && thread_mode != RELAXED)))
			s->captures->broken = 1;
}

g_drc cudaStreamBeginCapture(g_stream handle, g_capmode mode) {
	ENTER();
	pthread_mutex_lock(&mu);
	stream *s = find(handle);
	int error = !s ? GDEV_INVALID_HANDLE : s->captures || (uintptr_t)handle <= 2 ? CAPTURE_UNSUPPORTED : 0;
	if (!error) {
		s->captures = calloc(1, sizeof *s->captures);
		s->captures->of = s;
		s->captures->mode = capture_is("global") ? GLOBAL : mode;
		born(GRAPH);
	}
	pthread_mutex_unlock(&mu);
	return keep_error(error);
}

g_drc cudaGraphDestroy(g_graph of);

g_drc cudaStreamEndCapture(g_stream handle, g_graph *out) {
	ENTER();
	pthread_mutex_lock(&mu);
	stream *s = find(handle);
	graph *g = s ? s->captures : NULL;
	int error = !s ? GDEV_INVALID_HANDLE : !g ? ILLEGAL_STATE : g->broken ? CAPTURE_INVALIDATED : 0;
	for (stream *o = streams; g && o; o = o->next)
		if (o->captures == g) {
			o->captures = NULL;
			if (o != s && !o->joined && !error)
				error = CAPTURE_UNJOINED;
		}
	pthread_mutex_unlock(&mu);
	if (error && g)
		cudaGraphDestroy(g);
	*out = error ? NULL : g;
	return keep_error(error);
}

g_drc cudaStreamIsCapturing(g_stream handle, g_capstate *state) {
	ENTER();
	*state = stream_captures(handle) ? 1 : GDEV_CAPTURE_NONE;
	return keep_error(stream_device(handle) < 0 ? GDEV_INVALID_HANDLE : 0);
}

g_drc cudaGraphInstantiateWithFlags(g_exec *out, g_graph of, unsigned long long flags) {
	ENTER();
	(void)flags;
	graph *from = of, *g = calloc(1, sizeof *g);
	for (int i = 0; i < from->n; i++) {
		from->works[i]->refs++;
		keep(g, from->works[i]);
	}
	*out = g;
	born(GRAPH);
	return 0;
}

g_drc cudaGraphLaunch(g_exec exec, g_stream handle) {
	ENTER();
	graph *g = exec;
	pthread_mutex_lock(&mu);
	stream *s = find(handle);
	has_room(s);
	for (int i = 0; s && i < g->n; i++) {
		g->works[i]->refs++;
		append(s, g->works[i]);
	}
	pthread_mutex_unlock(&mu);
	return keep_error(s ? 0 : GDEV_INVALID_HANDLE);
}

g_drc cudaGraphDestroy(g_graph of) {
	ENTER();
	graph *g = of;
	for (int i = 0; i < g->n; i++)
		unref(g->works[i]);
	free(g->works);
	free(g);
	died(GRAPH);
	return 0;
}

g_drc cudaGraphExecDestroy(g_exec exec) { return cudaGraphDestroy(exec); }

// Events. They are not freed: what is queued may still use one that is destroyed, which CUDA allows.
typedef struct { unsigned long asked, done; double at; unsigned flags; graph *captured; stream *by; } event;
typedef struct { work w; event *e; unsigned long n; } event_work;

static void run_record(work *w, unsigned long tag) {
	event_work *r = (event_work *)w;
	(void)tag;
	pthread_mutex_lock(&mu);
	if (r->e->done < r->n)
		r->e->done = r->n;
	r->e->at = now();
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&mu);
}

static void run_wait(work *w, unsigned long tag) {
	event_work *r = (event_work *)w;
	(void)tag;
	pthread_mutex_lock(&mu);
	while (r->e->done < r->n)
		pthread_cond_wait(&changed, &mu);
	pthread_mutex_unlock(&mu);
}

// capture_event takes an event of a capture for a part of the graph, in whose one order it has nothing to do: a stream
// that waits for it joins the capture, and where the first waits for one of another, that has joined it again.
static int capture_event(event *e, void *handle, int record) {
	pthread_mutex_lock(&mu);
	stream *s = find(handle);
	graph *g = s ? record ? s->captures : e->captured : NULL;
	if (g && record)
		e->captured = g, e->by = s;
	else if (g && g->of == s)
		e->by->joined = 1;
	else if (g)
		s->captures = g;
	pthread_mutex_unlock(&mu);
	return g != NULL;
}

static int queue_event(event *e, void *stream, int record) {
	if (capture_event(e, stream, record))
		return 0;
	event_work *r = calloc(1, sizeof *r);
	pthread_mutex_lock(&mu);
	if (record)
		e->captured = NULL;
	*r = (event_work){ { .run = record ? run_record : run_wait, .drop = work_free, .refs = 1 }, e, record ? ++e->asked : e->asked };
	pthread_mutex_unlock(&mu);
	return enqueue(stream, &r->w, 0);
}

g_drc cudaEventCreateWithFlags(g_event *out, unsigned flags) {
	ENTER();
	event *e = calloc(1, sizeof *e);
	e->flags = flags;
	*out = e;
	born(EVENT);
	return 0;
}

g_drc cudaEventDestroy(g_event e) {
	ENTER();
	(void)e;
	died(EVENT);
	return 0;
}

g_drc cudaEventRecord(g_event e, g_stream s) {
	ENTER();
	return keep_error(queue_event(e, s, 1));
}

g_drc cudaStreamWaitEvent(g_stream s, g_event e, unsigned flags) {
	ENTER();
	(void)flags;
	return keep_error(queue_event(e, s, 0));
}

g_drc cudaEventQuery(g_event handle) {
	ENTER();
	event *e = handle;
	pthread_mutex_lock(&mu);
	unsafe_call();
	int state = e->captured ? CAPTURED_EVENT : broken ? (int)broken : e->done < e->asked ? GDEV_NOT_READY : 0;
	pthread_mutex_unlock(&mu);
	return keep_error(state);
}

g_drc cudaEventSynchronize(g_event handle) {
	ENTER();
	event *e = handle;
	pthread_mutex_lock(&mu);
	for (unsigned long want = e->asked; e->done < want;)
		pthread_cond_wait(&changed, &mu);
	pthread_mutex_unlock(&mu);
	return 0;
}

g_drc cudaEventElapsedTime(float *ms, g_event from, g_event to) {
	ENTER();
	event *a = from, *b = to;
	if (!a->asked || !b->asked || (a->flags | b->flags) & GDEV_EVENT_NO_TIMING)
		return keep_error(GDEV_INVALID_HANDLE);
	if (a->done < a->asked || b->done < b->asked)
		return keep_error(GDEV_NOT_READY);
	*ms = (b->at - a->at) * 1e3;
	return 0;
}
