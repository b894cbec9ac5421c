// From the driver's result codes to the core's outcomes and back.
#pragma once

#include <cuda.h>

#include "core/device/device.hpp"

namespace fragshim {

/// What a result of the driver means to the core.
constexpr Status status_of(CUresult result) noexcept {
  const int code = static_cast<int>(result);
  switch (result) {
    case CUDA_SUCCESS:
      return {};
    case CUDA_ERROR_OUT_OF_MEMORY:
      return {Outcome::out_of_memory, code};
    case CUDA_ERROR_NOT_READY:
      return {Outcome::not_ready, code};
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_NOT_FOUND:
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
    case CUDA_ERROR_STREAM_CAPTURE_IMPLICIT:
      return {Outcome::unsupported, code};
    default:
      return {Outcome::failed, code};
  }
}

/// As status_of, for calls that give something back: at exit the driver may be gone already, and
/// what was to be given back with it.
constexpr Status status_of_release(CUresult result) noexcept {
  return result == CUDA_ERROR_DEINITIALIZED ? Status{} : status_of(result);
}

}  // namespace fragshim
