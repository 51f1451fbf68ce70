#include "core/io/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/io/document_node.h"

namespace core {
namespace {

constexpr std::int64_t largest_count = std::int64_t{1} << 40;

// "rope_scaling.factor", "layers[3]"; nothing for the root.
std::string path_text(const DocumentPath& path) {
  std::vector<const DocumentPath*> way;
  for (const DocumentPath* p = &path; p->parent; p = p->parent.get()) {
    way.push_back(p);
  }
  std::string text;
  for (auto p = way.rbegin(); p != way.rend(); ++p) {
    if ((*p)->index) {
      text += fmt::format("[{}]", *(*p)->index);
    } else {
      text += (text.empty() ? "" : ".") + printable((*p)->key);
    }
  }
  return text;
}

const std::string& file_name(const DocumentPath& path) {
  const DocumentPath* p = &path;
  while (p->parent) {
    p = p->parent.get();
  }
  return p->key;
}

std::string located(const DocumentPath& path, std::string_view member = {}) {
  std::string keys = path_text(path);
  if (!member.empty()) {
    keys += (keys.empty() ? "" : ".") + printable(member);
  }
  const std::string file = printable(file_name(path), 300);
  return keys.empty() ? file : fmt::format("{}: {}", file, keys);
}

std::string real_text(double value) {
  if (std::isnan(value)) {
    return "NaN";
  }
  if (std::isinf(value)) {
    return value > 0 ? "Infinity" : "-Infinity";
  }
  return fmt::format("{}", value);
}

std::string found_text(const Document::Node& node) {
  switch (node.kind) {
    case Document::Kind::null:
      return "null";
    case Document::Kind::boolean:
      return node.boolean ? "true" : "false";
    case Document::Kind::integer:
      return fmt::format("{}", node.integer);
    case Document::Kind::real:
      return real_text(node.real);
    case Document::Kind::text:
      return fmt::format("\"{}\"", printable(node.text));
    case Document::Kind::list:
      return fmt::format("a list of {}", node.list.size());
    case Document::Kind::object:
      return "an object";
  }
  return "something else";
}

std::string range_text(std::int64_t low, std::int64_t high) {
  return fmt::format("an integer from {} to {}", low, high);
}

bool is_container(const Document::Node& node) {
  return node.kind == Document::Kind::list || node.kind == Document::Kind::object;
}

void mark_whole(const Document::Node& node) { node.whole = true; }

}  // namespace

Document::Kind Document::kind() const {
  CORE_ASSERT(node_);
  return node_->kind;
}

const Document* Document::find(std::string_view key) const {
  if (kind() != Kind::object) {
    complain("an object");
  }
  node_->used = true;
  const auto member = std::find_if(
      node_->members.begin(), node_->members.end(), [&](const auto& m) { return m.first == key; });
  return member == node_->members.end() ? nullptr : &member->second;
}

const Document& Document::at(std::string_view key) const {
  const Document* member = find(key);
  if (member == nullptr) {
    throw InputError(fmt::format("{}: missing key", located(*node_->path, key)));
  }
  return *member;
}

std::int64_t Document::as_int(std::int64_t low, std::int64_t high) const {
  if (kind() != Kind::integer || node_->integer < low || node_->integer > high) {
    complain(range_text(low, high));
  }
  node_->used = true;
  return node_->integer;
}

std::int64_t Document::as_positive_int() const {
  if (kind() != Kind::integer || node_->integer < 1) {
    complain("a positive integer");
  }
  return as_int(1, largest_count);
}

double Document::as_real() const {
  if (kind() == Kind::real && std::isfinite(node_->real)) {
    node_->used = true;
    return node_->real;
  }
  if (kind() != Kind::integer) {
    complain("a finite number");
  }
  node_->used = true;
  return static_cast<double>(node_->integer);
}

double Document::as_positive_real() const {
  if (!is_number()) {
    complain("a positive number");
  }
  const double value = as_real();
  if (value <= 0.0) {
    complain("a positive number");
  }
  return value;
}

bool Document::as_bool() const {
  if (kind() != Kind::boolean) {
    complain("true or false");
  }
  node_->used = true;
  return node_->boolean;
}

const std::string& Document::as_text() const {
  if (kind() != Kind::text) {
    complain("a text");
  }
  node_->used = true;
  return node_->text;
}

const std::vector<Document>& Document::as_list() const {
  if (kind() != Kind::list) {
    complain("a list");
  }
  node_->used = true;
  return node_->list;
}

const std::vector<std::pair<std::string, Document>>& Document::as_object() const {
  if (kind() != Kind::object) {
    complain("an object");
  }
  node_->used = true;
  return node_->members;
}

std::string Document::where() const {
  CORE_ASSERT(node_);
  return located(*node_->path);
}

int Document::line() const {
  CORE_ASSERT(node_);
  return node_->line;
}

void Document::complain(std::string_view expected) const {
  throw InputError(fmt::format("{}: expected {}, found {}", where(), expected, found_text(*node_)));
}

void Document::mark_used() const {
  CORE_ASSERT(node_);
  mark_whole(*node_);
}

// A null says nothing, so that nobody has to read it.
std::vector<std::string> Document::unused() const {
  CORE_ASSERT(node_);
  std::vector<std::string> paths;
  const auto visit = [&paths](const auto& self, const Node& node) -> void {
    if (node.whole || node.kind == Kind::null) {
      return;
    }
    if (!node.used) {
      paths.push_back(path_text(*node.path));
    } else if (is_container(node)) {
      for (const Document& element : node.list) {
        self(self, *element.node_);
      }
      for (const auto& [key, member] : node.members) {
        self(self, *member.node_);
      }
    }
  };
  node_->used = true;
  visit(visit, *node_);
  return paths;
}

void Document::reject_unknown(const std::vector<std::string_view>& known) const {
  for (const std::string& path : unused()) {
    const std::string key = path.substr(path.rfind('.') + 1);
    if (std::find(known.begin(), known.end(), key) != known.end()) {
      continue;
    }
    const std::vector<std::string> names(known.begin(), known.end());
    const auto near = nearest_name(key, names);
    throw InputError(fmt::format("{}: {}: unknown key{}",
                                 printable(file_name(*node_->path), 300),
                                 path,
                                 near ? fmt::format("; did you mean {}?", *near) : ""));
  }
}

std::string printable(std::string_view text, std::size_t limit) {
  std::string out;
  for (const char c : text) {
    if (out.size() >= limit) {
      // Not within a character of several bytes.
      while (!out.empty() && (static_cast<unsigned char>(out.back()) & 0xC0U) == 0x80U) {
        out.pop_back();
      }
      if (!out.empty() && static_cast<unsigned char>(out.back()) >= 0xC0U) {
        out.pop_back();
      }
      return out + "...";
    }
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace core
