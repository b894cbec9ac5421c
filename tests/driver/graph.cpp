// Graphs, as far as captures make them: instantiated, launched, destroyed.
#include "tests/driver/call.hpp"
#include "tests/driver/capture.hpp"

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

CUresult launch(Stream& stream, CUgraphExec handle) {
  std::shared_ptr<Graph> graph;
  {
    const Lock lock(driver().mutex);
    const auto found = driver().executables.find(handle);
    if (found == driver().executables.end()) return CUDA_ERROR_INVALID_HANDLE;
    graph = found->second;
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
