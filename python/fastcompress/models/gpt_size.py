"""The size of a GPT in memory, from its configuration alone: parameters exactly, activations estimated."""

from __future__ import annotations

from fastcompress.models.attention_residuals import num_sources
from fastcompress.models.blocks import mlp_hidden
from fastcompress.models.cross_entropy import bytes_per_logit, piece_of
from fastcompress.models.engram import CONVOLUTION_TAPS, table_sizes
from fastcompress.models.fused_heads import HAS_KERNEL, is_head_size
from fastcompress.models.gpt_settings import GPTSettings
from fastcompress.models.protocol import Kernels, ModelSize

MASKED_BYTES = 16  # of a logit that may be illegal: as bytes_per_logit on a CPU, and its mask and the masked copy


def size_of(config: GPTSettings, device_type: str, kernels: Kernels) -> ModelSize:
    """Estimate the size of ``config.build(kernels)`` on a kind of device."""
    tables = config.vocab_size * config.width * (1 if config.tied_head else 2)
    # The fused kernel keeps no scores, but on the CPU there is none with dropout.
    has_scores = kernels.attention == "plain" or (config.dropout > 0 and device_type == "cpu")
    scores = 3 * config.num_heads * config.context_length if has_scores else 0
    # In half precision, that is, as cards usually train; in float32 they keep what CPUs do.
    is_fused = device_type == "cuda" and HAS_KERNEL and is_head_size(config.width // config.num_heads)
    block, others = _block_activations(config, is_fused=is_fused) + scores, _option_activations(config)
    return ModelSize(
        parameters=tables + config.num_layers * _block_parameters(config) + _other_parameters(config),
        table_parameters=tables,
        matrix_parameters=_matrix_parameters(config),
        activations_per_row=config.context_length * (config.num_layers * block + others),
        # Of each block the inputs of attention, MLP and norms; of one, all of it with its gradients.
        recomputed_per_row=config.context_length * (config.num_layers * 6 * config.width + block + block // 2 + others),
        logits_per_row=config.context_length * config.vocab_size,
        logits_at_once=max(kernels.logits_at_once or piece_of(device_type), config.vocab_size),
        bytes_per_logit=MASKED_BYTES if config.canonical else bytes_per_logit(device_type),
    )


def _mlp_inputs(config: GPTSettings) -> int:
    """Return the number of outputs of the MLP's first matrix, which for SwiGLU include the gates."""
    hidden = mlp_hidden(config.mlp, config.width)
    return 2 * hidden if config.mlp == "swiglu" else hidden


def _norm_parameters(config: GPTSettings) -> int:
    return {"layernorm": (1 + config.bias) * config.width, "rmsnorm_gain": config.width}.get(config.norm, 0)


def _qkv_width(config: GPTSettings) -> int:
    return config.width + 2 * config.num_kv_heads * (config.width // config.num_heads)


def _block_matrices(config: GPTSettings) -> int:
    """The numbers in the matrices that every block has."""
    hidden, gates = mlp_hidden(config.mlp, config.width), config.num_heads if config.attention_gate else 0
    return config.width * (_qkv_width(config) + config.width + _mlp_inputs(config) + hidden + gates)


def _memory_matrices(config: GPTSettings) -> int:
    """The numbers in the matrices of a memory of n-grams; its convolution has two dimensions, too."""
    return (2 * config.memory_width + CONVOLUTION_TAPS) * config.width


def _matrix_parameters(config: GPTSettings) -> int:
    memories = len(config.engram_layers) * _memory_matrices(config)
    return config.num_layers * _block_matrices(config) + memories


def _block_parameters(config: GPTSettings) -> int:
    """Those that every block has."""
    block = _block_matrices(config) + 2 * _norm_parameters(config)
    if config.bias:
        block += _qkv_width(config) + config.width + _mlp_inputs(config) + config.width
    if config.exclusive_attention == "gated":
        block += config.num_heads
    return block


def _num_branches(config: GPTSettings) -> int:
    return 2 * config.num_layers + len(config.engram_layers)


def _other_parameters(config: GPTSettings) -> int:
    """Count the parameters outside blocks, and those that only some blocks have."""
    width = config.width
    others = _norm_parameters(config)
    if config.positions == "learned":
        others += config.context_length * width
    if config.value_residual:
        others += 2 * (config.num_layers - 1)
    if config.attention_residuals != "off":
        others += _num_branches(config) * width
    if config.spelled_bytes:
        others += (256 * config.spelled_bytes + 1) * width * (1 if config.tied_head else 2)
    if config.engram_layers:
        num_tables = len(config.engram_orders) * config.engram_heads
        rows = sum(table_sizes(config.engram_rows, num_tables))
        memory = rows * (config.memory_width // num_tables) + _memory_matrices(config)
        others += len(config.engram_layers) * memory
    return others


def _block_activations(config: GPTSettings, *, is_fused: bool) -> int:
    """Return the number of values that autograd keeps per event and block, without attention scores.

    ``is_fused``: heads that are both rotated and normalized are so in one pass, which keeps nothing else.
    """
    width, hidden = config.width, mlp_hidden(config.mlp, config.width)
    kept = 12 * width  # two norms and their inputs, queries, keys, values, attention's output, and their gradients
    # GELU: its input and output; SwiGLU: gate, up, silu(gate), product.
    kept += {"relu2": 1, "gelu": 2, "swiglu": 4}[config.mlp] * hidden
    if not (is_fused and config.positions == "rope" and config.qk_norm):
        kept += 4 * width if config.positions == "rope" else 0
        kept += 4 * width if config.qk_norm else 0
    kept += 3 * width if config.dropout else 0
    kept += 2 * width if config.value_residual else 0
    kept += 3 * width if config.exclusive_attention != "off" else 0
    kept += 2 * width if config.attention_gate else 0
    return kept


def _option_activations(config: GPTSettings) -> int:
    """Return the same for parts that are not in every block: sources of attention residuals, and memories."""
    kept = 0
    if config.attention_residuals != "off":
        groups = None if config.attention_residuals == "full" else config.residual_groups
        branches = _num_branches(config)
        kept += 2 * config.width * sum(num_sources(i, branches, groups) for i in range(1, branches + 1))
    kept += len(config.engram_layers) * (config.memory_width + (6 + 2 * CONVOLUTION_TAPS) * config.width)
    return kept
