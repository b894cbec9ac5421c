// Shares device memory with a second process: `ipc WAY`. Three small blocks, each of its own
// pattern, are exported; the other process, which uses CUDA too, opens each handle, compares every
// byte and writes others, which this one compares. A line for each block: "same", "different", or
// the code with which the driver refused its handle.
//
// WAY: pointer     the handle of the block's own address
//      range       the handle of where its allocation begins, and how far the block is behind that
//      ordered     as pointer, of stream-ordered memory
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/preload/driver_user.hpp"

using namespace driver_user;

namespace {

constexpr std::size_t block_size = 5000;
constexpr unsigned char reply = 200;

struct Shared {
  CUipcMemHandle handle;
  std::size_t offset;
  unsigned char pattern;
};

void fill(CUdeviceptr address, unsigned char pattern) {
  expect(entry<CUresult (*)(CUdeviceptr, unsigned char, std::size_t)>("cuMemsetD8_v2")(
             address, pattern, block_size),
         CUDA_SUCCESS, "fill");
  expect(entry<CUresult (*)()>("cuCtxSynchronize")(), CUDA_SUCCESS, "synchronize");
}

bool holds(CUdeviceptr address, unsigned char pattern) {
  std::vector<unsigned char> bytes(block_size);
  expect(entry<CUresult (*)(void*, CUdeviceptr, std::size_t)>("cuMemcpyDtoH_v2")(
             bytes.data(), address, block_size),
         CUDA_SUCCESS, "copy");
  return bytes == std::vector<unsigned char>(block_size, pattern);
}

/// The other process, until the first one hangs up.
void import_all(int channel) {
  begin();
  for (Shared shared; read(channel, &shared, sizeof shared) == sizeof shared;) {
    CUdeviceptr base = 0;
    expect(entry<CUresult (*)(CUdeviceptr*, CUipcMemHandle, unsigned)>("cuIpcOpenMemHandle_v2")(
               &base, shared.handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
           CUDA_SUCCESS, "open");
    const bool same = holds(base + shared.offset, shared.pattern);
    fill(base + shared.offset, reply);
    expect(entry<CUresult (*)(CUdeviceptr)>("cuIpcCloseMemHandle")(base), CUDA_SUCCESS, "close");
    if (write(channel, &same, 1) != 1) std::exit(5);
  }
}

CUdeviceptr start_of_range(CUdeviceptr address) {
  CUdeviceptr start = 0;
  expect(entry<CUresult (*)(void*, CUpointer_attribute, CUdeviceptr)>("cuPointerGetAttribute")(
             &start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address),
         CUDA_SUCCESS, "range");
  return start;
}

std::string share(int channel, CUdeviceptr block, CUdeviceptr exported, unsigned char pattern) {
  Shared shared{{}, block - exported, pattern};
  const CUresult refused = entry<CUresult (*)(CUipcMemHandle*, CUdeviceptr)>("cuIpcGetMemHandle")(
      &shared.handle, exported);
  if (refused != CUDA_SUCCESS) return std::to_string(static_cast<int>(refused));
  bool same = false;
  if (write(channel, &shared, sizeof shared) != sizeof shared) std::exit(5);
  if (read(channel, &same, 1) != 1) std::exit(5);
  return same && holds(block, reply) ? "same" : "different";
}

void export_all(int channel, const std::string& way) {
  begin();
  std::vector<CUdeviceptr> blocks(3);
  for (CUdeviceptr& block : blocks) {
    expect(
        way == "ordered" ? allocate_on(nullptr, &block, block_size) : allocate(&block, block_size),
        CUDA_SUCCESS, "allocate");
  }
  unsigned char pattern = 1;
  for (const CUdeviceptr block : blocks) fill(block, pattern++);
  pattern = 1;
  for (const CUdeviceptr block : blocks) {
    const CUdeviceptr exported = way == "range" ? start_of_range(block) : block;
    std::puts(share(channel, block, exported, pattern++).c_str());
  }
  for (const CUdeviceptr block : blocks) expect(release(block), CUDA_SUCCESS, "release");
}

}  // namespace

int main(int count, char** arguments) {
  int channel[2];
  if (count != 2 || socketpair(AF_UNIX, SOCK_STREAM, 0, channel) != 0) return 2;
  const pid_t child = fork();
  close(channel[child == 0 ? 0 : 1]);
  if (child == 0) {
    import_all(channel[1]);
    return 0;
  }
  export_all(channel[0], arguments[1]);
  close(channel[0]);
  int status = -1;
  waitpid(child, &status, 0);
  return status == 0 ? 0 : 6;
}
