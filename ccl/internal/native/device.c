//go:build cgo && linux && (nccl || rccl)

#include "native.h"

#define FAIL(call, result) gcclDeviceFail(e, call, result)
// ON makes a call on the device of the communicator.
#define ON(name, ...) \
	return gcclOn(e) ? -1 : FAIL(#name, e->dev->name(__VA_ARGS__))

int gcclOn(gccl_end *e) { return FAIL("SetDevice", gdev_on(e->dev, e->device)); }

int gcclAlloc(gccl_end *e, U *addr, size_t bytes) { ON(Malloc, (void **)addr, bytes); }
int gcclFree(gccl_end *e, U addr) { ON(Free, (void *)addr); }
int gcclStream(gccl_end *e, U *stream) { ON(StreamCreateWithFlags, (g_stream *)stream, GDEV_STREAM_NON_BLOCKING); }
int gcclStreamFree(gccl_end *e, U stream) { ON(StreamDestroy, (g_stream)stream); }
int gcclEvent(gccl_end *e, U *event) { ON(EventCreateWithFlags, (g_event *)event, GDEV_EVENT_NO_TIMING); }
int gcclEventFree(gccl_end *e, U event) { ON(EventDestroy, (g_event)event); }

int gcclCopy(gccl_end *e, U dst, U src, size_t bytes, int kind, U stream) {
	ON(MemcpyAsync, (void *)dst, (void *)src, bytes, kind, (g_stream)stream);
}

int gcclCapability(gccl_end *e, int *level) {
	int major = 0, minor = 0, r = 0;
	*level = 0;
	if (!e->dev->DeviceGetAttribute)
		return 0;
	if (!(r = FAIL("DeviceGetAttribute", e->dev->DeviceGetAttribute(&major, GDEV_CC_MAJOR, e->device))))
		r = FAIL("DeviceGetAttribute", e->dev->DeviceGetAttribute(&minor, GDEV_CC_MINOR, e->device));
	*level = r ? 0 : 10 * major + minor;
	return r;
}

// gcclRecord does not record on a stream that is being captured: the event would become a part of the
// graph, and asking for it an error that ends the capture.
int gcclRecord(gccl_end *e, U event, U stream, int *capturing) {
	*capturing = GDEV_CAPTURE_NONE;
	int r = gcclOn(e); // stream 0 is the current device's
	if (!r && e->dev->StreamIsCapturing)
		r = FAIL("StreamIsCapturing", e->dev->StreamIsCapturing((g_stream)stream, capturing));
	if (r || *capturing != GDEV_CAPTURE_NONE || !event)
		return r;
	g_capmode mode = gdev_relaxed(e->dev);
	r = FAIL("EventRecord", e->dev->EventRecord((g_event)event, (g_stream)stream));
	gdev_strict(e->dev, mode);
	return r;
}

int gcclSpan(gccl_end *e, U *events, int which, U stream) {
	int capturing;
	for (int i = 0; i < 2; i++)
		if (!events[i] && (gcclOn(e) || FAIL("EventCreateWithFlags", e->dev->EventCreateWithFlags((g_event *)&events[i], 0))))
			return events[i] = 0;
	return !gcclRecord(e, events[which], stream, &capturing) && capturing == GDEV_CAPTURE_NONE;
}

int gcclElapsed(gccl_end *e, U before, U after, float *ms) {
	int r = gcclOn(e);
	if (r)
		return r;
	g_capmode mode = gdev_relaxed(e->dev);
	r = e->dev->EventElapsedTime(ms, (g_event)before, (g_event)after);
	gdev_strict(e->dev, mode);
	return gdev_ret(e->dev, r);
}

int gcclPassed(gccl_end *e, U event) {
	int r = gcclOn(e);
	if (r)
		return r;
	g_capmode mode = gdev_relaxed(e->dev);
	r = e->dev->EventQuery((g_event)event);
	gdev_strict(e->dev, mode);
	return r == GDEV_NOT_READY ? gdev_ret(e->dev, r) : FAIL("EventQuery", r);
}
