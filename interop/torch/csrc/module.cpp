#include <torch/csrc/utils/pybind.h>

#include "backend.hpp"

using BackendPtr = c10::intrusive_ptr<c10d::Backend>;
using StorePtr = c10::intrusive_ptr<c10d::Store>;

// world is the group of all ranks, of which others are parts, while there is one.
static c10::weak_intrusive_ptr<goccl::Backend> world{c10::intrusive_ptr<goccl::Backend>()};
static std::mutex world_mu; // threads make groups, without Python's lock

static BackendPtr create(const StorePtr& store, int rank, int size, int64_t milliseconds, const std::string& group, const std::string& name, bool all) {
  auto made = c10::make_intrusive<goccl::Backend>(store, rank, size, std::chrono::milliseconds(milliseconds), group, name);
  if (!all) return made;
  std::lock_guard lock(world_mu);
  world = c10::weak_intrusive_ptr<goccl::Backend>(made);
  return made;
}

static BackendPtr part(const StorePtr& store, const std::vector<int32_t>& ranks, int tag, int rank, int64_t milliseconds, const std::string& group,
                       const std::string& name) {
  std::unique_lock lock(world_mu);
  auto all = world.lock();
  lock.unlock();
  return all ? all->part(ranks, tag, store, rank, std::chrono::milliseconds(milliseconds), group, name) : c10::intrusive_ptr<goccl::Backend>();
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("create", &create, pybind11::call_guard<pybind11::gil_scoped_release>());
  m.def("part", &part, pybind11::call_guard<pybind11::gil_scoped_release>());
  m.def("version", &goccl_version);
}
