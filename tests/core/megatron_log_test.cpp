// Megatron-LM's logs and golden values: what is read, and what is refused.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "core/error.h"
#include "core/logs/megatron.h"

namespace core {
namespace {

// As a run prints it; the rank before the words is torchrun's.
const std::string log =
    "using world size: 16\n"
    "0:   bf16 ............................................ True\n"
    "0:   data_path ....................................... None\n"
    "  checkpoint_activations .......................... True\n"
    "  global_batch_size ............................... 32\n"
    "  hidden_size ..................................... 1024\n"
    "  micro_batch_size ................................ 2\n"
    "  num_attention_heads ............................. 16\n"
    "  num_layers ...................................... 24\n"
    "  padded_vocab_size ............................... 50304\n"
    "  pipeline_model_parallel_size .................... 2\n"
    "  seq_length ...................................... 2048\n"
    "  tensor_model_parallel_size ...................... 4\n"
    "  world_size ...................................... 16\n"
    " iteration 1/ 9 | elapsed time per iteration (ms): 9000.0 | global batch size: 16 |\n"
    " iteration 2/ 9 | elapsed time per iteration (ms): 4000.0 | global batch size: 32 |\n"
    "[Rank 1] (after 2 iterations) memory (MB) | allocated: 1024.0 | max allocated: 2048.0 | "
    "reserved: 3.0[Rank 0] (after 2 iterations) "
    "memory (MB) | allocated: 512.0 | max allocated: 3072.0 | reserved: 3.0\n"
    " iteration 3/ 9 | elapsed time per iteration (ms): 2100.0 | global batch size: 32 |\n"
    " iteration 4/ 9 | elapsed time per iteration (ms): 2000.0 | global batch size: 32 |\n"
    " iteration 5/ 9 | elapsed time per iteration (s): 2.3 | global batch size: 32 |\n";

const std::string golden = R"({"lm loss": {"values": {"1": 12.5}},
  "mem-allocated-bytes": {"values": {"1": 1073741824.0, "2": 1073741824.0}},
  "mem-max-allocated-bytes": {"values": {"1": 2147483648.0, "2": 3221225472.0}},
  "iteration-time": {"values": {"1": "nan", "2": 9.0, "3": 1.5, "4": 1.25, "5": 1.0}}})";
const std::string arguments =
    "ENV_VARS:\n  A: 1\nMODEL_ARGS:\n  --num-layers: 12\n  --hidden-size: 512 # small\n  "
    "--num-attention-heads: 8\n  --seq-length: 1024\n"
    "  --micro-batch-size: 4\n  --global-batch-size: 32\n  --tensor-model-parallel-size: 2\n  "
    "--swiglu: true\n  --fp16: false\n"
    "  --disable-bias-linear: true\n  --tokenizer-type: NullTokenizer\n  --vocab-size: "
    "\"131073\"\n  --bf16: true\n"
    "  --num-experts: 64\n  --moe-router-topk: 8\n  --moe-ffn-hidden-size: 256\n  "
    "--ffn-hidden-size: 2048\n"
    "  --moe-layer-freq: ([0]*3+[1]*9)\n  --no-gradient-accumulation-fusion: true\n";

