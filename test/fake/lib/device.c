#include "fake.h"

static __thread int device, last, chosen, by_hip;

int thread_asks_hip(void) { return by_hip; }
int current_device(void) { return device; }
int thread_has_context(void) { return chosen; }

enum { MAX_DEVICES = 64 };
static int visible = -1, driver, ids[MAX_DEVICES];

// look is at what is visible, once in a process, as CUDA does. In a list of devices, what comes after one
// that is not there is not seen.
static void look(void) {
	const char *of[] = { "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES" }, *list = NULL;
	long all = knob("DEVICES", 8), d;
	int n = 0;
	driver = !knob_text("DRIVER") || strcmp(knob_text("DRIVER"), "none");
	for (int i = 0; i < 3 && !list; i++)
		list = getenv(of[i]);
	if (!list)
		for (; n < all && n < MAX_DEVICES; n++)
			ids[n] = n;
	for (char *end; list && n < MAX_DEVICES && (d = strtol(list, &end, 10), end > list && d >= 0 && d < all); list = end + (*end == ','))
		ids[n++] = (int)d;
	visible = n;
}

int devices(void) {
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, look);
	return visible;
}

int physical(int d) { return ids[d]; }

// goccl_fake_contexts is the devices on which there is a context, as bits: to choose a device makes one, since CUDA 12.
static _Atomic unsigned long contexts;
long goccl_fake_contexts(void) { return (long)contexts; }

void use_device(int d) {
	device = d;
	chosen = 1;
	contexts |= 1UL << d;
}

int device_error(const char *function) {
	return devices() > 0 ? knob_fail(function) : driver ? GDEV_NO_DEVICE : GDEV_INSUFFICIENT_DRIVER;
}

int keep_error(int error) {
	if (error)
		last = error;
	return error;
}

static int no_device(int d) { return d < 0 || d >= devices() ? GDEV_INVALID_DEVICE : 0; }

#define ENTER() \
	int failure_ = device_error(__func__); \
	if (failure_) return keep_error(failure_)

g_drc cudaGetDeviceCount(int *n) {
	ENTER(); // as CUDA, it does not write n then
	*n = devices();
	return 0;
}

g_drc cudaSetDevice(int d) {
	ENTER();
	by_hip = 0;
	if (no_device(d))
		return keep_error(GDEV_INVALID_DEVICE);
	use_device(d);
	return 0;
}

g_drc cudaGetDevice(int *d) {
	ENTER();
	by_hip = 0;
	*d = device;
	return 0;
}

g_drc hipSetDevice(int d) {
	int r = cudaSetDevice(d);
	by_hip = 1;
	return r;
}

g_drc hipGetDevice(int *d) {
	int r = cudaGetDevice(d);
	by_hip = 1;
	return r;
}

// FAKE_CC is the compute capability of all devices, as 80 of 8.0.
int compute_capability(void) { return (int)knob("CC", 90); }

g_drc cudaDeviceGetAttribute(int *v, g_attr attr, int d) {
	ENTER();
	if (no_device(d))
		return keep_error(GDEV_INVALID_DEVICE);
	if (attr != GDEV_CC_MAJOR && attr != GDEV_CC_MINOR)
		return keep_error(GDEV_INVALID_VALUE);
	*v = attr == GDEV_CC_MAJOR ? compute_capability() / 10 : compute_capability() % 10;
	return 0;
}

g_drc cudaDeviceGetPCIBusId(char *s, int n, int d) {
	ENTER();
	if (no_device(d))
		return keep_error(GDEV_INVALID_DEVICE);
	snprintf(s, n, "0000:%02X:00.0", 0x1A + physical(d));
	return 0;
}

g_drc cudaGetDeviceProperties(g_prop *p, int d) {
	ENTER();
	if (no_device(d))
		return keep_error(GDEV_INVALID_DEVICE);
	snprintf((char *)p, 256, "FAKE device %d", physical(d));
	return 0;
}

g_drc cudaDeviceSynchronize(void) {
	ENTER();
	pthread_mutex_lock(&mu);
	drain(device);
	pthread_mutex_unlock(&mu);
	return 0;
}

g_drc cudaDeviceCanAccessPeer(int *ok, int a, int b) {
	ENTER();
	*ok = a != b;
	return keep_error(no_device(a) ? no_device(a) : no_device(b));
}

