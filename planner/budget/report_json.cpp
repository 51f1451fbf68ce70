#include "planner/budget/report.h"
#include "simulator/report.h"
#include "simulator/version.h"

namespace planner {

namespace {

void optional_member(core::JsonWriter& json, const char* key, const std::optional<double>& value) {
  json.key(key);
  value ? json.value(*value) : json.null();
}

void write_request(core::JsonWriter& json, const BudgetRequest& r) {
  json.key("request").begin_object();
  json.key("gpus").begin_list();
  for (const auto gpus : r.gpus) json.value(gpus);
  json.end_list();
  json.member("budget", name_of(r.budget.kind))
      .member("amount", r.budget.amount)
      .member("gpu", r.machine.gpu)
      .member("cluster", r.machine.cluster)
      .member("seq", r.machine.seq)
      .member("framework", r.machine.framework)
      .member("attention", r.machine.attention)
      .member("law", r.law)
      .member("family", r.model.empty() ? r.family : "")
      .member("model", r.model)
      .member("sizes", r.sizes);
  json.key("recipes").begin_list();
  for (const auto& recipe : r.recipes) json.value(recipe);
  json.end_list();
  json.member("inference_tokens", r.inference_tokens).member("serving_mfu", r.serving_mfu);
  optional_member(json, "unique_tokens", r.unique_tokens);
  json.end_object();
}

void write_law(core::JsonWriter& json, const LossModel& law) {
  json.key("law")
      .begin_object()
      .member("name", law.name)
      .member("formula", law.formula)
      .member("counts", name_of(law.counts))
      .member("source", law.source)
      .member("draws", static_cast<std::int64_t>(law.draws.size()))
      .end_object();
}

void write_shape(core::JsonWriter& json, const std::optional<Shape>& shape) {
  json.key("shape");
  if (!shape) {
    json.null();
    return;
  }
  json.begin_object()
      .member("hidden", shape->hidden)
      .member("layers", shape->layers)
      .member("heads", shape->heads)
      .member("kv_heads", shape->kv_heads)
      .member("head_dim", shape->head_dim)
      .member("ffn", shape->ffn)
      .member("tied_embeddings", shape->tied)
      .end_object();
}

void write_choice(core::JsonWriter& json, const BudgetReport& b, const SizeChoice& c) {
  const auto& q = b.setup.question;
  const auto& size = q.sizes[c.size];
  const auto& t = c.throughput;
  json.begin_object().member("model", size.name).member("parameters", size.parameters).member("active_parameters", size.active);
  write_shape(json, b.setup.shapes[c.size]);
  json.member("tokens", c.training.tokens)
      .member("epochs", q.unique_tokens ? c.training.tokens / *q.unique_tokens : 1.0)
      .member("tokens_per_parameter", c.training.tokens / size.parameters)
      .member("gpus", q.pools[c.pool].means.gpus)
      .member("recipe", q.pools[c.pool].recipe.recipe)
      .member("loss", c.loss)
      .member("loss_low", c.loss_low)
      .member("loss_high", c.loss_high)
      .member("plan", core::to_text(t.plan))
      .member("fits", simulator::name_of(t.fits))
      .member("peak_memory_GiB", t.peak_memory_GiB)
      .member("step_time_s", t.step_s)
      .member("step_time_low_s", t.low_s)
      .member("step_time_high_s", t.high_s)
      .member("tokens_per_s_per_gpu", t.tokens_per_s_per_gpu)
      .member("mfu", t.mfu)
      .member("flops_convention", "model_full")
      .member("days", c.training.days)
      .member("training_flops_6ND", c.training.flops);
  optional_member(json, "usd", c.training.usd);
  json.member("serving_gpu_days", c.training.serving_gpu_days);
  optional_member(json, "serving_usd", c.training.serving_usd);
  json.end_object();
}

void write_payback(core::JsonWriter& json, const char* key, const Payback& p) {
  json.key(key).begin_object().member("same_tokens_more_parameters", p.parameters);
  optional_member(json, "same_tokens_per_parameter", p.both);
  optional_member(json, "same_parameters_more_tokens", p.tokens);
  json.end_object();
}

void write_verdicts(core::JsonWriter& json, const BudgetReport& b) {
  const auto& q = b.setup.question;
  json.key("recipes").begin_list();
  for (const auto& v : b.answer.verdicts) {
    const auto& pool = q.pools[v.pool];
    json.begin_object()
        .member("recipe", pool.recipe.recipe)
        .member("gpus", pool.means.gpus)
        .member("against", q.pools[v.base_pool].recipe.recipe)
        .member("at_parameters", q.sizes[v.size].parameters)
        .member("verdict", name_of(v.pays))
        .member("loss", v.loss)
        .member("loss_low", v.loss_low)
        .member("loss_high", v.loss_high)
        .member("loss_against", v.base_loss)
        .member("speed", v.speed)
        .member("asked_of_speed_low", v.asked_low)
        .member("asked_of_speed_high", v.asked_high)
        .member("effective_parameters", pool.recipe.parameters.value)
        .member("effective_parameters_low", pool.recipe.parameters.low)
        .member("effective_parameters_high", pool.recipe.parameters.high)
        .member("effective_tokens", pool.recipe.tokens.value);
    write_payback(json, "compute_factor", v.needed);
    write_payback(json, "compute_factor_low", v.needed_low);
    write_payback(json, "compute_factor_high", v.needed_high);
    json.member("flag", pool.recipe.flag).member("source", pool.recipe.source).end_object();
  }
  json.end_list();
  json.key("unavailable_recipes").begin_list();
  for (const auto& u : b.setup.unavailable) json.begin_object().member("recipe", u.recipe).member("why", u.why).end_object();
  json.end_list();
}

void write_bounded(core::JsonWriter& json, const BudgetReport& b) {
  const auto& q = b.setup.question;
  json.key("bounded_sizes").begin_list();
  for (const auto& s : b.answer.chosen.bounded) {
    json.begin_object()
        .member("model", q.sizes[s.size].name)
        .member("parameters", q.sizes[s.size].parameters)
        .member("gpus", q.pools[s.pool].means.gpus)
        .member("recipe", q.pools[s.pool].recipe.recipe);
    optional_member(json, "loss_at_least", s.loss_at_least);
    json.member("why", s.why).end_object();
  }
  json.end_list();
}

void write_best(core::JsonWriter& json, const BudgetReport& b) {
  json.key("best");
  if (b.answer.best)
    write_choice(json, b, b.answer.chosen.choices[*b.answer.best]);
  else
    json.null();
  json.key("optimum_90_percent");
  if (!b.answer.spread) {
    json.null();
    return;
  }
  const auto& s = *b.answer.spread;
  json.begin_object()
      .member("parameters_low", s.parameters_low)
      .member("parameters_high", s.parameters_high)
      .member("tokens_low", s.tokens_low)
      .member("tokens_high", s.tokens_high)
      .member("draws", static_cast<std::int64_t>(s.draws))
      .end_object();
}

void write_texts(core::JsonWriter& json, const char* key, const std::vector<std::string>& texts) {
  json.key(key).begin_list();
  for (const auto& text : texts) json.value(text);
  json.end_list();
}

}  // namespace

std::string budget_json(const BudgetReport& b) {
  const auto& chosen = b.answer.chosen;
  core::JsonWriter json;
  json.begin_object().member("version", simulator::version());
  write_request(json, b.request);
  write_law(json, b.setup.question.law);
  write_best(json, b);
  json.key("choices").begin_list();
  for (const auto& c : chosen.choices) write_choice(json, b, c);
  json.end_list().key("pareto").begin_list();
  for (const auto i : b.answer.pareto) json.value(static_cast<std::int64_t>(i));
  json.end_list();
  write_verdicts(json, b);
  json.member("searched_sizes", static_cast<std::int64_t>(chosen.choices.size()));
  write_bounded(json, b);
  write_texts(json, "assumptions", b.setup.assumptions);
  write_texts(json, "warnings", b.answer.warnings);
  if (!b.reproducible) json.member("elapsed_s", b.answer.elapsed_s);
  simulator::write_sources(json, b.setup.pools.front().setting);
  return json.end_object().text();
}

}  // namespace planner
