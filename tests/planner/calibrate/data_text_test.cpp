#include "planner/calibrate/data_text.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace {

using planner::with_figure;

constexpr std::string_view text = R"({
  "title": "a \"quoted\" title, {not} an object",
  "gemm": {
    "rate": {"value": 0.5, "source": "a rate: {value}", "checked": "estimate"},
    "list": {"values": [1, 2], "source": "two", "checked": "seen"}
  },
  "rate": {"value": 7, "source": "another", "checked": "seen"}
}
)";

TEST(DataText, ReplacesAFigureAndNothingElse) {
  EXPECT_EQ(with_figure(text, "f", "gemm.rate", {0.75}, "a \"fit\""), R"({
  "title": "a \"quoted\" title, {not} an object",
  "gemm": {
    "rate": {"value": 0.75, "source": "a \"fit\"", "checked": "derived"},
    "list": {"values": [1, 2], "source": "two", "checked": "seen"}
  },
  "rate": {"value": 7, "source": "another", "checked": "seen"}
}
)");
}

TEST(DataText, ReplacesListsAndMembersOfTheRoot) {
  const auto list = with_figure(text, "f", "gemm.list", {1.5, 2.5}, "s");
  EXPECT_NE(list.find(R"("list": {"values": [1.5, 2.5], "source": "s", "checked": "derived"})"),
            std::string::npos);
  const auto root = with_figure(text, "f", "rate", {8}, "s");
  EXPECT_NE(root.find(R"(  "rate": {"value": 8, "source": "s", "checked": "derived"})"
                      "\n}\n"),
            std::string::npos);
}

TEST(DataText, GivesTheSameTextTwice) {
  const auto once = with_figure(text, "f", "gemm.rate", {0.75}, "fit");
  EXPECT_EQ(with_figure(once, "f", "gemm.rate", {0.75}, "fit"), once);
}

TEST(DataText, NamesAKeyThatIsNotThere) {
  try {
    with_figure(text, "curves/x.json", "gemm.other", {1}, "s");
    FAIL();
  } catch (const core::InputError& error) {
    EXPECT_STREQ(error.what(), "curves/x.json: gemm.other: expected a figure");
  }
}

}  // namespace
