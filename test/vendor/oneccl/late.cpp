// A command of SYCL that fails after it was submitted: whoever waits through the shim hears of it, once, and the process
// goes on. Built against the shim's source, since its C interface has no command that fails.
#include "../../../xpu/shim/shim.cpp"

#include <chrono>
#include <thread>

static int bad;

static void want(const char *what, bool ok) {
	if (ok) return;
	std::fprintf(stderr, "late: %s (%s)\n", what, gxpu_error());
	bad = 1;
}

static bool told(int failed) { return failed && std::strstr(gxpu_error(), "on purpose"); }

int main() {
	for (int flags : {GXPU_IN_ORDER, GXPU_TIMING}) {
		void *q, *other, *e;
		if (gxpu_queue_new(0, flags, &q) || gxpu_queue_new(0, flags, &other) || gxpu_event_new(&e))
			return std::fprintf(stderr, "late: %s\n", gxpu_error()), 1;
		auto fail = [&] {
			queue(q).submit([](sycl::handler &h) { h.host_task([] { throw std::runtime_error("on purpose"); }); });
		};
		fail();
		want("queue_wait does not tell", told(gxpu_queue_wait(q)));
		want("queue_wait tells twice", !gxpu_queue_wait(q));

		fail();
		want("event_record fails", !gxpu_event_record(e, q));
		want("event_wait does not tell", told(gxpu_event_wait(e)));

		fail();
		want("event_record fails", !gxpu_event_record(e, q));
		int done = 0, failed = 0;
		const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
		while (!done && !failed && std::chrono::steady_clock::now() < end) {
			failed = gxpu_event_done(e, &done);
			std::this_thread::yield();
		}
		want("event_done does not tell", told(failed));

		fail();
		int x = 1, y = 0;
		want("copy does not tell", told(gxpu_copy(q, &y, &x, sizeof x)));

		// Who waits without the shim, as oneCCL does, does not take it away.
		fail();
		queue(q).wait_and_throw();
		want("what others waited for is not told", told(gxpu_queue_wait(q)));

		want("another queue is told", !gxpu_queue_wait(other));
		want("a queue that has failed is of no use", !gxpu_copy(q, &y, &x, sizeof x) && y == 1);
		fail();
		want("queue_free fails", !gxpu_queue_free(q) && !gxpu_queue_free(other) && !gxpu_event_free(e));
	}
	return bad;
}
