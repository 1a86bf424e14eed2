// What goccl makes of tensors: types, operators, and calls.
#pragma once
#include <ATen/ATen.h>

#include <map>

#include "work.hpp"

namespace goccl {

// typeOf is the type of t's elements, 0 where goccl has none.
inline int typeOf(const Tensor& t) {
  switch (t.scalar_type()) {
    case at::kChar: return GOCCL_INT8;
    case at::kByte: return GOCCL_UINT8;
    case at::kShort: return GOCCL_INT16;
    case at::kUInt16: return GOCCL_UINT16;
    case at::kInt: return GOCCL_INT32;
    case at::kUInt32: return GOCCL_UINT32;
    case at::kLong: return GOCCL_INT64;
    case at::kUInt64: return GOCCL_UINT64;
    case at::kHalf: return GOCCL_FLOAT16;
    case at::kBFloat16: return GOCCL_BFLOAT16;
    case at::kFloat: return GOCCL_FLOAT32;
    case at::kDouble: return GOCCL_FLOAT64;
    case at::kFloat8_e4m3fn: return GOCCL_FLOAT8E4M3;
    case at::kFloat8_e5m2: return GOCCL_FLOAT8E5M2;
    case at::kBool: return GOCCL_BOOL;
    case at::kComplexFloat: return GOCCL_COMPLEX64;
    case at::kComplexDouble: return GOCCL_COMPLEX128;
    default: return GOCCL_NONE;
  }
}

// onHost asks for memory that the library can reach. Each call makes a Moved or a Reduced, which ask.
inline void onHost(const Tensor& t) { TORCH_CHECK(t.device().is_cpu(), "goccl: only CPU tensors, got one on ", t.device()); }

// Taken is the memory of tensors that share none.
class Taken {
 public:
  // add has t among them, and returns false if t shares memory with one.
  bool add(const Tensor& t) {
    auto *begin = static_cast<char*>(t.data_ptr()), *end = begin + t.nbytes();
    auto next = begins_.upper_bound(begin);
    if (next != begins_.end() && next->second < end) return false;
    begins_[end] = begin;
    return true;
  }

 private:
  std::map<char*, char*> begins_; // of what ends there
};

// Moved is how elements are moved: as they are, or as bytes, of which each has so many.
struct Moved {
  int type;
  int64_t width;
  explicit Moved(const Tensor& t) : type(typeOf(t)), width(1) {
    onHost(t);
    if (type == GOCCL_NONE) type = GOCCL_UINT8, width = t.element_size();
  }
};

// Reduced is how elements are reduced.
struct Reduced {
  int type, op = GOCCL_SUM;
  double factor = 1;
  Reduced(const Tensor& t, const c10d::ReduceOp& r) : type(typeOf(t)) {
    onHost(t);
    TORCH_CHECK(type != GOCCL_NONE, "goccl: Invalid scalar type: it cannot reduce ", t.scalar_type());
    bool truth = type == GOCCL_BOOL;
    switch (r.op_) {
      case c10d::ReduceOp::SUM: op = truth ? GOCCL_BOR : GOCCL_SUM; break;
      case c10d::ReduceOp::PRODUCT: op = truth ? GOCCL_BAND : GOCCL_PROD; break;
      case c10d::ReduceOp::MIN: op = GOCCL_MIN; break;
      case c10d::ReduceOp::MAX: op = GOCCL_MAX; break;
      case c10d::ReduceOp::AVG: op = GOCCL_AVG; break;
      case c10d::ReduceOp::BAND: op = GOCCL_BAND; break;
      case c10d::ReduceOp::BOR: op = GOCCL_BOR; break;
      case c10d::ReduceOp::BXOR: op = GOCCL_BXOR; break;
      case c10d::ReduceOp::PREMUL_SUM: {
        auto* s = static_cast<c10d::PreMulSumSupplement*>(r.supplement_.get());
        factor = s->tensor_factor.defined() ? s->tensor_factor.item<double>() : s->double_factor;
        op = GOCCL_MULSUM;
        break;
      }
      default: TORCH_CHECK(false, "goccl: unsupported reduce op");
    }
  }
};

inline void one(const Tensors& ts) {
  TORCH_CHECK(ts.size() == 1, "goccl: requires a single-element tensor list, got ", ts.size());
  onHost(ts[0]);
}

inline void sameType(const Tensors& ts, const Tensor& as) {
  for (auto& t : ts) {
    TORCH_CHECK(t.scalar_type() == as.scalar_type(), "goccl: invalid tensor type ", t.scalar_type(), " beside ", as.scalar_type());
    TORCH_CHECK(t.device() == as.device(), "goccl: a tensor on ", t.device(), " beside one on ", as.device());
  }
}

// fits asks for a tensor that is as large as so many parts. The library would refuse another one, too, and fail the group.
inline void fits(const Tensor& t, const Tensor& part, int64_t parts = 1) {
  TORCH_CHECK(t.numel() == part.numel() * parts, "goccl: invalid tensor size: ", t.numel(), " elements beside ", parts, " times ", part.numel());
}

// parts asks for tensors that are equal parts of one memory, each as large as the part of this rank.
inline void parts(const Tensors& ts, const Tensor& part) {
  sameType(ts, part);
  for (auto& t : ts) fits(t, part);
}

inline bool sameSize(const Tensors& ts) {
  for (auto& t : ts)
    if (t.numel() != ts[0].numel()) return false;
  return true;
}

// splits are how many elements of t go to each rank, or come from it.
inline std::vector<int64_t> splits(const Tensor& t, const std::vector<int64_t>& sizes, int ranks, int64_t width) {
  if (sizes.empty()) {
    TORCH_CHECK(t.size(0) % ranks == 0, "Tensor's dim 0 does not divide equally across group size");
    return std::vector<int64_t>(ranks, t.numel() / ranks * width);
  }
  TORCH_CHECK((int)sizes.size() == ranks, "Number of tensor splits not equal to group size");
  int64_t row = t.size(0) ? t.numel() / t.size(0) : 1, sum = 0;
  std::vector<int64_t> r;
  for (auto n : sizes) {
    TORCH_CHECK(n >= 0, "Split sizes must be non-negative, got ", n);
    r.push_back(n * row * width);
    sum += n;
  }
  TORCH_CHECK(sum == t.size(0), "Split sizes doesn't match total dim 0 size");
  return r;
}

// Call is one call, and where its memory lies.
struct Call : goccl_args {
  Call(int kind, int type) : goccl_args{} { this->kind = kind, this->type = type, this->root = -1; }
  Call(int kind, const Reduced& how) : Call(kind, how.type) { op = how.op, factor = how.factor; }
  Call& to(const Memory& m, int64_t width = 1) {
    dst = m.at, dst_n = m.n * width;
    return *this;
  }
  Call& from(const Memory& m, int64_t width = 1) {
    src = m.at, src_n = m.n * width;
    return *this;
  }
  Call& rooted(int64_t r) {
    root = (int32_t)r;
    return *this;
  }
  Call& counts(const std::vector<int64_t>& dc, const std::vector<int64_t>& sc) {
    dst_counts = dc.empty() ? nullptr : dc.data(), src_counts = sc.empty() ? nullptr : sc.data();
    return *this;
  }
};

} // namespace goccl
