// Rows of the shipped table in our terms: one of each source, held to what its source says in its
// own words.
#include "simulator/check/translate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "core/error.h"
#include "core/measured/table.h"
#include "simulator/check/plan_of.h"
#include "simulator/check/software.h"

namespace simulator {
namespace {

const core::MeasuredRun& run_named(const std::string& id) {
  static const auto table =
      core::read_measured_table(FORETRAIN_SOURCE_DIR "/data/measured/runs.csv");
  const auto found = std::find_if(
      table.runs.begin(), table.runs.end(), [&](const auto& run) { return run.id == id; });
  EXPECT_NE(found, table.runs.end()) << id;
  return *found;
}

std::string plan_text(const std::string& id) {
  return core::to_text(translate(run_named(id)).plan);
}

std::string why_not_translated(core::MeasuredRun run,
                               const std::function<void(core::MeasuredRun&)>& change) {
  change(run);
  try {
    translate(run);
  } catch (const core::InputError& error) {
    return error.what();
  }
  return "translated";
}

bool says(const std::vector<std::string>& notes, std::string_view part) {
  return std::any_of(notes.begin(), notes.end(), [&](const auto& note) {
    return note.find(part) != std::string::npos;
  });
}

TEST(Translate, WritesThePlanOfEachSource) {
  const std::map<std::string, std::string> plans = {
      {"sc21_t1_76.1b",
       "tp=8 cp=1 pp=4x3 ep=1 etp=1 dp=32 zero=0 mb=2 gbs=1792 schedule=interleaved recompute=full "
       "layers=even overlap=none "
       "offload=none recipe=fp16"},
      {"sc21_t2_174.6b_zero3_384",
       "tp=1 cp=1 pp=1 ep=1 etp=1 dp=384 zero=3 mb=4 gbs=1536 schedule=1f1b recompute=full "
       "layers=even overlap=both offload=none "
       "recipe=fp16"},
      {"korth22_t5_175b_selective",
       "tp=8 sp cp=1 pp=8x3 ep=1 etp=1 dp=1 zero=0 mb=1 gbs=64 schedule=interleaved "
       "recompute=selective layers=even overlap=none "
       "offload=none recipe=fp16"},
      {"mtnlg530b_2240",
       "tp=8 cp=1 pp=35 ep=1 etp=1 dp=8 zero=0 mb=1 gbs=1920 schedule=1f1b recompute=full "
       "layers=even overlap=none offload=none "
       "recipe=bf16"},
      {"mb2606_llama31_405b_gb300_fp8_256g_gbs1536_pre",
       "tp=4 sp cp=1 pp=8x4 ep=1 etp=1 dp=8 zero=1 mb=1 gbs=1536 schedule=interleaved "
       "recompute=none layers=slots "
       "overlap=both+tensor offload=none recipe=fp8-current loss=fused"},
      {"mb2509_deepseekv3_h100_fp8alt_1024g_gbs8192_pre",
       "tp=2 sp cp=1 pp=8x4 ep=64 etp=1 dp=64 zero=1 mb=1 gbs=8192 schedule=interleaved-a2a "
       "recompute=mla_up+mlp "
       "layers=1/2/2/2/2/2/2/2/2/2/2/2/2/2/2/2/2/2/2/2/2/2/2/2/2/2/2/2/2/2/2/0 overlap=parameters "
       "offload=none recipe=fp8-block "
       "dispatch=one-sided loss=fused"},
      {"automodel_qwen3moe30b_8",
       "tp=1 cp=1 pp=1 ep=8 etp=1 dp=8 zero=3 mb=4 gbs=512 schedule=1f1b recompute=full "
       "layers=even overlap=both offload=none "
       "recipe=bf16-pure dispatch=one-sided"},
      {"automodel_llama370b_64",
       "tp=1 cp=2:ring pp=1 ep=1 etp=1 dp=32 zero=3 mb=1 gbs=128 schedule=1f1b recompute=full "
       "layers=even overlap=both "
       "offload=none recipe=bf16-pure"},
      {"titan_t1_fsdp_8",
       "tp=1 cp=1 pp=1 ep=1 etp=1 dp=8 zero=3 mb=2 gbs=16 schedule=1f1b recompute=norm+activation "
       "layers=even overlap=both "
       "offload=none recipe=bf16"},
      {"simumax_b200_deepseekv3_l4_tp1_ep4_pp2_dp4_mbc32_cef",
       "tp=1 cp=1 pp=2 ep=4 etp=1 dp=4 zero=1 mb=1 gbs=128 schedule=1f1b recompute=none "
       "layers=even overlap=none offload=none "
       "recipe=bf16 loss=fused"},
      {"bs_a100_195b_h12288_l106_a64_n384_dp8tp4pp12_mbs2_gbs2048_z1_r2",
       "tp=4 cp=1 pp=12 ep=1 etp=1 dp=8 zero=1 mb=2 gbs=2048 schedule=1f1b recompute=full "
       "layers=slots overlap=none offload=none "
       "recipe=bf16"},
      {"bs_v100_z3off_tp1_22_52b_64_1_22_1408_",
       "tp=1 cp=1 pp=1 ep=1 etp=1 dp=64 zero=3 mb=22 gbs=1408 schedule=1f1b recompute=full "
       "layers=even overlap=both "
       "offload=optimizer+weights recipe=fp16"},
      {"dlperf_megatron_2d_pp_2x8x2_512_2304x24",
       "tp=8 cp=1 pp=2 ep=1 etp=1 dp=2 zero=0 mb=8 gbs=512 schedule=1f1b recompute=full "
       "layers=even overlap=none offload=none "
       "recipe=fp16"},
      {"mpt_7b_a100_40gb_bf16_s16384_n8_mb1_ac",
       "tp=1 cp=1 pp=1 ep=1 etp=1 dp=8 zero=3 mb=1 gbs=32 schedule=1f1b recompute=full layers=even "
       "overlap=both offload=none "
       "recipe=bf16 loss=fused"},
      {"mleng_h200_8b_8k_zero2",
       "tp=1 cp=1 pp=1 ep=1 etp=1 dp=8 zero=2 mb=1 gbs=8 schedule=1f1b recompute=none layers=even "
       "overlap=both offload=none "
       "recipe=bf16"},
  };
  for (const auto& [id, text] : plans) EXPECT_EQ(plan_text(id), text) << id;
}

// Tables give SimuMax's runs the default of the argument; the source says of "_cef" that it is Transformer Engine's loss.
TEST(Translate, TakesTheLossThatSimuMaxRan) {
  auto run = run_named("simumax_b200_deepseekv3_l4_tp1_ep4_pp2_dp4_mbc32_cef");
  run.cross_entropy_fusion = "native";
  const auto t = translate(run);
  EXPECT_EQ(t.plan.loss, core::Loss::fused);
  EXPECT_TRUE(says(t.notes.assumed, "_cef"));
  run.id = "other";
  EXPECT_EQ(translate(run).plan.loss, core::Loss::unfused);
}

// What the model_config.yaml of Megatron-LM's tests have and no column says: nearly all sum gradients apart, which leaves
// nothing in their place, and give each of two cuBLAS handles 32 MiB, on A100 as well.
TEST(Translate, TakesWhatMegatronsTestsAskFor) {
  constexpr double MiB = 1024.0 * 1024.0;
  const auto gpu = core::load_gpu("a100-sxm-80");
  const auto of = [&](const std::string& test, const std::string& loss = "none", const std::string& date = "2026-08-19") {
    core::MeasuredRun run;
    run.id = "m", run.test_case = test, run.cross_entropy_fusion = loss, run.release = "main " + date;
    Notes notes;
    return framework_of(run, facts_of(run), "megatron", gpu, notes);
  };
  const auto usual = of("gpt/gpt3_mcore_te_tp2_pp2");
  EXPECT_TRUE(usual.sums_gradients_apart);
  EXPECT_EQ(usual.layer_gradient_placeholders, 0.0);
  EXPECT_EQ(usual.workspaces.all(true).value, (2 * 32 + 5 * 4) * MiB);
  EXPECT_EQ(of("gpt/gpt3_mcore_te_tp2_pp2_cp2_nondeterministic").workspaces.all(false).value, (2 * 8.125 + 4) * MiB);
  EXPECT_EQ(of("moe/gpt3_mcore_tp2_pp2_ep2_etp2_te_4experts2parallel").workspaces.all(true).value, (2 * 32 + 4) * MiB);
  const auto deferring = of("gpt/gpt3_mcore_te_tp2_pp2_resume_torch_dist_defer_embedding_wgrad_compute");
  EXPECT_EQ(deferring.deferred_output_gradients, 2);
  EXPECT_FALSE(deferring.sums_gradients_apart);
  EXPECT_EQ(deferring.layer_gradient_placeholders, 1.0);
  const auto peak = [](const core::Framework& f) {
    return f.loss(core::Loss::unfused).saved + f.loss(core::Loss::unfused).transient;
  };
  EXPECT_EQ(peak(usual), 6.0);
  EXPECT_EQ(peak(of("gpt/gpt3_mcore_te_tp2_pp2_cross_entropy_loss_fusion", "native")), 10.0);
  EXPECT_EQ(peak(of("gpt/gpt3_mcore_te_tp2_pp2_cross_entropy_loss_fusion", "native", "2025-10-21")), 14.0);
}

// Parameters as the sources state them, within their rounding; of DeepSeek-V3 without its module of
// multi-token prediction.
TEST(Translate, BuildsModelsOfTheStatedSize) {
  const auto billions = [](const std::string& id) {
    return static_cast<double>(
               core::count_parameters(translate(run_named(id)).setting.model).total) /
           1e9;
  };
  EXPECT_NEAR(billions("sc21_t1_145.6b"), 145.6, 0.1);
  EXPECT_NEAR(billions("mb2606_llama31_405b_gb300_fp8_256g_gbs1536_pre"), 405.9, 0.1);
  EXPECT_NEAR(billions("mb2606_deepseekv3_gb200_mxfp8_256g_gbs4096_pre"), 671.0, 0.1);
  EXPECT_NEAR(billions("mb260401_gptoss120b_h100_bf16_64g_gbs1280_pre"), 116.8, 0.1);
  EXPECT_NEAR(billions("mb2606_qwen3_30b_a3b_gb300_mxfp8_8g_gbs512_pre"), 30.5, 0.1);
  EXPECT_NEAR(
      billions("bs_a100_195b_h12288_l106_a64_n384_dp8tp4pp12_mbs2_gbs2048_z1_r2"), 195, 0.5);
}

TEST(Translate, BuildsTheMachineThatTheRowStates) {
  const auto& dlperf =
      translate(run_named("dlperf_megatron_2d_pp_2x8x2_512_2304x24")).setting.cluster;
  EXPECT_EQ(dlperf.gpu.name, "v100-sxm-16");
  EXPECT_EQ(dlperf.node.nics, 1);  // one port of 100 Gb/s for 8 GPUs
  EXPECT_DOUBLE_EQ(dlperf.node.nic_bandwidth.value, 12.5e9);
  const auto& jean_zay =
      translate(run_named("bs_a100_195b_h12288_l106_a64_n384_dp8tp4pp12_mbs2_gbs2048_z1_r2"))
          .setting.cluster;
  EXPECT_EQ(jean_zay.node.nics, 4);  // four links of 100 Gb/s
  const auto& rack =
      translate(run_named("mb2606_llama31_405b_gb300_fp8_256g_gbs1536_pre")).setting.cluster;
  EXPECT_EQ(rack.node.gpus, 4);
  EXPECT_EQ(rack.node.nvlink_domain, 64);
  EXPECT_EQ(rack.node.nics, 4);
  EXPECT_DOUBLE_EQ(rack.node.nic_bandwidth.value, 100e9);  // 800 Gb/s a GPU
  EXPECT_EQ(translate(run_named("bs_v100_perf_39b_32_8_4_512_82")).setting.cluster.node.name,
            "jean-zay-v100");
  EXPECT_NEAR(
      core::in_gibibytes(translate(run_named("titan_t1_fsdp_8")).setting.cluster.gpu.memory_usable),
      95.0,
      0.1);
}

TEST(Translate, KeepsStatesInTheFormatsOfTheRow) {
  // Megatron-Bridge: bf16 gradients, fp32 main weights and moments, weights in fp8 alone (1 + 1
  // byte with their transpose).
  const auto bridge =
      translate(run_named("mb2606_llama31_405b_gb300_fp8_256g_gbs1536_pre")).setting.recipe;
  EXPECT_EQ(bridge.gradient_bytes, 2.0);
  EXPECT_EQ(bridge.main_weight_bytes, 4.0);
  EXPECT_EQ(bridge.weight_bytes + bridge.weight_copy_bytes, 2.0);
  EXPECT_EQ(bridge.parameter_gather_bytes, 1.0);
  // FSDP: a shard of 4 (weights) + 4 (gradients) + 8 (moments) bytes, gradients reduced in fp32.
  const auto fsdp = translate(run_named("titan_t1_fsdp_8")).setting.recipe;
  EXPECT_EQ(fsdp.weight_bytes + fsdp.main_weight_bytes, 4.0);
  EXPECT_EQ(fsdp.gradient_bytes, 4.0);
  EXPECT_EQ(fsdp.gradient_reduce_bytes, 4.0);
  // NVFP4's layers kept high are those of a paper; the presets have none.
  const auto nvfp4 =
      translate(run_named("mb2606_llama31_405b_gb300_nvfp4_256g_gbs1536_pre")).setting.recipe;
  EXPECT_EQ(nvfp4.high_first + nvfp4.high_last, 0);
}

TEST(Translate, TakesThePaddedVocabularyAsItIs) {
  const auto t =
      translate(run_named("bs_a100_195b_h12288_l106_a64_n384_dp8tp4pp12_mbs2_gbs2048_z1_r2"));
  EXPECT_EQ(t.setting.model.vocab, 250880);
  EXPECT_EQ(t.setting.framework.vocab_multiple, 1);
}

// Megatron-LM by its age: weights' gradients are added inside their GEMMs from 2022 on; DeepSpeed's branch never. torchtitan is
// eager where nothing says that it compiles.
TEST(Translate, TakesTheFrameworkOfTheStackAndItsAge) {
  const auto framework = [](const std::string& id) { return translate(run_named(id)).setting.framework; };
  EXPECT_EQ(framework("sc21_t1_76.1b").name, "megatron-2021");
  EXPECT_TRUE(framework("sc21_t1_76.1b").sums_gradients_apart);
  auto later = run_named("sc21_t1_76.1b");
  later.year = 2022;
  EXPECT_EQ(translate(later).setting.framework.name, "megatron-2021");
  EXPECT_FALSE(translate(later).setting.framework.sums_gradients_apart);
  later.gradient_fusion = false;
  EXPECT_TRUE(translate(later).setting.framework.sums_gradients_apart);
  const auto deepspeed = framework("bs_a100_195b_h12288_l106_a64_n384_dp8tp4pp12_mbs2_gbs2048_z1_r2");
  EXPECT_EQ(deepspeed.name, "megatron-deepspeed");
  EXPECT_TRUE(deepspeed.sums_gradients_apart && deepspeed.keeps_gradients);
  EXPECT_EQ(framework("titan_t1_fsdp_8").name, "fsdp-eager");
  auto compiled = run_named("titan_t1_fsdp_8");
  compiled.notes = "torch.compile";
  EXPECT_EQ(translate(compiled).setting.framework.name, "fsdp");
}

TEST(Translate, SaysWhatItAssumedAndWhatItIgnored) {
  const auto t = translate(run_named("mb260401_gptoss120b_h100_bf16_64g_gbs1280_pre"));
  EXPECT_TRUE(says(t.notes.assumed, "evenly loaded"));
  EXPECT_TRUE(says(t.notes.ignored, "clamp"));
  EXPECT_TRUE(says(translate(run_named("titan_t1_fsdp_8")).notes.ignored, "every second GEMM"));
  EXPECT_TRUE(says(translate(run_named("mleng_h200_8b_8k_zero2")).notes.assumed,
                   "a batch of one micro-batch"));
}

TEST(Translate, RefusesWhatItCannotSay) {
  const auto run = run_named("sc21_t1_76.1b");
  EXPECT_EQ(why_not_translated(run, [](auto& r) { r.model_family = "hybrid_mamba_moe"; }),
            "model_family hybrid_mamba_moe: its blocks are not known from the columns of a table");
  EXPECT_EQ(why_not_translated(run, [](auto& r) { r.gpu = "abacus"; }),
            "gpu abacus: no part of data/gpus is known by this name");
  EXPECT_EQ(why_not_translated(run, [](auto& r) { r.precision = "int3"; }),
            "precision int3: no recipe stands for it");
  EXPECT_EQ(why_not_translated(run, [](auto& r) { r.recompute.clear(); }),
            "recompute is not stated");
  EXPECT_EQ(why_not_translated(run, [](auto& r) { r.dp = 16; }),
            "tp x cp x pp x dp is 512, not the 1024 GPUs of the row");
  EXPECT_EQ(why_not_translated(run, [](auto& r) { r.micro_batch = 3; }),
            "batch 1792 does not divide by micro-batch 3 x dp 32");
  EXPECT_EQ(why_not_translated(run, [](auto& r) { r.vocab.reset(), r.padded_vocab.reset(); }),
            "the vocabulary is not stated");
  EXPECT_EQ(why_not_translated(run, [](auto& r) { r.precision = "MXFP8"; }),
            "recipe mxfp8: a100-sxm-80 does not apply its scales");
  EXPECT_EQ(why_not_translated(run, [](auto& r) { r.schedule = "a\nb"; }),
            "schedule a\\x0ab: not known");
}

// The first row of vTrain's multi-node table: what it leaves open is as in the configurations of
// its repository.
TEST(Translate, ReadsVTrainsRows) {
  const auto table = core::parse_measured_table(
      "id,params_total_b,gpu,gpus,gpus_per_node,layers,hidden,heads,seq_len,tp,dp,pp,micro_batch,"
      "global_batch_sequences,recompute,schedule,step_time_s_is_ms_over_1000,iteration_time_ms\n"
      "vtm_0000,3.6,A100,64,8,30,3072,32,2048,1,64,1,8,512,full,1f1b,3.566500,3566.5\n",
      "v.csv");
  const auto t = translate(table.runs.front());
  EXPECT_EQ(core::to_text(t.plan),
            "tp=1 cp=1 pp=1 ep=1 etp=1 dp=64 zero=0 mb=8 gbs=512 schedule=1f1b recompute=full "
            "layers=even overlap=none "
            "offload=none recipe=fp16");
  EXPECT_NEAR(static_cast<double>(core::count_parameters(t.setting.model).total) / 1e9, 3.6, 0.05);
  EXPECT_EQ(t.setting.attention, core::AttentionKernel::unfused);
  EXPECT_TRUE(says(t.notes.assumed, "vocabulary 51200"));
}

core::MeasuredRun functional_test(const std::string& name,
                                  const std::string& columns,
                                  const std::string& cells) {
  return core::parse_measured_table(
             "id,test_case,gpu,gpus,layers,hidden,heads,seq_len,micro_batch,global_batch_sequences,"
             "max_mem_allocated_gib,bf16,padded_vocab," +
                 columns + "\nmlmft_x," + name + ",H100-80GB,8,12,512,8,1024,4,32,2.2,True,50304," +
                 cells + "\n",
             "m.csv")
      .runs.front();
}

TEST(Translate, ReadsFunctionalTests) {
  const auto plan =
      [](const std::string& name, const std::string& columns, const std::string& cells) {
        return translate(functional_test(name, columns, cells)).plan;
      };
  const auto virtual_stages =
      plan("gpt/vp1", "pp,layers_per_virtual_stage,distributed_optimizer", "4,1,True");
  EXPECT_EQ(virtual_stages.vpp, 3);  // 12 layers, one for each of 4 x 3 stages
  EXPECT_EQ(virtual_stages.schedule, "interleaved");
  EXPECT_EQ(virtual_stages.zero, 1);
  EXPECT_EQ(plan("gpt/uneven", "pp,pp_layout", "4,first stage 2 layers").layers,
            (std::vector<std::int64_t>{2, 4, 4, 2}));
  const auto instances =
      plan("gpt/multi_dist_optimizer_instances", "tp,distributed_optimizer", "2,True");
  EXPECT_EQ(instances.shard.optimizer, 2);  // half of the 4 replicas
  EXPECT_EQ(why_not_translated(functional_test("bert/x", "tp", "2"), [](auto&) {}),
            "test case bert/x: an encoder");
}

TEST(Layout, RepeatsStagesAndGroups) {
  EXPECT_EQ(layers_of_layout("Et*3|(tt|)*6mL"),
            (std::vector<std::int64_t>{3, 2, 2, 2, 2, 2, 2, 0}));
  EXPECT_EQ(layers_of_layout("Ett|tL"), (std::vector<std::int64_t>{2, 1}));
  for (const char* bad :
       {"Etx", "(tt|", "t*", "t*0", ")", "(((((((((((t)))))))))))", "((t*9999)*9999)*9999"}) {
    EXPECT_THROW(layers_of_layout(bad), core::InputError) << bad;
  }
}

// What a source says elsewhere holds for its runs alone, and only where all that tells them does.
TEST(SourceFacts, HoldForTheRunsThatTheyTell) {
  core::MeasuredRun run;
  run.id = "bs_a100_test";
  run.gpu = "A100-80GB-SXM";
  run.source_ref = "bigscience-workshop/bigscience train/tr11-176B-ml/chronicles-prequel.md";
  run.gpus = 319;
  EXPECT_EQ(facts_of(run).node, "jean-zay-a100");
  EXPECT_FALSE(facts_of(run).launches_wait);
  run.gpus = 320;
  EXPECT_TRUE(facts_of(run).launches_wait);
  EXPECT_EQ(facts_of(run).says.size(), 2u);
  run.gpu = "V100-32GB-SXM";
  EXPECT_EQ(facts_of(run).node, "");
  core::MeasuredRun other;
  other.id = "simumax_like";
  EXPECT_FALSE(facts_of(other).cross_entropy_fusion);
  other.id = "simumax_case_cef";
  EXPECT_EQ(facts_of(other).cross_entropy_fusion, "te");
  EXPECT_TRUE(facts_of({}).says.empty());
}

// Presets of 26.06 with graphs of full iterations; DeepSeek-V3's for GB200 leaves attention in bf16.
TEST(SourceFacts, SayWhichPresetsHaveAttentionInFp8) {
  core::MeasuredRun run;
  run.id = "mb2606_deepseekv3_gb300_mxfp8_256g_gbs4096_pre";
  EXPECT_FALSE(facts_of(run).fp8_attention);
  run.cuda_graphs = "full_iteration";
  EXPECT_TRUE(facts_of(run).fp8_attention && facts_of(run).fp8_output);
  run.id = "mb2606_deepseekv3_gb200_mxfp8_256g_gbs4096_pre";
  EXPECT_FALSE(facts_of(run).fp8_attention);
  EXPECT_TRUE(facts_of(run).fp8_output);
  run.id = "mb2606_qwen3_30b_a3b_gb200_mxfp8_8g_gbs512_pre";
  EXPECT_TRUE(facts_of(run).fp8_attention);
  EXPECT_FALSE(facts_of(run).fp8_output);
}

}  // namespace
}  // namespace simulator
