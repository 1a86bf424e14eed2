#include <torch/csrc/utils/pybind.h>

#include "backend.hpp"

static c10::intrusive_ptr<c10d::Backend> create(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size, int64_t milliseconds,
                                                const std::string& group, const std::string& name) {
  return c10::make_intrusive<goccl::Backend>(store, rank, size, std::chrono::milliseconds(milliseconds), group, name);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("create", &create, pybind11::call_guard<pybind11::gil_scoped_release>());
  m.def("version", &goccl_version);
}
