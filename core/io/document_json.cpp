// JSON files into Documents. The library's parser checks the grammar and the encoding and tells us
// of each value; we keep where it stands.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/io/document.h"
#include "core/io/document_node.h"

namespace core {
namespace {

constexpr std::size_t deepest = 128;
constexpr std::size_t largest_file = std::size_t{256} << 20;

using Kind = Document::Kind;
using Node = Document::Node;

// Walks over the text and tells how far the parser has read.
class ReadingPosition {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  ReadingPosition(const char* at, const char** seen) : at_(at), seen_(seen) {}
  const char& operator*() const { return *at_; }
  ReadingPosition& operator++() {
    *seen_ = ++at_;
    return *this;
  }
  ReadingPosition operator++(int) {
    const ReadingPosition before = *this;
    ++*this;
    return before;
  }
  bool operator==(const ReadingPosition& other) const { return at_ == other.at_; }
  bool operator!=(const ReadingPosition& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** seen_;
};

// A number that JSON does not know but Python writes, and where it stood.
struct NonFinite {
  std::size_t offset;
  double value;
};

// Puts a string of the same length in the place of each Infinity, -Infinity and NaN.
std::vector<NonFinite> take_non_finite(std::string& text) {
  struct Word {
    std::string_view word;
    double value;
  };
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr Word words[] = {{"-Infinity", -infinity},
                            {"Infinity", infinity},
                            {"NaN", std::numeric_limits<double>::quiet_NaN()}};
  std::vector<NonFinite> found;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (in_string) {
      in_string = text[i] != '"';
      i += text[i] == '\\' ? 1U : 0U;
    } else if (text[i] == '"') {
      in_string = true;
    } else if (text[i] == '-' || text[i] == 'I' || text[i] == 'N') {
      for (const Word& w : words) {
        if (text.compare(i, w.word.size(), w.word) == 0) {
          found.push_back({i, w.value});
          text[i] = '"';
          i += w.word.size() - 1;
          text[i] = '"';
          break;
        }
      }
    }
  }
  return found;
}

// Builds the tree from the parser's events (the names of the members are the library's).
class Builder {
 public:
  Builder(std::string_view text,
          const char* const* seen,
          std::vector<NonFinite> non_finite,
          const std::string& name)
      : text_(text), seen_(seen), non_finite_(std::move(non_finite)), name_(name) {
    path_ = std::make_shared<DocumentPath>(DocumentPath{nullptr, name, std::nullopt});
  }

  bool null() { return value(Kind::null, 0); }
  bool boolean(bool v) {
    return value(Kind::boolean, 0, [v](Node& n) { n.boolean = v; });
  }
  bool number_integer(std::int64_t v) {
    return value(Kind::integer, 1, [v](Node& n) { n.integer = v; });
  }
  bool number_unsigned(std::uint64_t v) {
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return v <= most ? number_integer(static_cast<std::int64_t>(v))
                     : number_real(static_cast<double>(v), 1);
  }
  bool number_float(double v, const std::string&) { return number_real(v, 1); }
  bool string(std::string& v) {
    if (const NonFinite* number = non_finite(v)) {
      return number_real(number->value, 0);
    }
    return value(Kind::text, 0, [&v](Node& n) { n.text = std::move(v); });
  }
  bool binary(nlohmann::json::binary_t&) { return false; }
  bool start_object(std::size_t) { return open(Kind::object); }
  bool start_array(std::size_t) { return open(Kind::list); }
  bool key(std::string& k) {
    if (non_finite(k) != nullptr) {
      throw InputError(fmt::format("{}: line {}: not valid JSON: a number in the place of a key",
                                   printable(name_, 300),
                                   line_at(offset())));
    }
    open_.back().key = std::move(k);
    return true;
  }
  bool end_object() {
    refuse_twin_keys(*open_.back().node);
    return close();
  }
  bool end_array() { return close(); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& e) {
    throw InputError(fmt::format("{}: line {}: {}",
                                 printable(name_, 300),
                                 line_at(position == 0 ? 0 : position - 1),
                                 reason(e.what())));
  }

  Document root() const { return root_; }

 private:
  struct Open {
    std::shared_ptr<Node> node;
    std::string key;
  };

  std::size_t offset() const { return static_cast<std::size_t>(*seen_ - text_.data()); }

  // Line of an offset; offsets only grow, so that the whole text is counted once.
  int line_at(std::size_t to) {
    to = std::min(to, text_.size());
    if (to > counted_) {
      line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(counted_),
                                           text_.begin() + static_cast<std::ptrdiff_t>(to),
                                           '\n'));
      counted_ = to;
    }
    return line_;
  }

  // The number in whose place the string stands that was just read, or null.
  const NonFinite* non_finite(const std::string& v) const {
    const std::size_t start = offset() - std::min(offset(), v.size() + 2);
    const auto found = std::lower_bound(
        non_finite_.begin(), non_finite_.end(), start, [](const NonFinite& n, std::size_t at) {
          return n.offset < at;
        });
    return found != non_finite_.end() && found->offset == start ? &*found : nullptr;
  }

  bool number_real(double v, std::size_t ahead) {
    return value(Kind::real, ahead, [v](Node& n) { n.real = v; });
  }

