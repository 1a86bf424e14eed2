// SYCL behind the C interface of include/gxpu.h. Host code only: `make xpu-shim` builds it with any C++ compiler,
// where SYCL's headers and library are. No exception leaves it.
#include "../../include/gxpu.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <sycl/sycl.hpp>

namespace {

thread_local char text[512];

template <class F> int guard(F f) {
	try {
		f();
		return 0;
	} catch (const std::exception &e) {
		std::snprintf(text, sizeof text, "%s", e.what());
	} catch (...) {
		std::snprintf(text, sizeof text, "an exception without a text");
	}
	return 1;
}

// late keeps how a command failed after it was submitted. SYCL tells a queue's handler of that when somebody waits for the
// queue or an event of its, oneCCL for example; a queue without a handler ends the process there. The handler may also run
// where no exception can leave, so it keeps the text, and whoever next asks through the shim gets it.
struct late {
	std::mutex mu;
	std::string text;
	void note(const sycl::exception_list &all) {
		std::lock_guard<std::mutex> lock(mu);
		for (auto &one : all) {
			if (!text.empty()) return;
			try {
				std::rethrow_exception(one);
			} catch (const std::exception &e) {
				text = e.what();
			} catch (...) {
			}
			if (text.empty()) text = "a command failed without a text";
		}
	}
	void raise() {
		std::lock_guard<std::mutex> lock(mu);
		if (!text.empty()) throw std::runtime_error("a command that was submitted before has failed: " + std::exchange(text, {}));
	}
};
using failures = std::shared_ptr<late>;

sycl::async_handler to(failures f) {
	return [f](sycl::exception_list all) { f->note(all); };
}

// A device has one queue for memory, and its context is the platform's default: so memory and queues that are made here
// belong together. No command is submitted to that queue, so nothing fails in it late, and it needs no handler.
struct device {
	sycl::device dev;
	sycl::queue own;
};

// devices are the GPUs, those of Level Zero where there are any (OpenCL lists the same ones again); or whatever
// ONEAPI_DEVICE_SELECTOR lets through, where it is set: that is how a CPU is asked for.
std::vector<device> &devices() {
	static std::vector<device> all = [] {
		std::vector<sycl::device> found;
		if (std::getenv("ONEAPI_DEVICE_SELECTOR"))
			found = sycl::device::get_devices();
		else {
			for (auto &d : sycl::device::get_devices(sycl::info::device_type::gpu))
				if (d.get_backend() == sycl::backend::ext_oneapi_level_zero) found.push_back(d);
			if (found.empty()) found = sycl::device::get_devices(sycl::info::device_type::gpu);
		}
		std::vector<device> v;
		for (auto &d : found) v.push_back({d, sycl::queue(d, sycl::property::queue::in_order{})});
		return v;
	}();
	return all;
}

device &at(int i) {
	auto &all = devices();
	if (i < 0 || static_cast<size_t>(i) >= all.size())
		throw std::out_of_range("there is no device " + std::to_string(i) + "; there are " + std::to_string(all.size()));
	return all[i];
}

sycl::queue &queue(void *q) { return *static_cast<sycl::queue *>(q); }

// made are the queues of queue_new. Those of other code have handlers of its own.
std::mutex making;
std::map<void *, failures> made;

failures of(void *q) {
	std::lock_guard<std::mutex> lock(making);
	auto it = made.find(q);
	return it == made.end() ? nullptr : it->second;
}

// raise throws what has failed late in q so far.
void raise(sycl::queue &q, const failures &f) {
	if (!f) return;
	q.throw_asynchronous();
	f->raise();
}

// An event keeps the queue that it was recorded on.
struct mark {
	sycl::event at;
	std::unique_ptr<sycl::queue> on;
	failures failed;
};
mark &event(void *e) { return *static_cast<mark *>(e); }

void put(char *to, size_t room, const std::string &s) { std::snprintf(to, room, "%s", s.c_str()); }

} // namespace

#define API(name) extern "C" __attribute__((visibility("default"))) int gxpu_##name

API(abi)(void) { return GXPU_ABI; }
extern "C" __attribute__((visibility("default"))) const char *gxpu_error(void) { return text; }

API(device_count)(int *n) {
	return guard([&] { *n = static_cast<int>(devices().size()); });
}

