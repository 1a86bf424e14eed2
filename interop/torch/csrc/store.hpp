// Meeting is c10d's store as goccl asks for one.
#pragma once
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <algorithm>
#include <thread>

#include "goccl.h"

namespace goccl {

struct Meeting {
  c10::intrusive_ptr<c10d::Store> store;

  goccl_store callbacks() { return {this, set, get}; }

  static int32_t set(void* ctx, const char* key, const void* value, uint64_t n) noexcept {
    try {
      auto* p = static_cast<const uint8_t*>(value);
      std::vector<uint8_t> v(p, p + n);
      v.push_back(0); // some stores take no empty value
      static_cast<Meeting*>(ctx)->store->set(key, v);
      return 0;
    } catch (const std::exception&) {
      return 1;
    }
  }

  // get looks again and again. A get of the store's own would keep all others from the store meanwhile: those of a thread that makes
  // another group, for which this one may wait.
  static int32_t get(void* ctx, const char* key, int64_t timeout, uintptr_t value) noexcept {
    auto* m = static_cast<Meeting*>(ctx);
    auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(std::min<int64_t>(timeout, 86400'000'000'000));
    try {
      for (auto nap = std::chrono::microseconds(50);; nap = std::min(nap * 3 / 2, std::chrono::microseconds(5000))) {
        if (m->store->check({key})) break;
        if (std::chrono::steady_clock::now() > until) return 2;
        std::this_thread::sleep_for(nap);
      }
      auto got = m->store->get(key);
      goccl_value(value, got.data(), got.empty() ? 0 : got.size() - 1);
      return 0;
    } catch (const std::exception&) {
      return 1;
    }
  }
};

} // namespace goccl
