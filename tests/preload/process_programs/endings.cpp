// Every way in which a program that holds device memory may end, or part of it: `endings CASE`.
// Prints the driver's answers, one a line, and "end" where it comes to its own end.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/preload/driver_user.hpp"

using namespace driver_user;

namespace {

constexpr std::size_t size = std::size_t{1} << 20;

/// Unbuffered: an _exit loses none, and a child repeats none.
void say(const std::string& word) {
  const std::string line = word + "\n";
  if (write(STDOUT_FILENO, line.data(), line.size()) < 0) _exit(5);
}

void say(CUresult result) { say(std::to_string(static_cast<int>(result))); }

/// A block that its destructor frees, whenever that runs.
struct Owner {
  CUdeviceptr address = 0;
  bool stream_ordered = false;
  void take() {
    expect(stream_ordered ? allocate_on(nullptr, &address, size) : allocate(&address, size),
           CUDA_SUCCESS, "allocate");
  }
  ~Owner() {
    if (address != 0) say(stream_ordered ? release_on(nullptr, address) : release(address));
  }
};

Owner until_exit[2] = {{0, false}, {0, true}};
thread_local Owner until_thread_exit[2] = {{0, false}, {0, true}};
CUdeviceptr left_for_atexit = 0;

void free_in_destructors() {
  for (Owner& owner : until_exit) owner.take();
  std::thread([] {
    begin();
    for (Owner& owner : until_thread_exit) owner.take();
  }).join();
  for (Owner& owner : until_thread_exit) owner.take();
  expect(allocate(&left_for_atexit, size), CUDA_SUCCESS, "allocate");
  std::atexit([] { say(release(left_for_atexit)); });
}

std::atomic<int> at_work{0};

/// Allocates and frees through both doors until the process is gone.
void churn(const std::atomic<bool>& go_on) {
  begin();
  ++at_work;
  while (go_on) {
    CUdeviceptr one = 0;
    CUdeviceptr other = 0;
    if (allocate(&one, size) != CUDA_SUCCESS) return;
    if (allocate_on(nullptr, &other, size) != CUDA_SUCCESS) return;
    release(one);
    release_on(nullptr, other);
  }
}

std::atomic<bool> busy{true};

/// Threads at work that nobody joins. One that began only as the process ends would find the driver
/// gone.
void leave_threads_running() {
  constexpr int threads = 4;
  for (int i = 0; i < threads; ++i) std::thread([] { churn(busy); }).detach();
  while (at_work < threads) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

void exit_from_another_thread() {
  leave_threads_running();
  std::thread([] { std::exit(0); }).join();
}

/// Children made while other threads are inside the allocator: none may wait for a lock that
/// nobody in it will ever give back.
void fork_among_threads() {
  std::vector<std::thread> threads;
  threads.reserve(3);
  for (int i = 0; i < 3; ++i) threads.emplace_back([] { churn(busy); });
  for (int i = 0; i < 50; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);
      CUdeviceptr address = 0;
      const bool refused = allocate(&address, size) != CUDA_SUCCESS &&
                           allocate_on(nullptr, &address, size) != CUDA_SUCCESS;
      std::exit(refused ? 0 : 1);  // as the driver answers a forked child
    }
    int status = -1;
    waitpid(child, &status, 0);
    if (status != 0) say("child " + std::to_string(status));
  }
  busy = false;
  for (std::thread& thread : threads) thread.join();
}

/// What a thread leaves lives on, and anybody may free it.
void thread_gone() {
  std::vector<CUdeviceptr> left(200);
  std::thread([&left] {
    begin();
    for (std::size_t i = 0; i < left.size(); ++i) {
      expect(i % 2 == 0 ? allocate(&left[i], size) : allocate_on(nullptr, &left[i], size),
             CUDA_SUCCESS, "allocate");
    }
  }).join();
  for (const CUdeviceptr address : left) expect(release(address), CUDA_SUCCESS, "release");
}

