// Options that several commands take: which part of a recording, and how to replay it.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "core/analyze/replay_heap.hpp"

namespace fragshim::fragtool {

/// The options' values as given.
struct ReplayArguments {
  std::string conf;
  std::string policy;
  std::string capacity;
  std::optional<int> device;
};

/// --policy, --conf, --capacity and --device.
void add_replay_options(CLI::App* command, ReplayArguments* arguments);
/// --capacity alone.
void add_capacity_option(CLI::App* command, std::string* capacity);
/// --device alone: whose events of a snapshot are wanted.
void add_device_option(CLI::App* command, std::optional<int>* device);

/// Reads the values; false with a line on stderr for every one that is wrong.
bool read_options(const ReplayArguments& arguments, ReplayOptions* options);
/// Reads --capacity alone; empty: no limit.
bool read_capacity(const std::string& text, Bytes* capacity);

}  // namespace fragshim::fragtool
