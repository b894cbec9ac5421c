// The real dlsym, for the shim itself: inside it the plain name is the hook.
#pragma once

namespace fragshim {

/// The C library's dlsym. For explicit handles only: with RTLD_NEXT or RTLD_DEFAULT the caller
/// would be the shim.
void* real_dlsym(void* handle, const char* name) noexcept;

}  // namespace fragshim
