// Tables whose rows may not belong into one fit, and other tables that people have.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <sstream>
#include <string>

#include "core/error.h"
#include "core/logs/observations.h"
#include "core/logs/variables.h"
#include "tests/core/logs/reading.h"

namespace core {
namespace {

Observations read(std::string text, Strings wanted = {"N", "D", "L"}) {
  ObservationOptions options;
  options.wanted = std::move(wanted);
  return parse_observations(std::move(text), "runs.csv", options);
}

// Six rows of two sizes, with a column of its own cells.
Observations with_column(const std::string& name, const Strings& cells) {
  std::string text = "params,tokens,loss," + name + "\n";
  for (std::size_t i = 0; i < cells.size(); ++i)
    text += std::string(i % 2 == 0 ? "1e8," : "1e9,") + std::to_string(i + 1) + "e9,2.5," +
            cells[i] + "\n";
  return read(text);
}

TEST(Mixture, IsOfTextsThatDifferAmongRows) {
  const auto mixed = with_column("tokenizer", {"gpt2", "gpt2", "llama", "llama", "gpt2", "llama"});
  ASSERT_EQ(mixed.warnings.size(), 1u);
  EXPECT_NE(mixed.warnings[0].find("tokenizer (gpt2, llama)"), std::string::npos);
  EXPECT_NE(mixed.warnings[0].find("--where \"tokenizer=llama\""), std::string::npos);
  EXPECT_EQ(mixed.size(), 6u);
}

TEST(Mixture, IsNotOfNamesOfRunsOrSizes) {
  EXPECT_TRUE(with_column("note", {"a", "b", "c", "d", "e", "f"}).warnings.empty());
  EXPECT_TRUE(with_column("shape", {"s", "m", "s", "m", "s", "m"}).warnings.empty());
  EXPECT_TRUE(with_column("corpus", {"c4", "c4", "c4", "c4", "c4", "c4"}).warnings.empty());
}

TEST(Mixture, CountsRowsThatTheTableMarks) {
  const auto marked =
      with_column("qc_outlier", {"False", "True", "False", "False", "True", "False"});
  ASSERT_EQ(marked.warnings.size(), 1u);
  EXPECT_NE(marked.warnings[0].find("marks 2 of 6 rows"), std::string::npos);
  EXPECT_NE(marked.warnings[0].find("--where \"qc_outlier=False\""), std::string::npos);
  EXPECT_TRUE(with_column("flag_x", {"0", "0", "0", "0", "0", "0"}).warnings.empty());
}

TEST(Tables, AreReadFromStandardInput) {
  std::istringstream in("params,tokens,loss\n1e8,1e10,2.5\n");
  auto* const before = std::cin.rdbuf(in.rdbuf());
  ObservationOptions options;
  options.wanted = {"N", "D", "L"};
  const auto read = read_observations({"-"}, options);
  std::cin.rdbuf(before);
  EXPECT_EQ(read.rows, Strings{"standard input line 2"});
}

TEST(Tables, WithAColumnTwiceAreRefusedWhereItIsWanted) {
  try {
    read("params,tokens,loss,loss\n1e8,1e10,2.5,2.6\n");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("column \"loss\" stands 2 times"), std::string::npos);
  }
  const auto other = read("params,tokens,loss,x,x\n1e8,1e10,2.5,1,2\n");
  ASSERT_NE(other.find("x"), nullptr);
  EXPECT_EQ(*other.find("x"), std::vector<double>{2.0});
}

TEST(Tables, GiveTokensAStepFromTokensAndSteps) {
  const auto read_one = read("params,tokens,lr,iters\n1e8,1e9,1e-3,1000\n", {"D", "B"});
  EXPECT_EQ(*read_one.find("B"), std::vector<double>{1e6});
}

TEST(Columns, OfQuantisationAndOfBestSizesAreKnown) {
  for (const auto name : {"group", "group_size"})
    EXPECT_EQ(meaning_of(name)->variable, "G") << name;
  for (const auto name : {"delta_loss", "loss_gap", "gap"})
    EXPECT_EQ(meaning_of(name)->variable, "delta") << name;
  EXPECT_EQ(meaning_of("n_star")->variable, "N");
  EXPECT_EQ(meaning_of("tokens_star")->variable, "D");
}

}  // namespace
}  // namespace core