static _Bool peers[MAX_DEVICES][MAX_DEVICES];

static int peer(int d, int enable) {
	if (no_device(d) || d == device)
		return GDEV_INVALID_DEVICE;
	if (peers[device][d] == enable)
		return enable ? GDEV_PEER_ENABLED : GDEV_PEER_NOT_ENABLED;
	peers[device][d] = enable;
	return 0;
}

g_drc cudaDeviceEnablePeerAccess(int d, unsigned flags) {
	ENTER();
	(void)flags;
	return keep_error(peer(d, 1));
}

g_drc cudaDeviceDisablePeerAccess(int d) {
	ENTER();
	return keep_error(peer(d, 0));
}

g_drc cudaDriverGetVersion(int *v) { return *v = devices() > 0 || driver ? 13000 : 0, 0; }
g_drc cudaRuntimeGetVersion(int *v) { return *v = 13000, 0; }

g_drc cudaGetLastError(void) {
	int e = last;
	last = 0;
	return e;
}

static const struct { int code; const char *name, *text; } errors[] = {
	{ 0, "cudaSuccess", "no error" },
	{ GDEV_INVALID_VALUE, "cudaErrorInvalidValue", "invalid argument" },
	{ GDEV_NO_MEMORY, "cudaErrorMemoryAllocation", "out of memory" },
	{ GDEV_INSUFFICIENT_DRIVER, "cudaErrorInsufficientDriver", "CUDA driver version is insufficient for CUDA runtime version" },
	{ GDEV_NO_DEVICE, "cudaErrorNoDevice", "no CUDA-capable device is detected" },
	{ GDEV_INVALID_DEVICE, "cudaErrorInvalidDevice", "invalid device ordinal" },
	{ GDEV_INVALID_HANDLE, "cudaErrorInvalidResourceHandle", "invalid resource handle" },
	{ ILLEGAL_STATE, "cudaErrorIllegalState", "the operation cannot be performed in the present state" },
	{ GDEV_NOT_READY, "cudaErrorNotReady", "device not ready" },
	{ GDEV_PEER_ENABLED, "cudaErrorPeerAccessAlreadyEnabled", "peer access is already enabled" },
	{ GDEV_PEER_NOT_ENABLED, "cudaErrorPeerAccessNotEnabled", "peer access has not been enabled" },
	{ GDEV_NOT_SUPPORTED, "cudaErrorNotSupported", "operation not supported" },
	{ 200, "cudaErrorInvalidKernelImage", "device kernel image is invalid" },
	{ 209, "cudaErrorNoKernelImageForDevice", "no kernel image is available for execution on the device" },
	{ 218, "cudaErrorInvalidPtx", "a PTX JIT compilation failed" },
	{ 222, "cudaErrorUnsupportedPtxVersion", "the provided PTX was compiled with an unsupported toolchain." },
	{ 500, "cudaErrorSymbolNotFound", "named symbol not found" },
	{ CAPTURE_UNSUPPORTED, "cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing" },
	{ CAPTURE_INVALIDATED, "cudaErrorStreamCaptureInvalidated", "operation failed due to a previous error during capture" },
	{ CAPTURE_UNJOINED, "cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work" },
	{ 700, "cudaErrorIllegalAddress", "an illegal memory access was encountered" },
	{ CAPTURED_EVENT, "cudaErrorCapturedEvent", "operation not permitted on an event last recorded in a capturing stream" },
};

static int known(int code) {
	int i = 0, n = sizeof errors / sizeof *errors;
	while (i < n && errors[i].code != code)
		i++;
	return i < n ? i : NO_SUCH_THING;
}

const char *cudaGetErrorName(g_drc e) { return known(e) < 0 ? "cudaErrorUnknown" : errors[known(e)].name; }
const char *cudaGetErrorString(g_drc e) { return known(e) < 0 ? "unknown error" : errors[known(e)].text; }

const char *hipGetErrorName(g_drc e) {
	static __thread char name[64];
	snprintf(name, sizeof name, "hip%s", cudaGetErrorName(e) + strlen("cuda"));
	return name;
}

g_drc hipRuntimeGetVersion(int *v) { return *v = 60443484, 0; }

#undef ENTER
