#include "core/io/document.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/error.h"

namespace core {
namespace {

Document parse(std::string_view text) { return Document::parse_json(text, "config.json"); }

// The message of the InputError that `act` throws.
template <typename Act>
std::string complaint(Act act) {
  try {
    act();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no complaint";
}

std::string parse_complaint(std::string_view text) {
  const std::string message = complaint([&] { parse(text); });
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  return message;
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::string nested(std::size_t levels) {
  return std::string(levels, '[') + std::string(levels, ']');
}

TEST(Document, ReadsValuesOfEachKind) {
  const Document d = parse(R"({"i": 7, "r": 1.5, "b": true, "t": "x", "l": [1, 2], "n": null})");
  EXPECT_EQ(d.at("i").as_int(0, 10), 7);
  EXPECT_EQ(d.at("i").as_real(), 7.0);
  EXPECT_EQ(d.at("r").as_positive_real(), 1.5);
  EXPECT_TRUE(d.at("b").as_bool());
  EXPECT_EQ(d.at("t").as_text(), "x");
  ASSERT_EQ(d.at("l").as_list().size(), 2U);
  EXPECT_TRUE(d.at("n").is_null());
  EXPECT_EQ(d.find("absent"), nullptr);
}

TEST(Document, NamesFileKeyFoundAndExpected) {
  const Document d =
      parse(R"({"vocab_size": "many", "rope": {"factor": -1}, "l": [0, {"x": null}]})");
  EXPECT_EQ(complaint([&] { d.at("vocab_size").as_positive_int(); }),
            "config.json: vocab_size: expected a positive integer, found \"many\"");
  EXPECT_EQ(complaint([&] { d.at("rope").at("factor").as_positive_real(); }),
            "config.json: rope.factor: expected a positive number, found -1");
  EXPECT_EQ(complaint([&] { d.at("l").as_list()[1].at("x").as_bool(); }),
            "config.json: l[1].x: expected true or false, found null");
  EXPECT_EQ(complaint([&] { d.at("rope").at("kind"); }), "config.json: rope.kind: missing key");
  EXPECT_EQ(complaint([&] { d.at("l").at("kind"); }),
            "config.json: l: expected an object, found a list of 2");
  EXPECT_EQ(complaint([&] { d.at("l").as_list()[0].as_int(1, 9); }),
            "config.json: l[0]: expected an integer from 1 to 9, found 0");
}

TEST(Document, KeepsLines) {
  const Document d = parse("{\n  \"a\": 1,\n  \"b\": [\n    2\n  ,\n 3],\n \"c\": \"x\"\n}");
  EXPECT_EQ(d.line(), 1);
  EXPECT_EQ(d.at("a").line(), 2);
  EXPECT_EQ(d.at("b").line(), 3);
  EXPECT_EQ(d.at("b").as_list()[0].line(), 4);
  EXPECT_EQ(d.at("b").as_list()[1].line(), 6);
  EXPECT_EQ(d.at("c").line(), 7);
}

TEST(Document, RefusesBrokenFilesInOneLineWithTheirLine) {
  EXPECT_TRUE(contains(parse_complaint("{\n \"a\": 1,\n}"), "config.json: line 3: not valid JSON"));
  EXPECT_TRUE(contains(parse_complaint("{\n \"a\": tru\n}"), "line 2"));
  EXPECT_TRUE(contains(parse_complaint("{\"a\": 1} x"), "line 1"));
  EXPECT_TRUE(contains(parse_complaint("{\"a\": \n\"\xff\"}"), "line 2"));
  EXPECT_TRUE(
      contains(parse_complaint("{\"a\":\n\n 1e999}"), "line 3: number out of range: '1e999'"));
  EXPECT_TRUE(contains(parse_complaint("[\"never ends\n"), "line 1"));
  EXPECT_EQ(parse_complaint(""), "config.json: the file is empty");
  EXPECT_EQ(parse_complaint(" \n "), "config.json: the file is empty");
  EXPECT_TRUE(contains(parse_complaint("\xEF\xBB\xBF{}"), "byte order mark"));
}

TEST(Document, RefusesTwinKeysAndDeepNesting) {
  EXPECT_EQ(parse_complaint("{\"x\": {\"a\": 1,\n \"b\": 2,\n \"a\": 3}}"),
            "config.json: x.a: key stands twice, again on line 3");
  EXPECT_EQ(complaint([] { parse(nested(128)); }), "no complaint");
  EXPECT_TRUE(contains(parse_complaint(nested(129)), "nested deeper than 128 levels"));
  EXPECT_TRUE(contains(parse_complaint(nested(100000)), "nested deeper than 128 levels"));
}

TEST(Document, NoAccessorTakesInfinityOrNaN) {
  const Document d =
      parse(R"({"a": Infinity, "b": [-Infinity, NaN], "s": "NaN \" Infinity", "z": 1})");
  EXPECT_EQ(complaint([&] { d.at("a").as_positive_int(); }),
            "config.json: a: expected a positive integer, found Infinity");
  EXPECT_EQ(complaint([&] { d.at("a").as_real(); }),
            "config.json: a: expected a finite number, found Infinity");
  EXPECT_EQ(complaint([&] { d.at("b").as_list()[0].as_real(); }),
            "config.json: b[0]: expected a finite number, found -Infinity");
  EXPECT_EQ(complaint([&] { d.at("b").as_list()[1].as_positive_real(); }),
            "config.json: b[1]: expected a finite number, found NaN");
  EXPECT_EQ(d.at("s").as_text(), "NaN \" Infinity");
  EXPECT_EQ(d.at("z").as_int(0, 1), 1);
  EXPECT_TRUE(contains(parse_complaint("{NaN: 1}"), "a number in the place of a key"));
  EXPECT_TRUE(contains(parse_complaint("{\"a\": Inf}"), "not valid JSON"));
  EXPECT_TRUE(contains(parse_complaint("{\"a\": -NaN}"), "not valid JSON"));
}

TEST(Document, LargeIntegersDoNotWrap) {
  const Document d = parse(
      R"({"a": 9223372036854775807, "b": 9223372036854775808, "c": 1000000000000000019884624838656})");
  EXPECT_EQ(d.at("a").as_int(0, INT64_MAX), INT64_MAX);
  EXPECT_NE(complaint([&] { d.at("b").as_int(0, INT64_MAX); }), "no complaint");
  EXPECT_NE(complaint([&] { d.at("c").as_positive_int(); }), "no complaint");
  EXPECT_EQ(d.at("c").as_real(), 1000000000000000019884624838656.0);
}

TEST(Document, TellsWhatNobodyRead) {
  const Document d =
      parse(R"({"a": 1, "b": {"c": 2, "d": 3}, "e": [1, {"f": 2}], "g": null, "h": {"i": 1}})");
  d.at("a").as_int(0, 9);
  d.at("b").at("c").as_int(0, 9);
  d.at("e").mark_used();
  EXPECT_EQ(d.unused(), (std::vector<std::string>{"b.d", "h"}));
}

TEST(Document, RejectsUnknownKeysWithTheNearestOne) {
  const Document d = parse(R"({"memory_GiB": 80, "source": "x", "hbm_GBsp": 3350})");
  d.at("memory_GiB").as_real();
  EXPECT_EQ(complaint([&] {
              d.reject_unknown({"memory_GiB", "hbm_GBps", "source"});
            }),
            "config.json: hbm_GBsp: unknown key; did you mean hbm_GBps?");
}

TEST(Document, MessagesStayOneShortPrintableLine) {
  const std::string key = "a\\n\\u001b[31m" + std::string(5000, 'k');
  const Document d = parse("{\"" + key + "\": \"" + std::string(5000, 'v') + "\\n\"}");
  const std::string message = complaint([&] { d.as_object()[0].second.as_positive_int(); });
  EXPECT_LT(message.size(), 300U);
  EXPECT_EQ(message.find('\n'), std::string::npos);
  EXPECT_EQ(message.find('\x1b'), std::string::npos);
}

TEST(Document, NamesTheFileThatCannotBeRead) {
  EXPECT_EQ(complaint([] { Document::read_json_file("/nowhere/config.json"); }),
            "/nowhere/config.json: cannot be opened: No such file or directory");
  EXPECT_EQ(complaint([] { Document::read_json_file("/"); }),
            "/: is a folder, expected a JSON file");
}

TEST(NearestName, FindsMisspellingsOnly) {
  const std::vector<std::string> known = {"h100-sxm", "a100-sxm-80", "b200"};
  EXPECT_EQ(nearest_name("h100-smx", known), "h100-sxm");
  EXPECT_EQ(nearest_name("b20", known), "b200");
  EXPECT_EQ(nearest_name("tpu", known), std::nullopt);
  EXPECT_EQ(nearest_name("", known), std::nullopt);
}

}  // namespace
}  // namespace core
