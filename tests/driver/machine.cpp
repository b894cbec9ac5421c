#include "tests/driver/machine.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "tests/driver/settings.hpp"

namespace standin {
namespace {

using fragshim::GiB;

constexpr Bytes file_size = Bytes{1} << 50;  // sparse: only what is touched takes memory

#if defined(__SANITIZE_THREAD__)
constexpr Bytes most_addresses = 512 * GiB;  // its shadow leaves no room for more
#else
constexpr Bytes most_addresses = Bytes{64} * 1024 * GiB;
#endif

std::atomic<unsigned long long> hazard_count{0};
std::mutex hazard_mutex;
std::string& first() {
  static std::string& text = *new std::string;
  return text;
}

/// Once: the status the process would have left with, unless there were hazards.
void judge(int status, void*) {
  if (status != 0 || hazard_count == 0) return;
  std::fflush(nullptr);
  _exit(99);
}

void note_hazard(const std::string& text) {
  std::fprintf(stderr, "standin: hazard: %s\n", text.c_str());
  const std::lock_guard<std::mutex> lock(hazard_mutex);
  if (hazard_count++ == 0) first() = text;
}

fragshim::SimulatedOptions options_for(Address base, Bytes addresses, FileBacking* backing) {
  fragshim::SimulatedOptions options;
  options.capacity = settings().memory;
  options.charge_pages = true;
  options.base = base;
  options.address_space = addresses;
  options.backing = backing;
  return options;
}

/// Addresses for everything, of which nothing can be touched yet; 0 where there are none.
Address take_addresses(Bytes* size) {
  for (*size = most_addresses; *size >= 64 * GiB; *size /= 2) {
    void* at = mmap(nullptr, *size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at != MAP_FAILED) return reinterpret_cast<Address>(at);
  }
  return 0;
}

}  // namespace

void hide(Address address, Bytes size) {
  void* at = mmap(reinterpret_cast<void*>(address), size, PROT_NONE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (at == MAP_FAILED) std::perror("standin: mmap");
}

FileBacking::FileBacking() : file_(memfd_create("standin", MFD_CLOEXEC)) {
  if (file_ < 0 || ftruncate(file_, static_cast<off_t>(file_size)) != 0) {
    std::perror("standin: memory file");
  }
}

bool FileBacking::map(Address address, Bytes size, Address physical) {
  void* at = mmap(reinterpret_cast<void*>(address), size, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file_, static_cast<off_t>(physical));
  return at != MAP_FAILED;
}

void FileBacking::unmap(Address address, Bytes size) { hide(address, size); }

void FileBacking::discard(Address physical, Bytes size) {
  fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(physical),
            static_cast<off_t>(size));
}

Machine::Machine(int which, Address start, Bytes size)
    : ordinal(which), base(start), addresses(size), device(options_for(start, size, &backing)) {
  order().report_to(note_hazard);
}

std::vector<std::unique_ptr<Machine>> make_machines() {
  std::vector<std::unique_ptr<Machine>> machines;
  const int count = settings().devices;
  Bytes size = 0;
  const Address base = count == 0 ? 0 : take_addresses(&size);
  if (base == 0) return machines;
  const Bytes slice = fragshim::round_down(size / static_cast<Bytes>(count), GiB);
  const Address start = fragshim::round_up(base, 64 * fragshim::MiB);
  for (int i = 0; i < count; ++i) {
    const Bytes usable = slice - GiB;  // a gap between devices
    machines.push_back(std::make_unique<Machine>(i, start + slice * static_cast<Bytes>(i), usable));
  }
  return machines;
}

unsigned long long hazards() { return hazard_count; }

std::string first_hazard() {
  const std::lock_guard<std::mutex> lock(hazard_mutex);
  return first();
}

namespace {

// Asks to be called after every other end of the process, the shim's own included: a handler
// registered while the libraries come down runs behind them all.
__attribute__((destructor)) void arrange_judgement() {
  if (hazard_count != 0) on_exit(judge, nullptr);
}

}  // namespace

}  // namespace standin

extern "C" unsigned long long standin_hazards() { return standin::hazards(); }

/// The first hazard's description into `text`; returns its length.
extern "C" std::size_t standin_first_hazard(char* text, std::size_t size) {
  const std::string hazard = standin::first_hazard();
  if (size != 0) std::snprintf(text, size, "%s", hazard.c_str());
  return hazard.size();
}
