"""How each known `model_type` reads its configuration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from servelab.plan import config
from servelab.plan.config import Count, Fields, dense, experts, times
from servelab.plan.shapes import Shape, attention, decoder, head_dim, windows


def llama(c: Fields) -> Shape:
    """Llama, Mistral, SmolLM, Qwen 2 and 3: one block; they differ in biases and norms."""
    kind = c.text("model_type")
    bias = c.flag("attention_bias", kind in ("qwen2", "mimo"))
    norm = 2 * c.whole("head_dim") if kind.startswith("qwen3") else 0
    layer = attention(c, bias=bias, out_bias=bias and kind == "llama", qk_norm=norm)
    layer += dense(c.whole("hidden_size"), c.whole("intermediate_size"))
    depth = c.whole("num_hidden_layers")
    every = c.has("sliding_window") and c.flag("use_sliding_window", kind != "qwen2")
    return decoder(c, times(layer, depth), **(windows(c, depth) if every else {}))


def gemma(c: Fields) -> Shape:
    """Gemma 2 and 3: tied, four norms a layer, every second or all but every sixth layer windowed."""
    second = c.text("model_type") == "gemma2"
    dim, depth = c.whole("head_dim", 256), c.whole("num_hidden_layers")
    layer = attention(c, qk_norm=0 if second else 2 * dim)
    layer += dense(c.whole("hidden_size"), c.whole("intermediate_size"))
    pattern = c.whole("sliding_window_pattern", 2 if second else 6)
    return decoder(c, times(layer, depth), norms=4, tied=True, **windows(c, depth - depth // pattern))


def gpt2(c: Fields) -> Shape:
    """GPT-2: learned positions, biases everywhere, norms with biases."""
    hidden, depth = c.whole("n_embd"), c.whole("n_layer")
    heads, context, vocab = c.whole("n_head"), c.whole("n_positions"), c.whole("vocab_size")
    if hidden % heads:
        raise ValueError(f"config.json: n_embd={hidden} is no multiple of n_head={heads}; correct one")
    width = c.whole("n_inner", 4 * hidden)
    layer = config.grouped(hidden, heads, heads, hidden // heads, bias=True, out_bias=True)
    layer += dense(hidden, width, gated=False, bias=True) + Counter(norms=4 * hidden)
    count = times(layer, depth) + Counter(embedding=(vocab + context) * hidden, norms=2 * hidden)
    return Shape("", hidden, vocab, heads, heads, hidden // heads, context, depth, count, layers=depth)


def mixture(c: Fields) -> Shape:
    """Mixtral, Qwen 3 MoE, MiniMax M2, GLM 4.5: routed experts in all but the first layers."""
    kind, depth = c.text("model_type"), c.whole("num_hidden_layers")
    heads, dim = c.whole("num_attention_heads"), head_dim(c)
    kv_heads = c.whole("num_key_value_heads", heads)
    norm = {"qwen3_moe": 2 * dim, "minimax_m2": (heads + kv_heads) * dim}.get(kind, 0)
    if kind == "glm4_moe" and c.flag("use_qk_norm", False):
        norm = 2 * dim
    each = attention(c, bias=c.flag("attention_bias", False), qk_norm=norm)
    return mixed(c, times(each, depth), correction=kind in ("glm4_moe", "minimax_m2"))


def mixed(c: Fields, layers: Count, *, correction: bool, **more: Any) -> Shape:
    """A decoder with `layers` of attention and a mixture of experts after the first dense layers."""
    hidden, depth = c.whole("hidden_size"), c.whole("num_hidden_layers")
    count = first_of(c, "num_experts", "num_local_experts", "n_routed_experts")
    width = c.whole("moe_intermediate_size") if c.has("moe_intermediate_size") else c.whole("intermediate_size")
    plain = c.whole("first_k_dense_replace", 0, least=0)
    block = experts(hidden, count, width, correction=correction)
    shared = c.whole("n_shared_experts", 0, least=0) * width
    if shared:
        block += dense(hidden, shared, part="shared")
    if c.has("shared_expert_intermediate_size"):  # of Qwen, with a gate
        block += dense(hidden, c.whole("shared_expert_intermediate_size"), part="shared") + Counter(router=hidden)
    layers = layers + times(block, depth - plain)
    if plain:
        layers += times(dense(hidden, c.whole("intermediate_size")), plain)
    active = first_of(c, "num_experts_per_tok")
    if active > count:
        raise ValueError(f"config.json: num_experts_per_tok={active} of {count} experts; correct one")
    return decoder(c, layers, experts=count, active=active, expert_layers=depth - plain, **more)


def first_of(c: Fields, *names: str) -> int:
    """The first of these fields that is there."""
    return c.whole(next((name for name in names if c.has(name)), names[0]))


def deepseek(c: Fields) -> Shape:
    """DeepSeek V2 to V3.2, Kimi K2, GLM 5: latent attention and, in the later ones, an indexer."""
    hidden, heads, depth = c.whole("hidden_size"), c.whole("num_attention_heads"), c.whole("num_hidden_layers")
    ranks = c.whole("q_lora_rank", 0, least=0), c.whole("kv_lora_rank")
    nope, rope, value = c.whole("qk_nope_head_dim"), c.whole("qk_rope_head_dim"), c.whole("v_head_dim")
    each, copied = config.latent(hidden, heads, *ranks, nope, rope, value), hidden * (sum(ranks) + rope)
    if c.has("index_n_heads"):
        index = config.indexer(hidden, ranks[0], c.whole("index_n_heads"), c.whole("index_head_dim"))
        each, copied = each + index, copied + index["attention"]
    return mixed(
        c, times(each, depth), correction=c.text("model_type") != "deepseek_v2", kv_heads=heads, head_dim=nope + rope,
        value_dim=value, latent=(ranks[1], rope), copied=depth * copied,
    )  # fmt: skip


def gpt_oss(c: Fields) -> Shape:
    """gpt-oss: biases everywhere, an attention sink per head, every second layer windowed."""
    hidden, depth = c.whole("hidden_size"), c.whole("num_hidden_layers")
    each = attention(c, bias=True, out_bias=True, sinks=True)
    count = c.whole("num_local_experts")
    each += experts(hidden, count, c.whole("intermediate_size"), bias=True)
    return decoder(
        c, times(each, depth), experts=count, active=c.whole("num_experts_per_tok"), expert_layers=depth,
        **windows(c, depth // 2),
    )  # fmt: skip


def phi3(c: Fields) -> Shape:
    """Phi 3 and 4: Llama's block; some are windowed in every layer."""
    depth = c.whole("num_hidden_layers")
    layer = attention(c) + dense(c.whole("hidden_size"), c.whole("intermediate_size"))
    return decoder(c, times(layer, depth), **windows(c, depth))


