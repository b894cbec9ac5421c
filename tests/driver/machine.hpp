// The machine the stand-in driver drives: simulated devices whose memory really holds bytes.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/device/simulated.hpp"

namespace standin {

using fragshim::Address;
using fragshim::Bytes;

/// Bytes for a simulated device: one memory file a device, of which every mapping shows a part, so
/// that two mappings of the same physical memory are truly the same bytes.
class FileBacking : public fragshim::Backing {
 public:
  FileBacking();
  bool map(Address address, Bytes size, Address physical) override;
  void unmap(Address address, Bytes size) override;
  void discard(Address physical, Bytes size) override;
  int file() const { return file_; }

 private:
  int file_ = -1;
};

/// One device of the machine.
struct Machine {
  Machine(int ordinal, Address base, Bytes addresses);

  bool holds(Address address) const { return address - base < addresses; }

  const int ordinal;
  const Address base;
  const Bytes addresses;
  FileBacking backing;
  fragshim::SimulatedDevice device;
  fragshim::WorkOrder& order() { return device.order(); }
};

/// Makes the devices that the settings ask for. Empty where the host gives no address space.
std::vector<std::unique_ptr<Machine>> make_machines();

/// Shows nothing at [address, address + size) any more; the addresses stay taken.
void hide(Address address, Bytes size);

/// Hazards seen on all devices so far; each also gives one line on stderr.
unsigned long long hazards();
std::string first_hazard();

}  // namespace standin
