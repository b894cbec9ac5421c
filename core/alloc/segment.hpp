// A segment: what a heap got from the device in one piece, plain or expandable.
#pragma once

#include "core/alloc/block.hpp"
#include "core/device/device.hpp"

namespace fragshim {

struct Segment {
  Address address = 0;
  Bytes size = 0;          // expandable: the addresses reserved, not the memory mapped
  Block* first = nullptr;  // its blocks by address, through Block::next
  // Expandable segments only:
  Bytes page = 0;             // the size of one physical handle; 0 for a plain segment
  Physical* pages = nullptr;  // one per page of the range; handle 0: not mapped

  bool expandable() const { return page != 0; }
};

}  // namespace fragshim
