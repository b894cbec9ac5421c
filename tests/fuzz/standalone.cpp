// Runs a fuzz target without libFuzzer: every file of a corpus, then mutations of them, the same
// ones at every run.
//   fuzz_NAME CORPUS_FOLDER [MUTATIONS]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Random = std::mt19937_64;

void run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

std::vector<std::string> read_corpus(const char* folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> corpus;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

/// One small change: a byte, a piece taken out, a piece doubled, or a piece of another input.
void mutate(std::string* input, const std::string& other, Random& random) {
  const auto below = [&random](std::size_t bound) { return bound == 0 ? 0 : random() % bound; };
  const std::size_t at = below(input->size());
  const std::size_t length = 1 + below(32);
  switch (random() % 5) {
    case 0:
      if (!input->empty()) (*input)[at] = static_cast<char>(random());
      break;
    case 1:
      if (!input->empty()) (*input)[at] = static_cast<char>((*input)[at] ^ 1 << random() % 8);
      break;
    case 2:
      if (!input->empty()) input->erase(at, length);
      break;
    case 3:
      input->insert(at, input->substr(below(input->size()), length));
      break;
    default:
      input->insert(at, other.substr(below(other.size()), length));
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: %s CORPUS_FOLDER [MUTATIONS]\n", arguments[0]);
    return 2;
  }
  const std::vector<std::string> corpus = read_corpus(arguments[1]);
  if (corpus.empty()) {
    std::fprintf(stderr, "%s: no corpus in %s\n", arguments[0], arguments[1]);
    return 2;
  }
  for (const std::string& input : corpus) run(input);
  const long mutations = count > 2 ? std::atol(arguments[2]) : 5000;
  Random random(1);
  for (long i = 0; i < mutations; ++i) {
    std::string input = corpus[random() % corpus.size()];
    const std::size_t changes = 1 + random() % 8;
    for (std::size_t c = 0; c < changes; ++c) {
      mutate(&input, corpus[random() % corpus.size()], random);
    }
    run(input);
  }
  std::printf("%zu inputs, %ld mutations\n", corpus.size(), mutations);
  return 0;
}
