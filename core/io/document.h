#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace core {

// One value of a file from outside. Files of every format (JSON now; YAML, TOML and flags later)
// become one tree of these; loaders read only this, and what nobody read becomes a warning.
//
// Every accessor marks the value as used. Every complaint is one line that names the file, the path of
// the key, what was found and what was expected:
//   config.json: vocab_size: expected a positive integer, found "many"
class Document {
 public:
  enum class Kind { null, boolean, integer, real, text, list, object };

  // Reads a file. Throws InputError when it cannot be opened or is not valid JSON (with the line), when
  // a key stands twice in one object, or when it nests deeper than 128 levels. Infinity and NaN, which
  // Python writes, become reals that as_real and its kin refuse.
  static Document read_json_file(const std::filesystem::path& file);
  static Document parse_json(std::string_view text, std::string name);

  Kind kind() const;
  bool is_null() const { return kind() == Kind::null; }
  bool is_list() const { return kind() == Kind::list; }
  bool is_object() const { return kind() == Kind::object; }
  bool is_number() const { return kind() == Kind::integer || kind() == Kind::real; }

  // Members of an object. `find` gives null for a missing key; a key that is present with JSON null is
  // returned (kind null). `at` throws InputError "missing key".
  const Document* find(std::string_view key) const;
  const Document& at(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }

  // Values. Throw InputError unless the kind (and, for integers, the range) is as asked for. Reals must be finite.
  std::int64_t as_int(std::int64_t low, std::int64_t high) const;
  std::int64_t as_positive_int() const;   // 1 .. 2^40
  double as_real() const;                 // integers are accepted
  double as_positive_real() const;
  bool as_bool() const;
  const std::string& as_text() const;
  const std::vector<Document>& as_list() const;
  const std::vector<std::pair<std::string, Document>>& as_object() const;

  // Where this value stands, for messages: "config.json: rope_scaling.factor".
  std::string where() const;
  int line() const;  // 1-based; 0 where unknown
  // Throws InputError "<where>: expected <expected>, found <this value>".
  [[noreturn]] void complain(std::string_view expected) const;

  // Paths of all members nobody read, in file order; children of a member read whole count as read.
  std::vector<std::string> unused() const;
  // Throws InputError naming the first unread key and, where one is near, the known spelling. For our
  // own data files, where unknown keys are errors. `known` is the list of keys the loader understands.
  void reject_unknown(const std::vector<std::string_view>& known) const;
  void mark_used() const;

  struct Node;  // core/io/document_node.h, for the readers of a format
  Document() = default;  // holds nothing; only good for assigning to
  explicit Document(std::shared_ptr<const Node> node) : node_(std::move(node)) {}

 private:
  std::shared_ptr<const Node> node_;
};

// The bytes of a text from outside as they may stand in a message: one line, control characters
// escaped, cut after `limit` bytes.
std::string printable(std::string_view text, std::size_t limit = 60);

// The name among `known` that is nearest to `name` by edit distance (Damerau-Levenshtein), when it is
// near enough to be a misspelling; else nothing.
std::optional<std::string> nearest_name(std::string_view name,
                                        const std::vector<std::string>& known);

}  // namespace core