API(device_get)(int i, gxpu_device *out) {
	return guard([&] {
		sycl::device &d = at(i).dev;
		std::memset(out, 0, sizeof *out);
		put(out->name, sizeof out->name, d.get_info<sycl::info::device::name>());
		switch (d.get_backend()) {
		case sycl::backend::ext_oneapi_level_zero: put(out->backend, sizeof out->backend, "level_zero"); break;
		case sycl::backend::opencl: put(out->backend, sizeof out->backend, "opencl"); break;
		default: put(out->backend, sizeof out->backend, "other");
		}
		out->memory = d.get_info<sycl::info::device::global_mem_size>();
		out->gpu = d.is_gpu();
		out->units = static_cast<int32_t>(d.get_info<sycl::info::device::max_compute_units>());
		if (d.has(sycl::aspect::ext_intel_pci_address))
			put(out->pci, sizeof out->pci, d.get_info<sycl::ext::intel::info::device::pci_address>());
		if (d.has(sycl::aspect::ext_intel_free_memory))
			out->free = d.get_info<sycl::ext::intel::info::device::free_memory>();
	});
}

API(queue_new)(int i, int flags, void **q) {
	return guard([&] {
		device &d = at(i);
		namespace property = sycl::property::queue;
		auto f = std::make_shared<late>();
		std::unique_ptr<sycl::queue> made_now(flags & GXPU_TIMING
			? new sycl::queue(d.own.get_context(), d.dev, to(f), {property::in_order{}, property::enable_profiling{}})
			: new sycl::queue(d.own.get_context(), d.dev, to(f), property::in_order{}));
		std::lock_guard<std::mutex> lock(making);
		made[made_now.get()] = f;
		*q = made_now.release();
	});
}
API(queue_free)(void *q) {
	return guard([&] {
		{
			std::lock_guard<std::mutex> lock(making);
			made.erase(q);
		}
		delete &queue(q);
	});
}
API(queue_wait)(void *q) {
	return guard([&] {
		queue(q).wait_and_throw();
		raise(queue(q), of(q));
	});
}
API(queue_empty)(void *q, int *empty) {
	return guard([&] {
		*empty = queue(q).ext_oneapi_empty();
		if (*empty) raise(queue(q), of(q));
	});
}
API(queue_after)(void *q, void *e) {
	return guard([&] { queue(q).ext_oneapi_submit_barrier({event(e).at}); });
}

API(mem_new)(int i, int kind, size_t n, void **p) {
	return guard([&] {
		sycl::queue &q = at(i).own;
		*p = kind == GXPU_HOST ? sycl::malloc_host(n, q) : kind == GXPU_SHARED ? sycl::malloc_shared(n, q) : sycl::malloc_device(n, q);
		if (!*p) throw std::runtime_error("out of memory");
	});
}
API(mem_free)(int i, void *p) {
	return guard([&] { sycl::free(p, at(i).own); });
}
API(mem_kind)(int i, const void *p, int *kind) {
	return guard([&] {
		switch (sycl::get_pointer_type(p, at(i).own.get_context())) {
		case sycl::usm::alloc::device: *kind = GXPU_DEVICE; break;
		case sycl::usm::alloc::host: *kind = GXPU_HOST; break;
		case sycl::usm::alloc::shared: *kind = GXPU_SHARED; break;
		default: *kind = GXPU_UNKNOWN;
		}
	});
}

API(copy)(void *q, void *d, const void *s, size_t n) {
	return guard([&] {
		queue(q).memcpy(d, s, n).wait_and_throw();
		raise(queue(q), of(q));
	});
}
API(copy_async)(void *q, void *d, const void *s, size_t n) {
	return guard([&] { queue(q).memcpy(d, s, n); });
}
API(set_async)(void *q, void *d, int v, size_t n) {
	return guard([&] { queue(q).memset(d, v, n); });
}

API(event_new)(void **e) {
	return guard([&] { *e = new mark; });
}
API(event_free)(void *e) {
	return guard([&] { delete &event(e); });
}
API(event_record)(void *e, void *q) {
	return guard([&] {
		mark &m = event(e);
		m.at = queue(q).ext_oneapi_submit_barrier();
		if (m.on && *m.on == queue(q)) return;
		m.on = std::make_unique<sycl::queue>(queue(q));
		m.failed = of(q);
	});
}
API(event_done)(void *e, int *done) {
	return guard([&] {
		mark &m = event(e);
		*done = m.at.get_info<sycl::info::event::command_execution_status>() == sycl::info::event_command_status::complete;
		if (*done && m.on) raise(*m.on, m.failed);
	});
}
API(event_wait)(void *e) {
	return guard([&] {
		mark &m = event(e);
		m.at.wait_and_throw();
		if (m.on) raise(*m.on, m.failed);
	});
}
API(event_since)(void *end, void *start, double *seconds) {
	return guard([&] {
		using sycl::info::event_profiling::command_end;
		auto a = event(start).at.get_profiling_info<command_end>(), b = event(end).at.get_profiling_info<command_end>();
		*seconds = (static_cast<double>(b) - static_cast<double>(a)) * 1e-9;
	});
}
