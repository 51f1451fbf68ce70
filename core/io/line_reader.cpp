#include "core/io/line_reader.h"

#include <fmt/format.h>

#include <sstream>

#include "core/error.h"
#include "core/io/document.h"

namespace core {

namespace {

constexpr std::size_t block = std::size_t{1} << 16;
constexpr std::size_t longest_line = std::size_t{1} << 24;

// How a file begins that is no text, and what it is.
constexpr std::pair<std::string_view, std::string_view> not_text[] = {
    {"\xff\xfe", "in UTF-16, expected UTF-8 (iconv -f UTF-16 -t UTF-8)"},
    {"\xfe\xff", "in UTF-16, expected UTF-8 (iconv -f UTF-16 -t UTF-8)"},
    {"\x1f\x8b", "packed by gzip, expected plain text (gunzip)"},
    {"PK\x03\x04", "a zip archive or a spreadsheet, expected plain text (CSV)"},
};

}  // namespace

LineReader LineReader::file(const std::filesystem::path& path, LineEnds ends) {
  const auto name = printable(path.string(), 300);
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    throw InputError(fmt::format("{}: is a folder, expected a file", name));
  auto in = std::make_unique<std::ifstream>(path, std::ios::binary);
  if (!*in) throw InputError(fmt::format("{}: cannot be opened, expected a file", name));
  return {std::move(in), name, ends};
}

LineReader LineReader::text(std::string text, std::string name, LineEnds ends) {
  return {std::make_unique<std::istringstream>(std::move(text)), std::move(name), ends};
}

LineReader::LineReader(std::unique_ptr<std::istream> in, std::string name, LineEnds ends)
    : in_(std::move(in)), name_(std::move(name)), ends_(ends == LineEnds::lf ? "\n" : "\r\n") {
  fill();
}

void LineReader::check_start() {
  started_ = true;
  for (const auto& [start, what] : not_text) {
    if (buffer_.starts_with(start)) throw InputError(fmt::format("{}: is {}", name_, what));
  }
  if (buffer_.starts_with("\xef\xbb\xbf")) begin_ = 3;
  if (buffer_.find_first_not_of(" \t\r\n", begin_) == std::string::npos && buffer_.size() < block)
    throw InputError(fmt::format("{}: is empty, expected a table or a log of a run", name_));
  if (buffer_.find('\n') == std::string::npos && buffer_.find('\r') != std::string::npos)
    ends_ = "\r";
}

// Puts a block behind what is left of the last one; false at the end.
bool LineReader::fill() {
  buffer_.erase(0, begin_);
  begin_ = 0;
  const auto old = buffer_.size();
  if (old > longest_line) {
    throw InputError(fmt::format(
        "{}: line {}: is longer than 16 MiB, expected lines of text", name_, number_ + 1));
  }
  buffer_.resize(old + block);
  in_->read(buffer_.data() + old, static_cast<std::streamsize>(block));
  buffer_.resize(old + static_cast<std::size_t>(in_->gcount()));
  if (!started_) check_start();
  if (buffer_.find('\0', old) != std::string::npos)
    throw InputError(fmt::format("{}: has a zero byte, expected text", name_));
  return buffer_.size() > old;
}

bool LineReader::next(std::string_view& line) {
  std::size_t seen = 0;
  std::size_t end;
  while ((end = buffer_.find_first_of(ends_, begin_ + seen)) == std::string::npos) {
    seen = buffer_.size() - begin_;
    if (!fill()) {
      if (seen == 0) return false;
      end = buffer_.size();
      break;
    }
  }
  line = std::string_view(buffer_).substr(begin_, end - begin_);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  begin_ = std::min(end + 1, buffer_.size());
  ++number_;
  return true;
}

}  // namespace core