  std::shared_ptr<const DocumentPath> path_of_next() const {
    if (open_.empty()) {
      return path_;
    }
    const Open& parent = open_.back();
    if (parent.node->kind == Kind::list) {
      return std::make_shared<DocumentPath>(
          DocumentPath{parent.node->path, {}, parent.node->list.size()});
    }
    return std::make_shared<DocumentPath>(
        DocumentPath{parent.node->path, parent.key, std::nullopt});
  }

  // `ahead`: characters that the parser has read beyond the value (one, to see a number end).
  std::shared_ptr<Node> add(Kind kind, std::size_t ahead) {
    auto node = std::make_shared<Node>();
    node->kind = kind;
    node->line = line_at(offset() - ahead);
    node->path = path_of_next();
    if (open_.empty()) {
      root_ = Document(node);
    } else if (Open& parent = open_.back(); parent.node->kind == Kind::list) {
      parent.node->list.emplace_back(node);
    } else {
      parent.node->members.emplace_back(std::move(parent.key), Document(node));
    }
    return node;
  }

  template <typename Set>
  bool value(Kind kind, std::size_t ahead, Set set) {
    set(*add(kind, ahead));
    return true;
  }
  bool value(Kind kind, std::size_t ahead) {
    return value(kind, ahead, [](Node&) {});
  }

  bool open(Kind kind) {
    if (open_.size() >= deepest) {
      throw InputError(fmt::format("{}: line {}: nested deeper than {} levels",
                                   printable(name_, 300),
                                   line_at(offset()),
                                   deepest));
    }
    open_.push_back({add(kind, 0), {}});
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  void refuse_twin_keys(const Node& object) const {
    std::vector<std::pair<std::string_view, std::size_t>> keys;
    for (const auto& [key, member] : object.members) {
      keys.emplace_back(key, keys.size());
    }
    std::sort(keys.begin(), keys.end());
    for (std::size_t i = 1; i < keys.size(); ++i) {
      if (keys[i].first == keys[i - 1].first) {
        const Document& second = object.members[keys[i].second].second;
        throw InputError(
            fmt::format("{}: key stands twice, again on line {}", second.where(), second.line()));
      }
    }
  }

  // The library's words without its error number, its own position and the text it last read.
  static std::string reason(std::string_view what) {
    if (what.find("number overflow") != std::string_view::npos) {
      return "number out of range: " + printable(what.substr(what.rfind("parsing") + 8), 40);
    }
    std::string words(what);
    for (const std::string_view before : {"parsing value - ",
                                          "parsing object key - ",
                                          "parsing object separator - ",
                                          "parsing object - ",
                                          "parsing array - ",
                                          "parsing "}) {
      if (const auto at = words.find(before); at != std::string::npos) {
        words.erase(0, at + before.size());
        break;
      }
    }
    if (const auto last = words.find("; last read"); last != std::string::npos) {
      const auto expected = words.rfind("; expected");
      words.erase(
          last,
          expected == std::string::npos || expected < last ? std::string::npos : expected - last);
    }
    return "not valid JSON: " + printable(words, 160);
  }

  std::string_view text_;
  const char* const* seen_;
  std::vector<NonFinite> non_finite_;
  const std::string& name_;
  std::shared_ptr<const DocumentPath> path_;
  std::vector<Open> open_;
  Document root_;
  std::size_t counted_ = 0;
  int line_ = 1;
};

void refuse_at_first_sight(std::string_view text, std::string_view name) {
  const auto refuse = [&](std::string_view why) {
    throw InputError(fmt::format("{}: {}", printable(name, 300), why));
  };
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    refuse("the file is empty");
  }
  for (const std::string_view mark : {"\xEF\xBB\xBF", "\xFE\xFF", "\xFF\xFE"}) {
    if (text.starts_with(mark)) {
      refuse("line 1: starts with a byte order mark; expected UTF-8 without one");
    }
  }
}

}  // namespace

Document Document::parse_json(std::string_view text, std::string name) {
  refuse_at_first_sight(text, name);
  std::string copy(text);
  std::vector<NonFinite> non_finite = take_non_finite(copy);
  const char* seen = copy.data();
  const char* end = copy.data() + copy.size();
  Builder builder(copy, &seen, std::move(non_finite), name);
  nlohmann::json::sax_parse(
      ReadingPosition(copy.data(), &seen), ReadingPosition(end, &seen), &builder);
  return builder.root();
}

Document Document::read_json_file(const std::filesystem::path& file) {
  const std::string name = file.string();
  const auto refuse = [&](std::string_view why) {
    throw InputError(fmt::format("{}: {}", printable(name, 300), why));
  };
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) {
    refuse("is a folder, expected a JSON file");
  }
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  if (!in) {
    refuse(fmt::format("cannot be opened: {}", std::strerror(errno)));
  }
  std::string text;
  std::vector<char> part(std::size_t{1} << 16);
  while (in.read(part.data(), static_cast<std::streamsize>(part.size())) || in.gcount() > 0) {
    text.append(part.data(), static_cast<std::size_t>(in.gcount()));
    if (text.size() > largest_file) {
      refuse(fmt::format("larger than {} MiB", largest_file >> 20));
    }
  }
  return parse_json(text, name);
}

}  // namespace core
