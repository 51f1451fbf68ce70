#pragma once

#include <cmath>

#include "planner/budget/loss.h"

namespace planner {

// L = E + A / N^alpha + B / D^beta, as a law of its own: the refitted constants of Besiroglu et al. 2024 (arXiv 2404.10102).
struct Chinchilla {
  double A = 477.8259, B = 2143.417, E = 1.817218, alpha = 0.3473105, beta = 0.3671724;

  double operator()(double N, double D, double = 0.0) const { return E + A * std::pow(N, -alpha) + B * std::pow(D, -beta); }
  // Of N* = G (C / 6)^a, D* = (C / 6)^b / G.
  double G() const { return std::pow(alpha * A / (beta * B), 1.0 / (alpha + beta)); }
  double best_parameters(double C) const { return G() * std::pow(C / 6.0, beta / (alpha + beta)); }
  double best_tokens(double C) const { return std::pow(C / 6.0, alpha / (alpha + beta)) / G(); }
  double best_loss(double C) const { return (*this)(best_parameters(C), best_tokens(C)); }
};

inline LossModel chinchilla_model(const Chinchilla& law = {}) {
  LossModel model;
  model.name = "chinchilla";
  model.loss = law;
  return model;
}

}  // namespace planner
