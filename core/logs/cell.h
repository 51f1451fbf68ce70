#pragma once

#include <optional>
#include <string_view>

namespace core {

// What a cell of a table, or a value of a log, holds.
struct Cell {
  enum class Kind {
    blank,      // nothing, -, NA, null, None
    number,     // a finite one
    no_number,  // NaN or an infinity: what a run prints that has diverged
    text,
  } kind = Kind::blank;
  double value = 0.0;  // NaN unless a number
};

// Whether a lone comma is a decimal comma ("2,31", in tables between semicolons) or stands between
// thousands ("1,234").
enum class Commas { thousands, decimal };

// Reads a cell: blanks around it are ignored; 1,234,567, 1.234.567,8 (where both stand, the last is
// the decimal one), 1_000, 20e9, and a size after the number (1.3B = 1.3e9; K M B G T, "bn").
Cell read_cell(std::string_view text, Commas commas = Commas::thousands);

// Whether two texts are the same but for the case of ASCII letters.
bool same_word(std::string_view a, std::string_view b);

// The factor of a size that stands alone: K 1e3, M 1e6, B G bn 1e9, T 1e12, in either case.
std::optional<double> size_factor(std::string_view text);

}  // namespace core
