// What a program that looks symbols up sees: `probe CASE [ARG]` exits 0 where all is well and says
// what is not on stderr.
#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/preload/lookup_programs/owner.hpp"

using fragshim::test::owner;

namespace {

int failures = 0;

void expect_equal(const char* what, const std::string& seen, const std::string& wanted) {
  if (seen == wanted) return;
  ++failures;
  std::fprintf(stderr, "%s: %s, not %s\n", what, seen.c_str(), wanted.c_str());
}

void expect(const char* what, bool holds) { expect_equal(what, holds ? "so" : "not so", "so"); }

template <typename Function>
Function* find(void* handle, const char* name) {
  return reinterpret_cast<Function*>(dlsym(handle, name));
}

void* open(const char* file) {
  void* const handle = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
  if (handle) return handle;
  std::fprintf(stderr, "%s\n", dlerror());
  std::exit(2);
}

/// A second preloaded library overrides getppid and looks the next one up.
void second() {
  expect("getppid", getppid() == syscall(SYS_getppid));
  auto* const calls = find<int()>(RTLD_DEFAULT, "second_getppid_calls");
  expect("the second library is there", calls != nullptr);
  if (calls) expect_equal("calls of its getppid", std::to_string(calls()), "1");
}

/// The second library overrides a hooked entry too; `first` says whose is found first.
void second_cuda(const std::string& first) {
  auto* const entry = find<int(std::size_t*, std::size_t*)>(RTLD_DEFAULT, "cuMemGetInfo_v2");
  expect_equal("cuMemGetInfo_v2", owner(reinterpret_cast<void*>(entry)),
               first + ":cuMemGetInfo_v2");
  auto* const next = find<void*()>(RTLD_DEFAULT, "second_next_mem_get_info");
  expect_equal("the next one", owner(next()),
               first == "libfragshim.so" ? "null" : "libfragshim.so:cuMemGetInfo_v2");
  expect_equal("its answer without a driver", std::to_string(entry(nullptr, nullptr)), "3");
}

/// Names that begin like CUDA's in a library that is not the driver.
void lookalike(const char* file) {
  void* const handle = open(file);
  for (const char* name : {"cudnnCreate", "curl_easy_init", "cuFFTLike", "cu", "c", "cuMemAlloc_v2",
                           "cuGetProcAddress"}) {
    expect_equal(name, owner(dlsym(handle, name)), std::string("liblookalike.so:") + name);
  }
}

/// A plugin opened with RTLD_LOCAL looks with RTLD_DEFAULT for what only its own dependency has.
void plugin(const char* file) {
  void* const handle = open(file);
  expect_equal("found by the plugin", owner(find<void*()>(handle, "plugin_finds")()),
               "libplugin_dependency.so:plugin_dependency");
  expect_equal("found by the program", owner(dlsym(RTLD_DEFAULT, "plugin_dependency")), "null");
}

std::string last_error() {
  const char* const text = dlerror();
  return text ? text : "";
}

void errors() {
  void* const handle = open("libm.so.6");
  last_error();
  for (const char* missing : {"no_such_symbol", "cuMemAlloc_v2", "cuNoSuchSymbol"}) {
    expect_equal(missing, owner(dlsym(handle, missing)), "null");
    expect("dlerror names it", last_error().find(missing) != std::string::npos);
    expect_equal("dlerror asked twice", last_error(), "");
    (void)dlsym(handle, missing);
    expect("a good look-up", dlsym(handle, "cos") != nullptr);
    expect_equal("dlerror after it", last_error(), "");
  }
}

/// As errors(), with a driver: a hooked look-up leaves no error of ours behind.
void errors_with_driver() {
  void* const handle = open("libcuda.so.1");
  (void)dlsym(handle, "no_such_symbol");
  expect_equal("a hooked look-up", owner(dlsym(handle, "cuMemAlloc_v2")),
               "libfragshim.so:cuMemAlloc_v2");
  expect_equal("dlerror after it", last_error(), "");
  (void)dlsym(handle, "cuNoSuchSymbol");
  expect("dlerror after a failure", last_error().find("cuNoSuchSymbol") != std::string::npos);
}

/// No CUDA here: the exported names are found, and answer as a driver does before cuInit.
void absent() {
  auto* const entry = find<int(unsigned long long*, std::size_t)>(RTLD_DEFAULT, "cuMemAlloc_v2");
  expect_equal("cuMemAlloc_v2", owner(reinterpret_cast<void*>(entry)),
               "libfragshim.so:cuMemAlloc_v2");
  unsigned long long address = 0;
  if (entry) expect_equal("its answer", std::to_string(entry(&address, 64)), "3");
}

/// Opens a library with much static TLS while ours has its own.
void late(const char* file) {
  expect_equal("thread-local bytes", std::to_string(find<int()>(open(file), "late_tls")()), "7");
}

/// Opens our library late; it is there for explicit look-ups and does no harm.
void late_fragshim(const char* file) {
  expect_equal("an exported name", owner(dlsym(open(file), "cuMemAlloc_v2")),
               "libfragshim.so:cuMemAlloc_v2");
}

/// What a library's constructor saw, before ours had run (early.cpp).
void early() {
  auto* const report = find<const char*()>(RTLD_DEFAULT, "early_report");
  expect("the early library is there", report != nullptr);
  if (report) std::puts(report());
}

}  // namespace

int main(int count, char** arguments) {
  const std::string name = count > 1 ? arguments[1] : "";
  const char* const argument = count > 2 ? arguments[2] : "";
  if (name == "second") {
    second();
  } else if (name == "second_cuda") {
    second_cuda(argument);
  } else if (name == "lookalike") {
    lookalike(argument);
  } else if (name == "plugin") {
    plugin(argument);
  } else if (name == "errors") {
    errors();
  } else if (name == "errors_with_driver") {
    errors_with_driver();
  } else if (name == "absent") {
    absent();
  } else if (name == "late") {
    late(argument);
  } else if (name == "late_fragshim") {
    late_fragshim(argument);
  } else if (name == "early") {
    early();
  } else {
    expect("a case of that name", false);
  }
  return failures ? 1 : 0;
}
