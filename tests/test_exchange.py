"""Folders of Hugging Face's transformers: equal logits and equal ids there, and back again without a change."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from fastcompress.bpe import BPE
from fastcompress.cli import main
from fastcompress.codec import BPECodec, ByteCodec, CharCodec, ChatCodec, Codec
from fastcompress.data.chat import Message
from fastcompress.data.chat_rows import ChatRows
from fastcompress.errors import ConfigError, DataError, FastcompressError, FormatError, MismatchError
from fastcompress.models import GPT, GPTConfig, export_huggingface, import_huggingface
from fastcompress.models.blocks import NormKind
from fastcompress.models.huggingface import architecture_of
from fastcompress.training import load_run, write_run
from tests.reference import llama

FIELDS = {field.name for field in dataclasses.fields(GPTConfig)}
SHAPE: dict[str, Any] = {"num_layers": 2, "num_heads": 4, "width": 32, "context_length": 48}
SAMPLE = "It was the best of times, it was the worst of times; naïve café 日本 12345 <|end|> " * 3
TEXTS = ["", "It was", "naïve  café\n\n日本", "12345 < |end| >", "times" * 9, "\u0000\u00ff"]


def bpe(**settings: Any) -> BPE:
    return BPE.train([SAMPLE], **{"vocab_size": 290, "pattern": "gpt2", **settings})


CODECS: dict[str, Codec] = {
    "byte": ByteCodec(),
    "bpe": BPECodec(bpe()),
    "bpe-special": BPECodec(bpe(special_tokens=["<|endoftext|>"])),
    "bpe-cl100k": BPECodec(bpe(pattern="cl100k")),
    "chat-byte": ChatCodec(ByteCodec()),
    "chat-bpe": ChatCodec(BPECodec(bpe())),
}
MODELS: dict[str, dict[str, Any]] = {
    "modern": {},
    "llama": {"qk_norm": False},
    "llama-biased": {"qk_norm": False, "bias": True},
    "llama-tied": {"qk_norm": False, "tied_head": True, "dropout": 0.1},
    "llama-epsilon": {"qk_norm": False, "norm_epsilon": 0.02},
    "llama-gain-epsilon": {"qk_norm": False, "norm": "rmsnorm_gain", "norm_epsilon": 1e-5},
    # What models have beside these depends on the build.
    **{f"llama-{norm}": {"qk_norm": False, "norm": norm} for norm in get_args(NormKind) if norm == "rmsnorm_gain"},
    **({"modern-grouped": {"kv_heads": 2, "rotary_base": 500.0}} if {"kv_heads", "rotary_base"} <= FIELDS else {}),
}


def make_model(codec: Codec, **fields: Any) -> GPT:
    torch.manual_seed(1)
    model = GPT(GPTConfig.modern(vocab_size=codec.vocab_size + 1, **{**SHAPE, **fields})).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
            if parameter.dim() == 1:
                parameter.add_(1.0)
    return model


def config_of(folder: Path) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((folder / "config.json").read_bytes())
    return config


def change(folder: Path, file: str = "config.json", **fields: Any) -> None:
    content = {**json.loads((folder / file).read_bytes()), **fields}
    (folder / file).write_text(json.dumps(content))


# --- Logits -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_the_files_compute_the_same_logits(name: str, tmp_path: Path) -> None:
    model = make_model(ByteCodec(), **MODELS[name])
    export_huggingface(model, ByteCodec(), tmp_path)
    ids = torch.randint(257, (48,))
    expected = llama.logits(config_of(tmp_path), load_file(tmp_path / "model.safetensors"), ids.tolist())
    with torch.inference_mode():
        logits = model(ids[None])[0]
    torch.testing.assert_close(logits.double(), expected, rtol=1e-4, atol=1e-4)
    assert config_of(tmp_path)["model_type"] == ("qwen3" if name.startswith("modern") else "llama")


@pytest.mark.parametrize("name", MODELS)
def test_an_import_is_the_model_that_was_exported(name: str, tmp_path: Path) -> None:
    model = make_model(ByteCodec(), **MODELS[name])
    export_huggingface(model, ByteCodec(), tmp_path)
    imported, codec = import_huggingface(tmp_path)
    assert codec == ByteCodec()
    ids = torch.randint(257, (2, 48))
    with torch.inference_mode():
        assert torch.equal(imported(ids), model(ids))
    assert {**imported.config.to_json(), "init": "", "dropout": 0} == {
        **model.config.to_json(),
        "init": "",
        "dropout": 0,
    }


@pytest.mark.parametrize("name", MODELS)
def test_transformers_computes_the_same_logits_and_ids(name: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    codec = CODECS["chat-bpe"]
    model = make_model(codec, **MODELS[name])
    export_huggingface(model, codec, tmp_path)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32).eval()
    ids = torch.randint(codec.vocab_size + 1, (2, 48))
    with torch.inference_mode():
        torch.testing.assert_close(theirs(ids).logits, model(ids), rtol=1e-4, atol=1e-4)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for text in TEXTS:
        assert tokenizer.encode(text, add_special_tokens=False) == codec.encode(text).tolist()
        assert tokenizer.encode(text) == [codec.vocab_size, *codec.encode(text).tolist()]
    chat = (Message("system", "Be kind."), Message("user", "naïve?"))
    messages = [{"role": message.role, "content": message.content} for message in chat]
    spelled = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    assert spelled == ChatRows(codec, 48).prompt(chat)  # type: ignore[arg-type]


# --- Ids --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CODECS)
def test_tokenizers_gives_the_same_ids(name: str, tmp_path: Path) -> None:
    codec = CODECS[name]
    export_huggingface(make_model(codec, num_layers=1), codec, tmp_path)
    tokenizer = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert tokenizer.get_vocab_size() == codec.vocab_size + 1
    for text in TEXTS:
        assert tokenizer.encode(text, add_special_tokens=False).ids == codec.encode(text).tolist()
        assert tokenizer.encode(text).ids == [codec.vocab_size, *codec.encode(text).tolist()]
    tokenizer.encode_special_tokens = True
    marks = "<|end|> <|user|> <|endoftext|>"
    assert tokenizer.encode(marks, add_special_tokens=False).ids == codec.encode(marks).tolist()
    imported = import_huggingface(tmp_path)[1]
    assert type(imported) is type(codec)
    for text in (*TEXTS, SAMPLE, marks):
        assert imported.encode(text).tolist() == codec.encode(text).tolist()
    if isinstance(codec, ChatCodec):
        template = json.loads((tmp_path / "tokenizer_config.json").read_bytes())["chat_template"]
        assert "<|assistant|>" in template
        assert config_of(tmp_path)["eos_token_id"] == [codec.end_of_message, codec.vocab_size]


# --- Refusals ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"positions": "learned"}, "positions is 'learned'; it must be 'rope'"),
        ({"norm": "layernorm"}, "norm is 'layernorm'; it must be 'rmsnorm'"),
        ({"mlp": "gelu"}, "mlp is 'gelu'; it must be 'swiglu'"),
        ({"qk_norm": True, "bias": True}, "qk_norm and bias are both on"),
    ],
)
def test_a_setting_that_no_architecture_has_is_named(fields: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        export_huggingface(make_model(ByteCodec(), **fields), ByteCodec(), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_setting_of_the_future_is_refused_while_it_is_on() -> None:
    class Later(GPTConfig):
        softness: Any = None

        def to_json(self) -> dict[str, Any]:
            return {**super().to_json(), "softness": self.softness}

    config = Later(vocab_size=9, **SHAPE)
    assert architecture_of(config) == "Qwen3ForCausalLM"
    object.__setattr__(config, "softness", 15.0)
    with pytest.raises(ConfigError, match=r"softness is 15\.0, which neither Llama nor Qwen3 has"):
        architecture_of(config)


def test_codecs_without_a_counterpart_are_named(tmp_path: Path) -> None:
    for codec, message in (
        (CharCodec("abc"), "codec char-3 cannot be written as tokenizer.json"),
        (ChatCodec(BPECodec(bpe(special_tokens=["<|end|>"]))), "has a token '<|end|>' of its own"),
        (
            BPECodec(bpe(special_tokens=["<|endoftext|>", "<|end_of_document|>"])),
            "has a token '<|endoftext|>' of its own",
        ),
    ):
        with pytest.raises(ConfigError) as caught:
            export_huggingface(make_model(codec, num_layers=1), codec, tmp_path / "out")
        assert message in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model_type": "gpt_neox"}, "model_type is 'gpt_neox'; it must be llama or qwen3"),
        ({"hidden_act": "gelu"}, "hidden_act is 'gelu'; it must be 'silu'"),
        ({"rms_norm_eps": 0.0}, "norm_epsilon must be more than 0"),
        ({"intermediate_size": 100}, "intermediate_size is 100; it must be 64"),
        ({"rope_parameters": {"rope_type": "llama3", "rope_theta": 1e4}}, "rope_type is 'llama3'"),
        ({"rope_parameters": None, "rope_scaling": {"type": "linear", "factor": 2.0}}, "rope_type is 'linear'"),
        ({"attention_bias": True}, "mlp_bias is False; it must be True"),
        ({"num_hidden_layers": 3}, r"tensor model\.layers\.2\.input_layernorm\.weight has shape None"),
        ({"vocab_size": 300}, r"tensor lm_head\.weight has shape \(257, 32\); it must be \(300, 32\)"),
        ({"eos_token_id": 5}, "its last id is 256, but a document ends with 5"),
        ({"eos_token_id": None}, "eos_token_id is missing"),
        ({"hidden_size": None}, "is damaged"),
    ],
)
def test_what_cannot_be_imported_is_named(fields: dict[str, Any], message: str, tmp_path: Path) -> None:
    export_huggingface(make_model(ByteCodec(), qk_norm=False), ByteCodec(), tmp_path)
    change(tmp_path, **fields)
    with pytest.raises(FastcompressError, match=message):
        import_huggingface(tmp_path)


def test_with_qk_norm_there_is_one_epsilon(tmp_path: Path) -> None:
    export_huggingface(make_model(ByteCodec(), norm_epsilon=1e-6), ByteCodec(), tmp_path)
    change(tmp_path, rms_norm_eps=1e-5)
    with pytest.raises(ConfigError, match="rms_norm_eps is 1e-05; it must be 1e-06"):
        import_huggingface(tmp_path)
    with pytest.raises(ConfigError, match=r"norm_epsilon is 1e-05; it must be 1e-06 with qk_norm"):
        export_huggingface(make_model(ByteCodec(), norm_epsilon=1e-5), ByteCodec(), tmp_path)


def test_damage_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"config\.json: is missing"):
        import_huggingface(tmp_path)
    export_huggingface(make_model(ByteCodec()), ByteCodec(), tmp_path)
    weights = tmp_path / "model.safetensors"
    tensors = load_file(weights)
    save_file({**tensors, "model.layers.0.self_attn.q_norm.weight": torch.full((8,), 2.0)}, weights)
    with pytest.raises(ConfigError, match="q_norm and k_norm have gains other than 1"):
        import_huggingface(tmp_path)
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(FormatError, match="truncated or damaged"):
        import_huggingface(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(FormatError, match="cannot be read as JSON"):
        import_huggingface(tmp_path)


# --- Commands ---------------------------------------------------------------------------------------------


def test_export_and_import_from_the_command_line(tmp_path: Path) -> None:
    codec = CODECS["chat-bpe"]
    model = make_model(codec, qk_norm=False)
    run, folder, back = (str(tmp_path / name) for name in ("run", "out", "back"))
    write_run(Path(run), model, codec)
    ids = torch.randint(codec.vocab_size, (1, 20))
    for command, code, said in (
        (["export", run, folder], 0, "AutoModelForCausalLM"),
        (["export", run, folder], 1, "exists already"),
        (["export", run, folder, "--force"], 0, "written"),
        (["import", folder, back], 0, "codec chat-bpe-290"),
        (["import", folder, back], 1, "holds a run already"),
        (["generate", back, "--prompt", "It was", "--max-tokens", "5"], 0, "It was"),
    ):
        result = CliRunner().invoke(main, command)
        assert result.exit_code == code, result.output
        assert said in result.output
    assert torch.equal(load_run(Path(back)).model(ids), model(ids))


def test_an_export_of_another_codec_is_no_model_of_it(tmp_path: Path) -> None:
    export_huggingface(make_model(ByteCodec()), ByteCodec(), tmp_path)
    export_huggingface(make_model(CODECS["bpe"]), CODECS["bpe"], tmp_path / "other")
    (tmp_path / "tokenizer.json").write_bytes((tmp_path / "other" / "tokenizer.json").read_bytes())
    change(tmp_path, eos_token_id=[290])
    with pytest.raises(MismatchError, match="its model has 257 ids and its tokenizer 291"):
        import_huggingface(tmp_path)