std::string complaint(const std::function<void()>& work) {
  try {
    work();
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(MegatronLog, BecomesAMeasuredRun) {
  ASSERT_TRUE(is_megatron_log(log));
  const auto run = measured_run_of(parse_megatron_log(log, "a/run.log"),
                                   {.gpu = "a100-sxm-80", .gpus = {}, .gpus_per_node = 8});
  EXPECT_EQ(run.gpus, 16);
  EXPECT_EQ(run.layers, 24);
  EXPECT_EQ(run.tp, 4);
  EXPECT_EQ(run.pp, 2);
  EXPECT_EQ(run.cp, std::nullopt);
  EXPECT_EQ(run.recompute, "full");
  EXPECT_EQ(run.padded_vocab, 50304);
  EXPECT_EQ(run.attention_backend, "unfused");  // no word of Transformer Engine: code of before it
  EXPECT_EQ(run.bf16, true);
  EXPECT_EQ(run.global_batch_sequences, 32);
  // Of 4.0, 2.1, 2.0 and 2.3 s at that batch the first is warm-up: the median of the others.
  EXPECT_DOUBLE_EQ(*run.step_time_s, 2.1);
  EXPECT_DOUBLE_EQ(*run.mem_allocated_gib_end, 1.0);
  EXPECT_DOUBLE_EQ(*run.peak_memory_gb, 3.0);
}

TEST(MegatronLog, RefusesLogsWithoutWhatItNeeds) {
  EXPECT_EQ(complaint([] { parse_megatron_log("hello\n", "x.log"); }),
            "x.log: found no iteration with a time, expected a log of Megatron-LM");
  EXPECT_EQ(
      complaint([] { parse_megatron_log("elapsed time per iteration (ms): 5.0\n", "x.log"); }),
      "x.log: found no arguments (num_layers ... N), expected the log from its start");
  auto run = parse_megatron_log(log, "x.log");
  run.arguments["hidden_size"] = "wide";
  EXPECT_EQ(complaint([&] {
              measured_run_of(run, {"a100-sxm-80", {}, {}});
            }),
            "x.log: argument hidden_size: found \"wide\", expected a whole number of 0 or more");
  run = parse_megatron_log(log, "x.log");
  run.arguments.erase("world_size");
  EXPECT_EQ(complaint([&] {
              measured_run_of(run, {"a100-sxm-80", {}, {}});
            }),
            "x.log: the number of GPUs is not in its arguments, expected --gpus");
}

TEST(MegatronGolden, BecomesAMeasuredRunOfTheLastRank) {
  const auto run =
      measured_run_of(parse_megatron_golden(golden, "t/g.json", arguments, "t/model_config.yaml"),
                      {.gpu = "h100-sxm", .gpus = 8, .gpus_per_node = {}});
  EXPECT_EQ(run.test_case, "t/g.json");
  EXPECT_EQ(run.logging_rank, "last");
  EXPECT_EQ(run.gated_mlp, true);
  EXPECT_EQ(run.fp16, false);
  EXPECT_EQ(run.linear_bias, false);
  EXPECT_EQ(run.gradient_fusion, false);
  EXPECT_EQ(run.padded_vocab, 131328);  // 131073 and one more, in multiples of 128 x 2
  EXPECT_EQ(run.first_dense_layers, 3);
  EXPECT_EQ(run.dense_ffn_hidden, 2048);
  EXPECT_EQ(run.moe_ffn_hidden, 256);
  EXPECT_EQ(run.recompute, "none");
  EXPECT_DOUBLE_EQ(*run.peak_memory_gb, 3.0);
  EXPECT_DOUBLE_EQ(*run.step_time_s, 1.25);  // of 9.0, 1.5, 1.25 and 1.0 s without the first
}

// data/tokenizers.json: Nemotron's SentencePiece file has 256,000 entries, Llama 2's type 32,000, both multiples of 128 x 2; of
// others nothing is known.
TEST(MegatronGolden, TakesTheVocabularyOfANamedTokenizer) {
  const auto padded = [](const std::string& tokenizer) {
    auto text = arguments;
    const std::string null = "--tokenizer-type: NullTokenizer\n  --vocab-size: \"131073\"";
    text.replace(text.find(null), null.size(), tokenizer);
    return measured_run_of(parse_megatron_golden(golden, "t/g.json", text, "t/model_config.yaml"),
                           {.gpu = "h100-sxm", .gpus = 8, .gpus_per_node = {}})
        .padded_vocab;
  };
  EXPECT_EQ(padded("--tokenizer-type: GPTSentencePieceTokenizer\n  --tokenizer-model: ${DATA}/nemotron_2_256k.model"), 256000);
  EXPECT_EQ(padded("--tokenizer-type: Llama2Tokenizer\n  --tokenizer-model: ${DATA}/tokenizer.model"), 32000);
  EXPECT_EQ(padded("--tokenizer-type: HuggingFaceTokenizer\n  --tokenizer-model: meta-llama/Llama-3.1-8B"), 128256);
  EXPECT_EQ(padded("--tokenizer-type: HuggingFaceTokenizer\n  --tokenizer-model: a/b"), std::nullopt);
}

TEST(MegatronGolden, RefusesOtherFiles) {
  EXPECT_EQ(complaint([] { parse_megatron_golden("{}", "g.json", arguments, "m.yaml"); }),
            "g.json: found neither iteration-time nor mem-max-allocated-bytes, expected golden "
            "values of Megatron-LM");
  EXPECT_EQ(complaint([] { parse_megatron_golden(golden, "g.json", "a: b\n", "m.yaml"); }),
            "m.yaml: found no --num-layers, expected the arguments of the test");
  EXPECT_EQ(
      complaint([] {
        measured_run_of(
            parse_megatron_golden(
                golden, "g.json", arguments + "  --hybrid-layer-pattern: M*M\n", "m.yaml"),
            {"h100-sxm", 8, {}});
      }),
      "g.json: a hybrid of attention and state-space layers, expected attention in all layers");
}

}  // namespace
}  // namespace core
