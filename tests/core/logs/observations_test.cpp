// Tables with one row a run: which columns are which variables, what is derived, and what is left
// out.
#include "core/logs/observations.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "core/logs/cell.h"
#include "core/logs/variables.h"
#include "tests/core/logs/reading.h"

namespace core {
namespace {

Observations read(std::string text, const ObservationOptions& options = wanting({"N", "D", "L"})) {
  return parse_observations(std::move(text), "runs.csv", options);
}

TEST(Cell, ReadsNumbersAsPeopleWriteThem) {
  const auto number = [](std::string_view text, Commas commas = Commas::thousands) {
    return read_cell(text, commas).value;
  };
  EXPECT_EQ(number("1.3B"), 1.3e9);
  EXPECT_EQ(number(" 350 M "), 3.5e8);
  EXPECT_EQ(number("20e9"), 2e10);
  EXPECT_EQ(number("1,234,567"), 1234567.0);
  EXPECT_EQ(number("1,234"), 1234.0);
  EXPECT_EQ(number("1,234", Commas::decimal), 1.234);
  EXPECT_EQ(number("2,5"), 2.5);
  EXPECT_EQ(number("1.234.567,5", Commas::decimal), 1234567.5);
  EXPECT_EQ(number("1,234.5"), 1234.5);
  EXPECT_EQ(number("1.4T"), 1.4e12);
  EXPECT_EQ(number("1_000_000"), 1e6);
  EXPECT_EQ(number("+2.5"), 2.5);
  for (const auto text : {"", " ", "-", "null", "None", "N/A"})
    EXPECT_EQ(read_cell(text).kind, Cell::Kind::blank) << text;
  for (const auto text : {"nan", "NaN", "-inf", "Infinity", "1e999"})
    EXPECT_EQ(read_cell(text).kind, Cell::Kind::no_number) << text;
  for (const auto text : {"gpt2", "1.3Q", "12,34,5", "1e", "2.5.1", "--3"})
    EXPECT_EQ(read_cell(text).kind, Cell::Kind::text) << text;
}

TEST(Variables, AreToldByNamesOfColumns) {
  const auto variable = [](std::string_view column) {
    const auto meaning = meaning_of(column);
    return meaning ? meaning->variable : "";
  };
  for (const auto name : {"N",
                          "n_params",
                          "params",
                          "Model Size",
                          "Params (B)",
                          "num_parameters",
                          "n_params_nonemb",
                          "active_params",
                          "config.n_params"})
    EXPECT_EQ(variable(name), "N") << name;
  for (const auto name :
       {"D", "tokens", "train_tokens", "tokens_B", "Tokens (T)", "consumed tokens"})
    EXPECT_EQ(variable(name), "D") << name;
  for (const auto name : {"C", "flops", "Training FLOP", "train_gflops", "compute (PF-days)"})
    EXPECT_EQ(variable(name), "C") << name;
  for (const auto name : {"L",
                          "loss",
                          "final_loss",
                          "smooth_loss",
                          "val_loss",
                          "eval/CrossEntropyLoss",
                          "train/ce",
                          "lm loss",
                          "eval_ppl"})
    EXPECT_EQ(variable(name), "L") << name;
  for (const auto name : {"loss_scale",
                          "tokens_per_sec_per_gpu",
                          "tflops",
                          "copa_acc",
                          "aux_loss",
                          "d_model",
                          "log_loss",
                          "log10_flops",
                          "load_balancing_loss"})
    EXPECT_EQ(variable(name), "") << name;
  EXPECT_EQ(variable("N (params)"), "N");
  EXPECT_EQ(variable("D (B tokens)"), "D");
  EXPECT_EQ(meaning_of("D (B tokens)")->scale, 1e9);
  EXPECT_EQ(meaning_of("Params (B)")->scale, 1e9);
  EXPECT_EQ(meaning_of("n_params_millions")->scale, 1e6);
  EXPECT_EQ(meaning_of("tokens_B")->scale, 1e9);
  EXPECT_EQ(meaning_of("train_gflops")->scale, 1e9);
  EXPECT_EQ(meaning_of("compute (PF-days)")->scale, 8.64e19);  // 1e15 x 86,400 s
  EXPECT_EQ(meaning_of("n_params_nonemb")->convention, "non-embedding");
  EXPECT_EQ(meaning_of("n_params_nonemb_active")->convention, "non-embedding, active");
}

TEST(Observations, TakeColumnsByTheirNamesAndSaySo) {
  const auto runs =
      read("name,Params (B),tokens_B,lr,val_loss\na,1.5,30,3e-4,2.75\nb,0.5,\"1,000\",1e-3,2.5\n");
  EXPECT_EQ(runs.variables, (Strings{"N", "D", "L", "lr"}));
  EXPECT_EQ(runs.values[0], (Doubles{1.5e9, 5e8}));
  EXPECT_EQ(runs.values[1], (Doubles{3e10, 1e12}));
  EXPECT_EQ(runs.values[2], (Doubles{2.75, 2.5}));
  EXPECT_EQ(runs.values[3], (Doubles{3e-4, 1e-3}));
  EXPECT_EQ(runs.rows, (Strings{"runs.csv line 2", "runs.csv line 3"}));
  EXPECT_EQ(runs.notes,
            (Strings{"N <- Params (B) x 1e+09 (taken as total)",
                     "D <- tokens_B x 1e+09",
                     "L <- val_loss (held-out)"}));
  EXPECT_TRUE(runs.dropped.empty());
}

TEST(Observations, TakeTheColumnsThatAreNamed) {
  auto options = wanting({"N", "D", "L"});
  options.columns = {{"N", "width"}, {"L", "Score"}};
  const auto runs = read("width,tokens,score,loss\n8,4,3,2\n", options);
  EXPECT_EQ(runs.variables, (Strings{"N", "D", "L", "loss"}));
  EXPECT_EQ(runs.values, (std::vector<Doubles>{{8}, {4}, {3}, {2}}));
  options.columns = {{"N", "paramz"}};
  EXPECT_EQ(complaint([&] { read("params,tokens,loss\n8,4,3\n", options); }),
            "runs.csv: --columns N: found no column \"paramz\" (did you mean \"params\"?), "
            "expected one of: "
            "params, tokens, loss");
}

TEST(Observations, TakeVariablesThatALawCanDoWithout) {
  auto options = wanting({"N", "L"});
  options.also = {"P_w", "U", "E"};
  options.columns = {{"x", "width"}};
  const auto runs =
      read("params,weight_bits,tokens,epochs,width,loss\n9,4,8,2,7,3\n9,,8,2,7,3\n", options);
  EXPECT_EQ(runs.variables, (Strings{"N", "L", "P_w", "U", "x", "tokens", "epochs"}));
  EXPECT_EQ(runs.values[2][0], 4);
  EXPECT_TRUE(std::isnan(runs.values[2][1]));
  EXPECT_EQ(runs.values[3], (Doubles{4, 4}));  // 8 / 2
  EXPECT_EQ(runs.values[4], (Doubles{7, 7}));
  // A row that differs in such a variable alone is another run.
  EXPECT_EQ(runs.size(), 2U);
}

TEST(Observations, TakeTheCountThatTheLawMeans) {
  const std::string text = "params_active,total_params,params_nonemb,tokens,loss\n1,2,3,4,5\n";
  auto options = wanting({"N", "L"});
  options.N_convention = "active";
  EXPECT_EQ(read(text, options).values[0], (Doubles{1}));
  const std::string dense = "params,n_params_nonemb,tokens,loss\n2,3,4,5\n";
  options.N_convention = "non-embedding";
  EXPECT_EQ(read(dense, options).values[0], (Doubles{3}));
  EXPECT_EQ(read(dense, options).notes[0],
            "N <- n_params_nonemb (non-embedding); not params (--columns N=COLUMN)");
  options.N_convention = "";
  EXPECT_EQ(read(dense, options).values[0], (Doubles{2}));
}

TEST(Observations, DeriveWhatLacksFromSixTimesNTimesD) {
  const auto of_flops = read("Model Size,Training FLOP,loss\n1e9,1.2e20,2.5\n");
  EXPECT_EQ(of_flops.values[1], (Doubles{2e10}));  // 1.2e20 / (6 x 1e9)
  EXPECT_EQ(of_flops.notes.back(), "runs.csv: D <- C / (6 N) (1 of 1 runs)");
  EXPECT_EQ(of_flops.variables.back(), "Training FLOP");
  EXPECT_EQ(read("params,tokens,loss\n1e9,2e10,3\n", wanting({"C", "L"})).values[0],
            (Doubles{1.2e20}));
  EXPECT_EQ(read("flops,tokens,loss\n1.2e20,2e10,3\n").values[0], (Doubles{1e9}));
  EXPECT_EQ(read("params,batch_seqs,seq_len,max_steps,loss\n1e9,8,1024,100,3\n").values[1],
            (Doubles{819200}));
  EXPECT_EQ(
      read("params,tokens,epochs,loss\n1e9,8e9,4,3\n", wanting({"N", "D", "U", "L"})).values[2],
      (Doubles{2e9}));
  EXPECT_EQ(complaint([] {
              read("params,tokens,loss\n1e9,8e9,3\n", wanting({"N", "D", "U", "L"}));
            }),
            "runs.csv: no column is or gives U (distinct tokens), expected --columns U=COLUMN; "
            "columns: params, tokens, loss");
}

TEST(Observations, TakeNFromTheOptionOrTheNameOfTheRun) {
  auto options = wanting({"N", "L"});
  const std::string text = "run,loss\nOLMo-7B-run-038,2.5\n1p3b,2.75\n";
  EXPECT_EQ(read(text, options).values[0], (Doubles{7e9, 1.3e9}));
  options.N = 5e8;
  EXPECT_EQ(read(text, options).values[0], (Doubles{5e8, 5e8}));
}

TEST(Observations, RefuseTwoColumnsThatAreAsGood) {
  EXPECT_EQ(complaint([] { read("params,tokens,loss_c4,loss_wiki\n1,2,3,4\n"); }),
            "runs.csv: 2 columns could be L (loss, nats a token), expected --columns L=COLUMN with "
            "one of: loss_c4, loss_wiki");
  EXPECT_EQ(complaint([] { read("params_active,total_params,tokens,loss\n1,2,3,4\n"); }),
            "runs.csv: 2 columns could be N (parameters), expected --columns N=COLUMN with one of: "
            "total_params, params_active");
  // A count in full before one in units.
  EXPECT_EQ(read("params_M,params,tokens,loss\n2,1999999,7,5\n").values[0], (Doubles{1999999}));
  // Of better and worse names the better is taken, aloud.
  const auto runs = read("n_params,n_params_nonemb,tokens,final_loss,smooth_loss\n9,8,7,6,5\n");
  EXPECT_EQ(runs.values[0], (Doubles{9}));
  EXPECT_EQ(runs.values[2], (Doubles{5}));
  EXPECT_EQ(runs.notes[0],
            "N <- n_params (taken as total); not n_params_nonemb (--columns N=COLUMN)");
}

TEST(Observations, ReadWhatSpreadsheetsWrite) {
  // A mark, CR LF, semicolons, decimal commas, a remark, an empty line.
  const auto runs = read(
      "\xef\xbb\xbfparams;tokens;loss\r\n# from the sheet\r\n1.000.000;2e9;2,345\r\n\r\n2,5M;4 "
      "B;2\r\n");
  EXPECT_EQ(runs.values, (std::vector<Doubles>{{1e6, 2.5e6}, {2e9, 4e9}, {2.345, 2}}));
  EXPECT_EQ(runs.rows, (Strings{"runs.csv line 3", "runs.csv line 5"}));
  EXPECT_EQ(read("params\ttokens\tloss\n1\t2\t3\n").values, (std::vector<Doubles>{{1}, {2}, {3}}));
  EXPECT_EQ(read("params,tokens,\"loss, \"\"final\"\"\"\n1,2,\"3\"\n").values[2], (Doubles{3}));
}

TEST(Observations, DropNoRowWithoutAReason) {
  const auto runs = read(
      "params,tokens,loss\n1,2,3\n1,2\n1,2,3,4\n1,,3\n1,2,nan\n1,2,high\n0,2,3\n1,2,3\n1,2,4\n");
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs.rows[1], "runs.csv line 10");
  Strings dropped;
  for (const auto& [row, why] : runs.dropped) dropped.push_back(row + ": " + why);
  EXPECT_EQ(dropped,
            (Strings{"runs.csv line 5: no D (tokens trained on)",
                     "runs.csv line 6: diverged: loss is nan",
                     "runs.csv line 7: loss: found \"high\", expected a number",
                     "runs.csv line 8: N is 0, expected more than 0",
                     "runs.csv line 9: stands twice: the same values as runs.csv line 2",
                     "runs.csv line 3: found 2 cells, expected 3",
                     "runs.csv line 4: found 4 cells, expected 3"}));
}

TEST(Observations, DropRowsFarAboveTheBestOfTheirSweep) {
  // Eight runs that differ in what is no variable, and one of another size.
  const std::string text =
      "params,tokens,loss\n1,2,3\n1,2,3.1\n1,2,4.4\n1,2,4.6\n1,2,3.2\n1,2,3.3\n1,2,3.4\n1,2,3.5\n5,"
      "2,9\n";
  const auto runs = read(text);
  EXPECT_EQ(runs.size(), 8U);
  ASSERT_EQ(runs.dropped.size(), 1U);
  EXPECT_EQ(runs.dropped[0].row, "runs.csv line 5");  // 4.6 > 1.5 x 3
  EXPECT_EQ(runs.dropped[0].why,
            "diverged: its loss 4.6 is more than 1.5 times the 3 of the best of 8 runs like it");
  auto options = wanting({"N", "D", "L"});
  options.keep_diverged = true;
  EXPECT_EQ(read(text, options).size(), 9U);
}

// wandb's table of runs: their last steps, and whether they came to their end.
TEST(Observations, DropRunsWhoseStateIsNotFinished) {
  const std::string text =
      "Name,State,params,loss,_step,batch_tokens\na,finished,1e9,3,10,8\nb,crashed,1e9,4,5,8\na,"
      "finished,2e9,2,10,8\n";
  const auto runs = read(text);
  EXPECT_EQ(runs.values[0], (Doubles{1e9, 2e9}));
  EXPECT_EQ(runs.values[1], (Doubles{80, 80}));
  ASSERT_EQ(runs.dropped.size(), 1U);
  EXPECT_EQ(runs.dropped[0].why, "unfinished: its state is crashed");
}

TEST(Observations, KeepTheRowsThatConditionsName) {
  const std::string text =
      "params,tokens,loss,variant,flops\n1,2,3,,10\n1,2,4,dedup,20\n1,2,5,,30\n";
  auto options = wanting({"N", "D", "L"});
  options.where = {"variant="};
  EXPECT_EQ(read(text, options).values[2], (Doubles{3, 5}));
  EXPECT_EQ(read(text, options).notes.back(), "runs.csv: 1 rows left out by --where");
  options.where = {"variant!=dedup", "flops > 10"};
  EXPECT_EQ(read(text, options).values[2], (Doubles{5}));
  options.where = {"C<=20"};
  EXPECT_EQ(read(text, options).values[2], (Doubles{3, 4}));
  options.where = {"varint=x"};
  EXPECT_EQ(complaint([&] { read(text, options); }),
            "runs.csv: --where \"varint=x\": found no column \"varint\" (did you mean "
            "\"variant\"?), expected one of: "
            "params, tokens, loss, variant, flops");
  options.where = {"flops>many"};
  EXPECT_EQ(complaint([&] { read(text, options); }),
            "--where \"flops>many\": found \"many\", expected a number");
}

TEST(Observations, RefuseWhatIsNoTable) {
  EXPECT_EQ(complaint([] { read(" \n"); }),
            "runs.csv: is empty, expected a table or a log of a run");
  EXPECT_EQ(complaint([] { read(std::string("\xff\xfe\x61\x00", 4)); }),
            "runs.csv: is in UTF-16, expected UTF-8 (iconv -f UTF-16 -t UTF-8)");
  EXPECT_EQ(complaint([] { read("params,tokens,loss\n"); }),
            "runs.csv: has a header but no rows, expected runs");
  EXPECT_TRUE(complaint([] {
                read("{\"step\": 1, \"loss\": 2}\n");
              }).starts_with("runs.csv: found no steps of a run, nor a table, expected CSV or"));
  EXPECT_EQ(complaint([] { read("1,2,3\n4,5,6\n"); }),
            "runs.csv: line 1: found 1, 2, 3, expected a header with names of columns");
  EXPECT_EQ(complaint([] { read("params,tokens,loss\n1,\"2,3\n"); }),
            "runs.csv: line 2: found a quote that is never closed, expected \"...\"");
}

}  // namespace
}  // namespace core
