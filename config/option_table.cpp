#include "config/option_table.hpp"

namespace fragshim {
namespace {

using enum OptionPlace;
using enum OptionKind;

constexpr std::string_view yes_no = "1 | 0 | on | off | true | false | yes | no";
constexpr std::string_view true_false = "True | False";
constexpr std::string_view any_size_mb = "a whole number of MB";

constexpr Option table[] = {
    // The environment. fragrun has a flag of the same name: FRAGSHIM_LOG_INTERVAL_MS and
    // --log-interval-ms.
    {"FRAGSHIM_CONF", environment, text, "", "key:value pairs separated by commas",
     "Allocator settings; where not set, PYTORCH_CUDA_ALLOC_CONF, else PYTORCH_ALLOC_CONF"},
    {"FRAGSHIM_MODE", environment, choice, "allocate", "allocate | observe | off",
     "allocate: serve the program's memory; observe: only watch and log; off: do nothing"},
    {"FRAGSHIM_TORCH", environment, choice, "async", "async | native",
     "async: PyTorch's tensors come from fragshim; native: PyTorch keeps its own allocator"},
    {"FRAGSHIM_IPC", environment, choice, "refuse", "refuse | dedicated",
     "Sharing cudaMalloc memory between processes: refuse it, or give every block a segment of its "
     "own"},
    {"FRAGSHIM_STRICT_FREE", environment, boolean, "off", yes_no,
     "cudaFree waits for the device, as it does without fragshim"},
    {"FRAGSHIM_LOG", environment, path, "fragshim-%h-%p.jsonl",
     "a file name (%p process, %h host, %r rank, %q{VAR} variable, %% percent) | off",
     "Where the log goes, one JSON object a line"},
    {"FRAGSHIM_LOG_INTERVAL_MS", environment, integer, "1000",
     "a whole number of milliseconds from 1 to 86400000", "Time between two samples in the log"},
    {"FRAGSHIM_TRACE", environment, path, "off",
     "on (fragshim-%h-%p.fstrace) | a file name as for FRAGSHIM_LOG | off",
     "Records every allocation and free, for fragrun replay and tune"},
    {"FRAGSHIM_QUIET", environment, boolean, "off", yes_no, "No summary on stderr at exit"},
    {"FRAGSHIM_VERBOSE", environment, boolean, "off", yes_no,
     "Says on stderr what fragshim does and why"},

    // Keys of the conf string that fragshim obeys.
    {"max_split_size_mb", conf, size_mb, "unlimited",
     "a whole number of MB, at least large_segment_size_mb (20)",
     "Blocks of this size or more are never split nor used for smaller requests"},
    {"max_non_split_rounding_mb", conf, size_mb, "20",
     "a whole number of MB, at least large_segment_size_mb (20)",
     "How much larger than the request a block may be that must not be split"},
    {"roundup_power2_divisions", conf, divisions, "0",
     "a power of two, or [MB:DIVISIONS,...,>:DIVISIONS] of powers of two (DIVISIONS may be 0)",
     "Rounds sizes up to the next of so many steps between powers of two; [K:D] is for K to 2K MB"},
    {"garbage_collection_threshold", conf, fraction, "0", "a number between 0 and 1, both excluded",
     "Share of the memory limit in use above which old cached blocks are given back"},
    {"expandable_segments", conf, boolean, "False", true_false,
     "PyTorch's growing segments; the stitch policy does as much without it"},
    {"large_segment_size_mb", conf, size_mb, "20", "a whole number of MB, at least 11",
     "Size of the segments that serve requests from 1 to 10 MB"},
    {"per_process_memory_fraction", conf, fraction, "1", "a number from 0 to 1",
     "Share of the GPU's memory this process may take"},
    {"backend", conf, choice, "unset", "native | cudaMallocAsync",
     "PyTorch's backend; native, given explicitly, means FRAGSHIM_TORCH=native"},
    {"policy", conf, choice, "auto", "auto | native | stitch",
     "stitch: virtual memory, for cudaMalloc too (no IPC then); native, auto: segments for "
     "cudaMalloc"},
    {"memory_limit_mb", conf, size_mb, "unlimited", "a whole number of MB, at least 1",
     "What this process may take from each GPU"},

    // Keys PyTorch knows that say nothing about device memory, or only about PyTorch's insides.
    {"pinned_use_background_threads", host_conf, boolean, "False", true_false,
     "Pinned host memory: handle events on a thread"},
    {"pinned_use_cuda_host_register", host_conf, boolean, "False", true_false,
     "Pinned host memory: cudaHostRegister in place of cudaHostAlloc"},
    {"pinned_use_hip_host_register", host_conf, boolean, "False", true_false,
     "The same by its ROCm name"},
    {"pinned_num_register_threads", host_conf, integer, "1", "a power of two, at most 128",
     "Pinned host memory: threads that register pages"},
    {"pinned_reserve_segment_size_mb", host_conf, size_mb, "0", "a whole number of MB, at least 1",
     "Pinned host memory: a segment reserved at start"},
    {"pinned_max_round_threshold_mb", host_conf, size_mb, "unlimited", any_size_mb,
     "Pinned host memory: larger requests are not rounded"},
    {"pinned_max_cached_size_mb", host_conf, size_mb, "unlimited", any_size_mb,
     "Pinned host memory: larger blocks are not cached"},
    {"pinned_free_catch_all", host_conf, boolean, "False", true_false,
     "Pinned host memory: errors while freeing are swallowed"},
    {"release_lock_on_cudamalloc", host_conf, boolean, "False", true_false,
     "PyTorch drops its lock around cudaMalloc; fragshim never holds one there"},
    {"release_lock_on_hipmalloc", host_conf, boolean, "False", true_false,
     "The same by its ROCm name"},
    {"graph_capture_record_stream_reuse", host_conf, boolean, "False", true_false,
     "PyTorch reuses blocks of other streams within a graph capture"},
    {"throw_on_cudamalloc_oom", host_conf, boolean, "False", true_false,
     "PyTorch refuses before cudaMalloc what would exceed the limit"},
    {"expandable_segments_reserve", host_conf, text, "1.125",
     "a share of the GPU's memory, or gigabytes with suffix G",
     "Address space of PyTorch's growing segments"},
    {"expandable_segments_reserve_by_class", host_conf, text, "[]", "[CLASS:SIZE,...]",
     "The same by class of stream"},

    // Set by the shim and fragrun for themselves and their children.
    {"FRAGSHIM_FLAGS", internal, text, "", "names separated by commas",
     "Which FRAGSHIM_* variables fragrun set from flags, without the prefix"},
    {"FRAGSHIM_TORCH_CONF", internal, text, "", "a conf string",
     "The conf string the user meant for PyTorch"},
    {"FRAGSHIM_TORCH_CONF_SOURCE", internal, text, "", "a variable's name",
     "The variable FRAGSHIM_TORCH_CONF was taken from"},
    {"FRAGSHIM_HANDED_CONF", internal, text, "", "a conf string",
     "The conf string that PyTorch was handed in its place"},
};

}  // namespace

std::span<const Option> option_table() { return table; }

const Option* find_option(std::string_view name) {
  for (const Option& option : table) {
    if (option.name == name) return &option;
  }
  return nullptr;
}

const Option* find_conf_key(std::string_view name) {
  const Option* option = find_option(name);
  return option && (option->place == conf || option->place == host_conf) ? option : nullptr;
}

std::optional<std::size_t> choice_index(std::string_view allowed, std::string_view value) {
  std::optional<std::size_t> found;
  std::size_t index = 0;
  for_each_choice(allowed, [&](std::string_view choice_name) {
    if (choice_name == value) found = index;
    ++index;
  });
  return found;
}

}  // namespace fragshim