def qwen_next(c: Fields) -> Shape:
    """Qwen 3 Next and 3.5: every fourth layer attends, with a gate; the others are delta nets."""
    hidden, depth = c.whole("hidden_size"), c.whole("num_hidden_layers")
    full = depth // c.whole("full_attention_interval", 4)
    dim = c.whole("head_dim")
    heads = c.whole("linear_num_key_heads"), c.whole("linear_num_value_heads")
    dims = c.whole("linear_key_head_dim"), c.whole("linear_value_head_dim")
    kernel = c.whole("linear_conv_kernel_dim", 4)
    layers = times(attention(c, qk_norm=2 * dim, gate=True), full)
    layers += times(config.delta_net(hidden, *heads, *dims, kernel), depth - full)
    mixed_width = 2 * heads[0] * dims[0] + heads[1] * dims[1]
    state = heads[1] * dims[0] * dims[1] + mixed_width * (kernel - 1)
    kept: dict[str, Any] = {"full": full, "recurrent": depth - full, "state": state}
    if c.has("num_experts"):
        return mixed(c, layers, correction=False, **kept)
    return decoder(c, layers + times(dense(hidden, c.whole("intermediate_size")), depth), **kept)


def nemotron(c: Fields) -> Shape:
    """Nemotron-H: a layer is one block, named by a letter of `hybrid_override_pattern`: M Mamba-2, * attention, - a
    feed-forward block, E experts; squared ReLU, no gates."""
    hidden, pattern = c.whole("hidden_size"), c.text("hybrid_override_pattern")
    if set(pattern) - set("M*-E") or len(pattern) != c.whole("num_hidden_layers"):
        raise ValueError("config.json: hybrid_override_pattern has to hold M, *, - or E for each of num_hidden_layers")
    heads, dim, groups = c.whole("mamba_num_heads"), c.whole("mamba_head_dim"), c.whole("n_groups")
    state, kernel = c.whole("ssm_state_size"), c.whole("conv_kernel", 4)
    layers = times(config.mamba2(hidden, heads, dim, groups, state, kernel), pattern.count("M"))
    layers += times(attention(c), pattern.count("*"))
    if "-" in pattern:
        layers += times(dense(hidden, c.whole("intermediate_size"), gated=False), pattern.count("-"))
    more: dict[str, Any] = {}
    if "E" in pattern:
        count = c.whole("n_routed_experts")
        block = experts(hidden, count, c.whole("moe_intermediate_size"), gated=False, correction=True)
        block += dense(hidden, c.whole("moe_shared_expert_intermediate_size"), gated=False, part="shared")
        layers += times(block, pattern.count("E"))
        more = {"experts": count, "active": c.whole("num_experts_per_tok"), "expert_layers": pattern.count("E")}
    kept = heads * dim * state + (heads * dim + 2 * groups * state) * (kernel - 1)
    return decoder(
        c, layers, norms=1, full=pattern.count("*"), recurrent=pattern.count("M"), state=kept, **more
    )  # fmt: skip


