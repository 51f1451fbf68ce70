// What training frameworks print: each format by a few lines in its shape.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "core/error.h"
#include "core/logs/log_format.h"
#include "core/logs/log_text.h"
#include "core/logs/observations.h"
#include "tests/core/logs/reading.h"

namespace core {
namespace {

Observations read(const std::string& text,
                  const std::string& name = "run.log",
                  std::optional<double> N = {}) {
  auto options = wanting({"N", "D", "L"});
  options.N = N;
  return parse_observations(text, name, options);
}

std::string format_of(const std::string& text) {
  const auto* format = find_log_format(LineReader::text(text, "run.log"));
  return format == nullptr ? "" : std::string(format->name);
}

TEST(LogText, ReadsValuesAsFrameworksWriteThem) {
  EXPECT_EQ(value_after("tps: 5,615  tflops: 325.20", "tps:"), 5615.0);
  EXPECT_EQ(value_after("consumed_tokens: 480B | x", "consumed_tokens: "), 4.8e11);
  EXPECT_EQ(value_after("step=9,loss=7.5,lr=2.2e-06,", "step="), 9.0);
  EXPECT_EQ(value_after("step=9,loss=7.5,lr=2.2e-06,", "lr="), 2.2e-6);
  EXPECT_EQ(value_after("{'loss': '2.5', 'epoch': 1}", "'loss': "), 2.5);
  EXPECT_EQ(value_after("took 989.44ms.", "took"), 989.44);
  EXPECT_EQ(value_after("1.5GiB", ""), 1.5);  // no size: letters follow
  EXPECT_TRUE(std::isnan(value_after("lm loss: nan |", "lm loss: ").value_or(0.0)));
  EXPECT_TRUE(std::isnan(value_after("lm loss: -inf |", "lm loss: ").value_or(0.0)));
  EXPECT_FALSE(value_after("loss: high", "loss: "));
  EXPECT_FALSE(value_after("loss", "loss"));
  std::string buffer;
  EXPECT_EQ(without_colours("\x1b[31mstep: 1\x1b[0m \x1b[1;32mloss", buffer), "step: 1 loss");
}

TEST(LogFormats, AreToldApart) {
  EXPECT_EQ(
      format_of(
          "hello\nstep 00004/21400 (0.02%) | loss: 8.8 | lrm: 1.00 | dt: 9ms | tok/sec: 5 |\n"),
      "nanochat");
  EXPECT_EQ(format_of("step    1/18865 | loss 11.0 (+nanz)| norm 15.3 (+nanz)| lr 8.57e-07 | 30 ms "
                      "| 172110 tok/s\n"),
            "llm.c");
  EXPECT_EQ(format_of("a,b\n1,2\n"), "");
}

// A model of 2 layers, h = 8, 16 entries, 4 positions: 12 l h^2 (1 + 13/(12 h) + (V + s)/(12 l h))
// of Narayanan et al. 2021, equation 2, and the last norm's 2 h: 1536 + 208 + 160 + 16.
const std::string megatron_arguments =
    "  ffn_hidden_size ......... 32\n  hidden_size ............. 8\n"
    "  max_position_embeddings ... 4\n  num_attention_heads ..... 2\n  num_layers .............. "
    "2\n"
    "  seq_length .............. 4\n > padded vocab (size: 16) with 112 dummy tokens (new size: "
    "128)\n";

std::string iteration(int step, const std::string& loss, int total = 3) {
  return fmt::format(
      "0:  iteration {:8}/{:8} | consumed samples: {:12} | elapsed time per iteration (ms): 5.0 | "
      "learning rate: "
      "1.0E-04 | global batch size: 10 |{} loss scale: 1.0 |\n",
      step,
      total,
      10 * step,
      loss.empty() ? "" : " lm loss: " + loss + " |");
}

TEST(MegatronRuns, CountParametersAndTokens) {
  const auto runs = read(megatron_arguments + iteration(1, "") + iteration(2, "4.5E+00") +
                         iteration(3, "4.0E+00"));
  EXPECT_EQ(runs.values, (std::vector<Doubles>{{1920}, {30 * 4}, {4}}));
  EXPECT_EQ(runs.rows, (Strings{"run.log"}));
  // The total that newer versions print is taken where it stands.
  const auto newer = megatron_arguments + "Total number of parameters in billions: 8.03\n";
  EXPECT_DOUBLE_EQ(read(newer + iteration(3, "4")).values[0].at(0), 8.03e9);
}

TEST(MegatronRuns, ThatAreOfNoUseAreDroppedWithTheReason) {
  const auto why = [](const std::string& steps) {
    return read(megatron_arguments + steps).dropped.at(0).why;
  };
  EXPECT_EQ(why(iteration(1, "4", 9)), "unfinished: ends at step 1 of 9");
  EXPECT_EQ(why(iteration(2, "4") + iteration(3, "nan")),
            "diverged: its loss at step 3 is not finite");
  EXPECT_EQ(why(iteration(3, "")), "no step has a loss");
}

TEST(MegatronRuns, OfValidationAreTakenWhenAskedFor) {
  auto options = wanting({"L"});
  const auto text =
      iteration(3, "4") +
      "validation loss at iteration 3 | lm loss value: 4.25E+00 | lm loss PPL: 7.0E+01 |\n";
  EXPECT_EQ(parse_observations(text, "run.log", options).values[0], (Doubles{4}));
  options.columns = {{"L", "validation"}};
  EXPECT_EQ(parse_observations(text, "run.log", options).values[0], (Doubles{4.25}));
}

TEST(OtherRuns, GiveTokensParametersAndTheLoss) {
  const auto nanotron = read(
      "[INFO|DP=0]: iteration: 10 / 10 | consumed_tokens: 2.5M | global_batch_size: 256K | "
      "lm_loss: 2.04 | lr: 0.0001\n",
      "smollm_350m.log");
  EXPECT_EQ(nanotron.values, (std::vector<Doubles>{{3.5e8}, {2.5e6}, {2.04}}));

  const auto nemo = read(
      "  seq_length: 2048\nTraining epoch 0, iteration 9/9 | lr: 1e-05 | global_batch_size: 128 | "
      "global_step: 9 | "
      "reduced_train_loss: 6.5 | train_step_timing in s: 12.2 | consumed_samples: 1280\n",
      "8b.log");
  EXPECT_EQ(nemo.values, (std::vector<Doubles>{{8e9}, {1280.0 * 2048}, {6.5}}));

  const auto torchtitan = read(
      "[titan] Model llama3 8B size: 8,030,261,248 total parameters\n"
      "[titan] Training starts at step 1, with local batch size 1, global batch size 8, sequence "
      "length 8192, total steps 20 (warmup 2)\n"
      "[rank0]:\x1b[31mstep: 10  \x1b[32mloss: 10.5  grad_norm: 16.1  memory: 44.84GiB(47%)  tps: "
      "5,615  mfu: 32%\n"
      "[rank2]:step: 10  loss: 10.5  grad_norm: 16.1  memory: 44.84GiB(47%)  tps: 5,615  mfu: 32%\n"
      "[rank0]:step: 20  loss:  9.5  grad_norm: 16.1  memory: 44.84GiB(47%)  tps: 5,615  mfu: "
      "32%\n");
  EXPECT_EQ(torchtitan.values, (std::vector<Doubles>{{8030261248}, {20.0 * 8 * 8192}, {9.5}}));

  const auto llm_c = read(
      "| num_parameters        | 124475904                                          |\n"
      "| total batch size      | 524288                                             |\n"
      "step    1/2 | loss 11.0 (+nanz)| norm 15.3 (+nanz)| lr 8.57e-07 | 30 ms | 172110 tok/s\nval "
      "loss 10.5\n"
      "step    2/2 | loss 10.0 (+nanz)| norm 15.3 (+nanz)| lr 8.57e-07 | 30 ms | 172110 tok/s\n");
  EXPECT_EQ(llm_c.values, (std::vector<Doubles>{{124475904}, {2.0 * 524288}, {10}}));

  const auto nanochat = read(
      "Number of parameters: 560,988,160\nTotal batch size 524,288 => gradient accumulation steps: "
      "1\n"
      "step 00001/2 (50%) | loss: 9.5 | lrm: 1.00 | dt: 9ms | tok/sec: 529,882 | mfu: 7\n");
  EXPECT_EQ(nanochat.values, (std::vector<Doubles>{{560988160}, {524288}, {9.5}}));

  const auto internlm = read(
      "INFO train.py:317 -- tflops=93.4,step=9,loss=7.5,tgs "
      "(tokens/gpu/second)=2104.89,lr=2.2e-06,num_consumed_tokens=2621440,x=1\n",
      "run.log",
      7e9);
  EXPECT_EQ(internlm.values, (std::vector<Doubles>{{7e9}, {2621440}, {7.5}}));
}

TEST(HuggingFaceRuns, TakeStepsFromEpochsOrBars) {
  const std::string start =
      "  Num Epochs = 2\n  Total train batch size (w. parallel, distributed & accumulation) = 16\n"
      "  Total optimization steps = 100\n  Number of trainable parameters = 124,439,808\n";
  const std::string last =
      "{'loss': 3.5, 'grad_norm': 1.0, 'learning_rate': 1e-06, 'epoch': 2.0}\n";
  auto options = wanting({"N", "D", "L"});
  options.tokens_per_step = 16 * 1024;
  const auto runs = parse_observations(
      start + "{'loss': 4.5, 'learning_rate': 5e-05, 'epoch': 1.0}\n" + last, "run.log", options);
  EXPECT_EQ(runs.values, (std::vector<Doubles>{{124439808}, {100.0 * 16 * 1024}, {3.5}}));
  options.N = 1e8;
  // Bars begin anew after CR; those of an evaluation count other steps.
  const std::string bars =
      "\r  0%|          | 0/100 [00:00<?]\r100%|##########| 100/100 [00:10<00:00,  9it/s]"
      "\r100%|##########| 7/7 [00:01<00:00]\r" +
      last;
  EXPECT_EQ(parse_observations(bars, "run.log", options).values[1], (Doubles{100.0 * 16 * 1024}));
  options.keep_unfinished = true;
  EXPECT_EQ(parse_observations(
                " 50%|#####     | 50/100 [00:10<00:10,  5.0it/s]" + last, "run.log", options)
                .values[1],
            (Doubles{50.0 * 16 * 1024}));
  // Without either its steps are not known, but tokens may be.
  EXPECT_EQ(parse_observations(last, "run.log", options).dropped.at(0).why,
            "no D (tokens trained on): give --batch-tokens");
  EXPECT_EQ(parse_observations("{'loss': 3.5, 'num_input_tokens_seen': 4096}\n", "run.log", options)
                .values[1],
            (Doubles{4096}));
}

TEST(SmallPrograms, PrintLossesInTheirOwnWays) {
  const auto nanogpt = read(
      "tokens per iteration will be: 491,520\nnumber of parameters: 123.59M\nstep 0: train loss "
      "10.9, val loss "
      "10.8\niter 0: loss 10.95, time 9.0ms, mfu -100.00%\niter 10: loss 9.5, time 9.0ms, mfu "
      "30.12%\n");
  EXPECT_EQ(nanogpt.values, (std::vector<Doubles>{{123.59e6}, {4915200}, {9.5}}));
  auto options_with_steps = wanting({"N", "D", "L"});
  options_with_steps.tokens_per_step = 256;
  const auto cpu = parse_observations(
      "num_parameters: 124439808\nval loss 5.25\nstep 0: train loss 5.3 (took 1452.1 ms)\nstep 1: "
      "train loss 5.0 (took 9 ms)\n",
      "run.log",
      options_with_steps);
  EXPECT_EQ(cpu.values, (std::vector<Doubles>{{124439808}, {256}, {5}}));
  const auto cuda = parse_observations(
      "num_parameters: 124439808\nstep    1/1: train loss 4.75 (acc 4.75) (30 ms, 5120 tok/s)\n",
      "run.log",
      options_with_steps);
  EXPECT_EQ(cuda.values, (std::vector<Doubles>{{124439808}, {256}, {4.75}}));
}

TEST(Logs, ThatAreNoneAreRefused) {
  std::string found;
  try {
    read("hello\nworld\n");
  } catch (const InputError& error) {
    found = error.what();
  }
  EXPECT_EQ(
      found,
      "run.log: found no steps of a run, nor a table, expected CSV or what one of these "
      "prints: the Hugging "
      "Face Trainer, InternLM, llm.c, Megatron-LM, nanochat, nanoGPT, nanotron, NeMo, torchtitan");
}

}  // namespace
}  // namespace core
