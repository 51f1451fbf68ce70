#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>

namespace core {

// Where lines end: in LF or CR LF; or in each CR, too, as progress bars write themselves anew.
enum class LineEnds { lf, cr_too };

// The lines of a text from outside, read in blocks of 64 KiB so that a file of any length takes
// little memory. A text that has CR but no LF in its first block has lines that end in CR;
// a byte-order mark of UTF-8 is left out.
//
// Throws InputError naming the file: cannot be opened, is empty, is in UTF-16, is packed (gzip,
// zip), has a zero byte, or has a line longer than 16 MiB.
class LineReader {
 public:
  static LineReader file(const std::filesystem::path& path, LineEnds ends = LineEnds::lf);
  static LineReader text(std::string text, std::string name, LineEnds ends = LineEnds::lf);

  // The next line without its end, valid until the next call; false at the end of the text.
  bool next(std::string_view& line);
  // Of the line that `next` gave last, from 1.
  std::int64_t line_number() const { return number_; }
  const std::string& name() const { return name_; }

 private:
  LineReader(std::unique_ptr<std::istream> in, std::string name, LineEnds ends);
  bool fill();
  void check_start();

  std::unique_ptr<std::istream> in_;
  std::string name_;
  std::string buffer_;
  std::size_t begin_ = 0;  // of what `next` has not given yet
  std::string_view ends_ = "\n";
  bool started_ = false;
  std::int64_t number_ = 0;
};

}  // namespace core