def jamba(c: Fields) -> Shape:
    """Jamba: attention in one layer of eight, experts in every second."""
    hidden, depth = c.whole("hidden_size"), c.whole("num_hidden_layers")
    full, routed = depth // c.whole("attn_layer_period"), depth // c.whole("expert_layer_period")
    inner, state, kernel = c.whole("mamba_expand", 2) * hidden, c.whole("mamba_d_state"), c.whole("mamba_d_conv")
    layers = times(attention(c), full)
    layers += times(config.mamba1(hidden, inner, c.whole("mamba_dt_rank"), state, kernel), depth - full)
    layers += times(experts(hidden, c.whole("num_experts"), c.whole("intermediate_size")), routed)
    layers += times(dense(hidden, c.whole("intermediate_size")), depth - routed)
    return decoder(
        c, layers, full=full, recurrent=depth - full, state=inner * (state + kernel - 1),
        experts=c.whole("num_experts"), active=c.whole("num_experts_per_tok"), expert_layers=routed,
    )  # fmt: skip


def llama4(c: Fields) -> Shape:
    """Llama 4: one expert of many and a shared one, in every or every second layer; three of four layers are local."""
    hidden, depth = c.whole("hidden_size"), c.whole("num_hidden_layers")
    routed = depth // c.whole("interleave_moe_layer_step", 1)
    width, count = c.whole("intermediate_size"), c.whole("num_local_experts")
    block = experts(hidden, count, width) + dense(hidden, width, part="shared")
    layers = times(attention(c), depth) + times(block, routed)
    if routed < depth:
        layers += times(dense(hidden, c.whole("intermediate_size_mlp")), depth - routed)
    return decoder(
        c, layers, experts=count, active=c.whole("num_experts_per_tok"), expert_layers=routed,
        **windows(c, depth - depth // 4),
    )  # fmt: skip


READERS: dict[str, Callable[[Fields], Shape]] = {
    **dict.fromkeys(("llama", "mistral", "qwen2", "qwen3", "mimo"), llama),
    **dict.fromkeys(("gemma2", "gemma3", "gemma3_text"), gemma),
    **dict.fromkeys(("mixtral", "qwen3_moe", "minimax_m2", "glm4_moe"), mixture),
    **dict.fromkeys(("deepseek_v2", "deepseek_v3", "deepseek_v32", "kimi_k2", "glm_moe_dsa"), deepseek),
    **dict.fromkeys(("qwen3_next", "qwen3_5", "qwen3_5_moe"), qwen_next),
    **dict.fromkeys(("llama4", "llama4_text"), llama4),
    "gpt2": gpt2, "gpt_oss": gpt_oss, "jamba": jamba, "nemotron_h": nemotron, "phi3": phi3,
}  # fmt: skip
