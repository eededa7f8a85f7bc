"""Mixtures of experts as graphs of static shape.

transformers computes each expert on the tokens that chose it, whose number
depends on the data. Here every expert sees every token, and what a token did
not choose counts 0: the same numbers and gradients. Oriel finds the choices
again, and computes these alone (docs/import.md).
"""

import inspect
import types

import torch

NAME = "oriel_dense"


def dense_experts(self, hidden_states, top_k_index, top_k_weights):
    """For a module of transformers' experts interface.

    hidden_states [tokens, hidden]; top_k_index and top_k_weights [tokens, k],
    where an index that is no expert's counts nothing. Returns [tokens, hidden].
    """
    up = self.gate_up_proj if self.has_gate else self.up_proj
    experts = self.down_proj.shape[0]
    every = torch.arange(experts, device=top_k_index.device)
    share = ((top_k_index.unsqueeze(-1) == every).to(top_k_weights.dtype) *
             top_k_weights.unsqueeze(-1)).sum(1)  # [tokens, experts]
    rows = "ehi" if self.is_transposed else "eih"
    inner = torch.einsum(f"th,{rows}->eti", hidden_states, up)
    if self.has_bias:
        bias = self.gate_up_proj_bias if self.has_gate else self.up_proj_bias
        inner = inner + bias.unsqueeze(1)
    inner = self._apply_gate(inner) if self.has_gate else self.act_fn(inner)
    rows = "eih" if self.is_transposed else "ehi"
    result = torch.einsum(f"eti,{rows}->eth", inner, self.down_proj)
    if self.has_bias:
        result = result + self.down_proj_bias.unsqueeze(1)
    if self.has_post_expert_norm:
        result = self.post_expert_norm(result)
    return (result * share.t().unsqueeze(-1)).sum(0).to(hidden_states.dtype)


def make_dense(module):
    """Lets all experts of the module be computed so."""
    try:
        from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS
    except ImportError:  # a version without the interface
        return
    ALL_EXPERTS_FUNCTIONS.register(NAME, dense_experts)
    for part in module.modules():
        if hasattr(part, "has_gate") and hasattr(part, "down_proj"):
            part.config._experts_implementation = NAME
        elif _is_outside(part):
            part.has_gate = True
            part.has_bias = part.has_post_expert_norm = False
            part.is_transposed = False
            part.forward = types.MethodType(dense_experts, part)


def _is_outside(part):
    """Whether these are gated experts of a class that has left the interface,
    for a gate of its own, but has the interface's parameters."""
    return (hasattr(part, "_apply_gate") and
            {name for name, _ in part.named_parameters()} ==
            {"gate_up_proj", "down_proj"} and
            list(inspect.signature(part.forward).parameters) ==
            ["hidden_states", "top_k_index", "top_k_weights"] and
            part.gate_up_proj.shape[2] == part.down_proj.shape[1])
