#include <torch/csrc/utils/pybind.h>

#include <map>

#include "backend.hpp"

using BackendPtr = c10::intrusive_ptr<c10d::Backend>;
using StorePtr = c10::intrusive_ptr<c10d::Store>;

// world is the group of all ranks, of which others are parts, while there is one.
static c10::weak_intrusive_ptr<goccl::Backend> world{c10::intrusive_ptr<goccl::Backend>()};
static std::mutex world_mu; // threads make groups, without Python's lock

using Ranks = std::vector<int32_t>;
using GroupPtr = c10::intrusive_ptr<goccl::Backend>;

// Parts are the groups of some ranks, in the order in which this process has made them. The ranks of a list count alike the groups of that
// list. PyTorch counts all groups that a process has made, and names by that, so its store may give ranks of one group different prefixes.
static std::vector<std::pair<c10::weak_intrusive_ptr<goccl::Backend>, Ranks>> parts;
static std::map<Ranks, uint32_t> made;

// groups are all that this process has made.
static std::vector<c10::weak_intrusive_ptr<goccl::Backend>> groups;

// keep has b among them. world_mu is held.
static void keep(const GroupPtr& b) {
  groups.erase(std::remove_if(groups.begin(), groups.end(), [](auto& g) { return g.expired(); }), groups.end());
  groups.emplace_back(b);
}

// leave closes them as the program ends, the last one first: else what this rank has sent and nobody has received would be lost with it.
static void leave() {
  if (goccl::Fork::happened()) return;
  std::vector<GroupPtr> left;
  {
    std::lock_guard lock(world_mu);
    for (auto& g : groups)
      if (auto b = g.lock()) left.push_back(std::move(b));
  }
  for (; !left.empty(); left.pop_back()) left.back()->shutdown();
}

// tagOf is a number of the next group of ranks. world_mu is held.
static int tagOf(const Ranks& ranks) {
  uint64_t h = 0xcbf29ce484222325 ^ ++made[ranks]; // FNV-1a
  for (auto r : ranks) h = (h ^ (uint32_t)r) * 0x100000001b3, h ^= h >> 29;
  return (int)(h >> 33);
}

static GroupPtr whole() {
  std::lock_guard lock(world_mu);
  auto all = world.lock();
  TORCH_CHECK(all, "goccl: the default group is not goccl's");
  return all;
}

static BackendPtr create(const StorePtr& store, int rank, int size, int64_t milliseconds, const std::string& group, const std::string& name, bool all,
                         int64_t spares) {
  auto b = goccl::Backend::make(store, rank, size, spares, std::chrono::milliseconds(milliseconds), group, name);
  if (!b) return b;
  std::lock_guard lock(world_mu);
  keep(b);
  if (!all) return b;
  world = c10::weak_intrusive_ptr<goccl::Backend>(b);
  made.clear(), parts.clear();
  return b;
}

static BackendPtr part(const StorePtr& store, const Ranks& ranks, int64_t milliseconds, const std::string& group, const std::string& name) {
  std::unique_lock lock(world_mu);
  auto all = world.lock();
  auto tag = tagOf(ranks);
  lock.unlock();
  auto b = all ? all->part(ranks, tag, store, std::chrono::milliseconds(milliseconds), group, name) : GroupPtr();
  if (!b) return b;
  lock.lock();
  keep(b);
  parts.erase(std::remove_if(parts.begin(), parts.end(), [](auto& p) { return p.first.expired(); }), parts.end());
  parts.emplace_back(c10::weak_intrusive_ptr<goccl::Backend>(b), ranks);
  return b;
}

// replace has spares in the default group, and makes the groups that are left again, as a spare makes them: each list's first one is its first.
static Ranks replace() {
  auto all = whole();
  all->replace();
  std::vector<std::tuple<GroupPtr, Ranks, int>> again;
  {
    std::lock_guard lock(world_mu);
    made.clear();
    for (auto& [p, ranks] : parts)
      if (auto b = p.lock(); b && !b->closed()) again.emplace_back(b, ranks, tagOf(ranks));
  }
  for (auto& [b, ranks, tag] : again) b->remake(*all, ranks, tag);
  return all->fresh();
}

static std::string failed(const BackendPtr& backend) {
  auto* b = dynamic_cast<goccl::Backend*>(backend.get());
  TORCH_CHECK(b, "goccl: this is a group of another backend");
  return b->failed();
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("create", &create, pybind11::call_guard<pybind11::gil_scoped_release>());
  m.def("part", &part, pybind11::call_guard<pybind11::gil_scoped_release>());
  m.def("replace", &replace, pybind11::call_guard<pybind11::gil_scoped_release>());
  m.def("fresh", [] { return whole()->fresh(); }, pybind11::call_guard<pybind11::gil_scoped_release>());
  m.def("restored", [] { whole()->restored(); }, pybind11::call_guard<pybind11::gil_scoped_release>());
  m.def("leave", &leave, pybind11::call_guard<pybind11::gil_scoped_release>());
  m.def("failed", &failed, pybind11::call_guard<pybind11::gil_scoped_release>());
  m.def("version", &goccl_version);
}
