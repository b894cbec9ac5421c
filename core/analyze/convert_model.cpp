#include "core/analyze/convert_model.hpp"

namespace fragshim {

namespace {

class SegmentCollector final : public BlockVisitor {
 public:
  explicit SegmentCollector(ModelSegments* out) : out_(out) {}
  void visit(const BlockView& block) override {
    if (!has_memory(block.state)) return;
    ModelSegment& segment = (*out_)[block.segment];
    segment.size += block.size;
    segment.stream = block.stream;
    segment.blocks.push_back(block);
  }

 private:
  ModelSegments* out_;
};

}  // namespace

ModelSegments segments_of(const Heap& heap) {
  ModelSegments segments;
  SegmentCollector collector(&segments);
  heap.walk(collector);
  return segments;
}

TraceCounts run_model(EventSource& source, Doors doors, ReplayHeap* heap,
                      const ModelVisitor& visit) {
  StepReader reader(source, doors);
  std::vector<ReplayStep> steps;
  Event event;
  while (source.next(&event)) {
    steps.clear();
    reader.resolve(event, &steps);
    heap->prepare(reader.slots());
    for (const ReplayStep& step : steps) visit(event, step, heap->apply(step));
  }
  return reader.counts();
}

}  // namespace fragshim
