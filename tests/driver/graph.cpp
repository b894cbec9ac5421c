// Graphs, as far as captures make them: instantiated, launched, destroyed.
#include "tests/driver/call.hpp"
#include "tests/driver/capture.hpp"
#include "tests/driver/context.hpp"
#include "tests/driver/pools.hpp"

namespace standin {
namespace {

CUresult instantiate(const char* name, CUgraphExec* out, CUgraph handle) {
  return context_entry(name, [&](Context&) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Lock lock(driver().mutex);
    const auto found = driver().graphs.find(handle);
    if (found == driver().graphs.end()) return CUDA_ERROR_INVALID_VALUE;
    auto executable = std::make_shared<Graph>();
    executable->nodes = found->second->nodes;
    executable->source = found->second;
    *out = reinterpret_cast<CUgraphExec>(executable.get());
    driver().executables[*out] = std::move(executable);
    return CUDA_SUCCESS;
  });
}

bool is_alive(Address address, const Allocation& allocation) {
  const auto found = driver().allocations.find(address);
  return found != driver().allocations.end() && found->second.buffer_id == allocation.buffer_id;
}

/// Those of a graph's allocations that are alive, or else those that the program has freed since.
std::map<Address, Allocation> allocations_of(const Graph& graph, bool alive) {
  std::map<Address, Allocation> some = graph.allocations;
  const Lock lock(driver().mutex);
  std::erase_if(some, [&](const auto& each) { return is_alive(each.first, each.second) != alive; });
  return some;
}

CUresult launch(Stream& stream, CUgraphExec handle) {
  std::shared_ptr<Graph> graph;
  {
    const Lock lock(driver().mutex);
    const auto found = driver().executables.find(handle);
    if (found == driver().executables.end()) return CUDA_ERROR_INVALID_HANDLE;
    graph = found->second;
  }
  for (const auto& [address, allocation] : allocations_of(*graph->source, false)) {
    allocate_again(address, allocation);
  }
  for (const Work& node : graph->nodes) {
    const CUresult verdict = submit(stream, node);
    if (verdict != CUDA_SUCCESS) return verdict;
  }
  return CUDA_SUCCESS;
}

template <class Handle>
std::shared_ptr<Graph> take_out(std::map<Handle, std::shared_ptr<Graph>>& from, Handle handle) {
  const Lock lock(driver().mutex);
  const auto found = from.find(handle);
  if (found == from.end()) return nullptr;
  auto graph = std::move(found->second);
  from.erase(found);
  return graph;
}

}  // namespace

void drop_graph(Graph& graph) {
  for (const auto& [address, allocation] : allocations_of(graph, true)) free_allocation(address);
  for (const auto& [address, allocation] : graph.allocations) give_from_graph(address, allocation);
  graph.allocations.clear();
}

}  // namespace standin

using namespace standin;

extern "C" {

CUresult CUDAAPI cuGraphCreate(CUgraph* out, unsigned int) {
  return entry("cuGraphCreate", [&] {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto graph = std::make_shared<Graph>();
    *out = reinterpret_cast<CUgraph>(graph.get());
    const Lock lock(driver().mutex);
    driver().graphs[*out] = std::move(graph);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphDestroy(CUgraph handle) {
  return entry("cuGraphDestroy", [&] {
    const auto graph = take_out(driver().graphs, handle);
    if (!graph) return CUDA_ERROR_INVALID_VALUE;
    if (graph.use_count() == 1) drop_graph(*graph);
    return CUDA_SUCCESS;
  });
}

/// Only how many nodes there are can be asked; they are no objects of their own here.
CUresult CUDAAPI cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  return entry("cuGraphGetNodes", [&] {
    const Lock lock(driver().mutex);
    const auto found = driver().graphs.find(handle);
    if (found == driver().graphs.end() || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (nodes != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    *count = found->second->nodes.size() + found->second->allocations.size();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph graph, unsigned long long) {
  return instantiate("cuGraphInstantiateWithFlags", out, graph);
}

CUresult CUDAAPI cuGraphInstantiate_v2(CUgraphExec* out, CUgraph graph, CUgraphNode*, char*,
                                       size_t) {
  return instantiate("cuGraphInstantiate_v2", out, graph);
}

CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec handle) {
  return entry("cuGraphExecDestroy", [&] {
    const auto executable = take_out(driver().executables, handle);
    if (!executable) return CUDA_ERROR_INVALID_VALUE;
    // The last to hold a graph that is destroyed gives its memory back.
    if (executable->source.use_count() == 1) drop_graph(*executable->source);
    return CUDA_SUCCESS;
  });
}

}  // extern "C"

STANDIN_STREAM_ENTRY(cuGraphLaunch, _ptsz, (CUgraphExec graph, CUstream stream),
                     return launch(on, graph);)