/// Requests of no possible size are refused and change nothing.
void no_possible_size() {
  for (const std::size_t much : {SIZE_MAX, SIZE_MAX - 511, SIZE_MAX / 2 + 1, SIZE_MAX >> 8}) {
    CUdeviceptr address = 0;
    say(allocate(&address, much));
    say(allocate_on(nullptr, &address, much));
  }
  CUdeviceptr address = 0;
  expect(allocate(&address, size), CUDA_SUCCESS, "allocate");
  expect(release(address), CUDA_SUCCESS, "release");
}

std::size_t resident_pages() {
  std::size_t whole = 0;
  std::size_t resident = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%zu %zu", &whole, &resident) != 2) std::exit(6);
  std::fclose(file);
  return resident;
}

/// Whether some work adds host memory to what the same work took before, but for what the stand-in
/// driver keeps of every stream.
template <typename Work>
void say_growth(Work work) {
  constexpr std::size_t most = 256;  // pages
  work();
  const std::size_t before = resident_pages();
  for (int i = 0; i < 3; ++i) work();
  const std::size_t after = resident_pages();
  say(after <= before + most ? "flat" : "grew by " + std::to_string(after - before));
}

/// A million blocks alive at once.
void million() {
  std::vector<CUdeviceptr> blocks(1'000'000);
  const auto work = [&blocks] {
    for (CUdeviceptr& block : blocks) expect(allocate(&block, 512), CUDA_SUCCESS, "allocate");
    for (const CUdeviceptr block : blocks) expect(release(block), CUDA_SUCCESS, "release");
  };
  say_growth(work);
}

/// Ten thousand streams come and go, with blocks on their way home.
void streams() {
  const auto create = entry<CUresult (*)(CUstream*, unsigned)>("cuStreamCreate");
  const auto destroy = entry<CUresult (*)(CUstream)>("cuStreamDestroy_v2");
  const auto work = [&] {
    for (int i = 0; i < 2500; ++i) {
      CUstream stream = nullptr;
      CUdeviceptr address = 0;
      expect(create(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS, "cuStreamCreate");
      expect(allocate_on(stream, &address, size), CUDA_SUCCESS, "allocate_on");
      expect(release_on(i % 2 == 0 ? stream : nullptr, address), CUDA_SUCCESS, "release_on");
      expect(destroy(stream), CUDA_SUCCESS, "cuStreamDestroy");
    }
  };
  say_growth(work);
}

/// As many threads as large servers have, each at work on both doors.
void crowd() {
  std::vector<std::thread> threads;
  threads.reserve(256);
  for (int i = 0; i < 256; ++i) {
    threads.emplace_back([] {
      begin();
      for (int turn = 0; turn < 50; ++turn) use_both_doors(CU_STREAM_PER_THREAD);
    });
  }
  for (std::thread& thread : threads) thread.join();
  say("done");
}

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): one case is just that.
int main(int count, char** arguments) {
  const std::string name = count > 1 ? arguments[1] : "";
  begin();
  CUdeviceptr kept = 0;
  expect(allocate(&kept, size), CUDA_SUCCESS, "allocate");
  expect(allocate_on(nullptr, &kept, size), CUDA_SUCCESS, "allocate_on");
  if (name == "destructors") free_in_destructors();
  if (name == "exit_elsewhere") exit_from_another_thread();
  if (name == "return_among_threads") leave_threads_running();
  if (name == "quick_exit") leave_threads_running(), std::quick_exit(0);
  if (name == "_exit") leave_threads_running(), _exit(0);
  if (name == "uncaught") throw std::runtime_error("meant to end the program");
  if (name == "fork") fork_among_threads();
  if (name == "thread_gone") thread_gone();
  if (name == "huge") no_possible_size();
  if (name == "million") million();
  if (name == "streams") streams();
  if (name == "crowd") crowd();
  if (name == "forever") churn(busy);
  say("end");
  return 0;
}
