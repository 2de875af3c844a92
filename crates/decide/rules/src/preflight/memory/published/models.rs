//! The models that the figures were measured on, by their published shapes.

use crate::preflight::memory::architecture::{Architecture, Norm};

fn grouped(mut model: Architecture, key_value_heads: u64) -> Architecture {
    model.key_value_heads = key_value_heads;
    model
}

/// Biases everywhere and norms with a mean, as GPT-2, BERT, NeoX, BLOOM and Phi have them.
fn with_biases(mut model: Architecture) -> Architecture {
    model.gated = false;
    model.norm = Norm::Layer;
    model.attention_bias = true;
    model.attention_output_bias = true;
    model.feed_forward_bias = true;
    model
}

pub(super) fn bert_large_classifier() -> Architecture {
    let mut model = with_biases(Architecture::decoder(24, 1024, 16, 4096, 30_522));
    model.tied_embeddings = true;
    model.position_vectors = 512 + 2;
    model.dropout = true;
    // The pooler, and two classes.
    model.extra_parameters = 1024 * 1024 + 1024 + 2 * 1024 + 2;
    model
}

pub(super) fn tiny_llama() -> Architecture {
    grouped(Architecture::decoder(22, 2048, 32, 5632, 32_000), 4)
}

pub(super) fn smol_lm2() -> Architecture {
    Architecture { tied_embeddings: true, ..Architecture::decoder(24, 2048, 32, 8192, 49_152) }
}

pub(super) fn qwen25_1b5() -> Architecture {
    let model = grouped(Architecture::decoder(28, 1536, 12, 8960, 151_936), 2);
    Architecture { tied_embeddings: true, attention_bias: true, ..model }
}

pub(super) fn llama31_8b() -> Architecture {
    grouped(Architecture::decoder(32, 4096, 32, 14_336, 128_256), 8)
}

pub(super) fn llama31_70b() -> Architecture {
    grouped(Architecture::decoder(80, 8192, 64, 28_672, 128_256), 8)
}

pub(super) fn llama31_405b() -> Architecture {
    grouped(Architecture::decoder(126, 16_384, 128, 53_248, 128_256), 8)
}

pub(super) fn llama2_7b() -> Architecture {
    Architecture::decoder(32, 4096, 32, 11_008, 32_000)
}

pub(super) fn llama2_13b() -> Architecture {
    Architecture::decoder(40, 5120, 40, 13_824, 32_000)
}

pub(super) fn qwen3_14b() -> Architecture {
    let model = grouped(Architecture::decoder(40, 5120, 40, 17_408, 151_936), 8);
    Architecture { head_norms: true, ..model }
}

pub(super) fn phi15() -> Architecture {
    let model = with_biases(Architecture::decoder(24, 2048, 32, 8192, 51_200));
    Architecture { norms_per_layer: 1, extra_parameters: 51_200, ..model }
}

pub(super) fn stable_lm_alpha_3b() -> Architecture {
    with_biases(Architecture::decoder(16, 4096, 32, 16_384, 50_688))
}

pub(super) fn bloomz_7b1() -> Architecture {
    let model = with_biases(Architecture::decoder(30, 4096, 32, 16_384, 250_880));
    // One norm more after the embedding.
    Architecture { tied_embeddings: true, outer_norms: 2, ..model }
}

fn t5(layers: u64, hidden: u64, heads: u64, feed_forward: u64, vocabulary: u64) -> Architecture {
    Architecture {
        encoder_layers: layers,
        head_width: 64,
        outer_norms: 2,
        dropout: true,
        extra_parameters: 2 * 32 * heads,
        ..Architecture::decoder(layers, hidden, heads, feed_forward, vocabulary)
    }
}

pub(super) fn t0_3b() -> Architecture {
    t5(24, 2048, 32, 5120, 32_128)
}

pub(super) fn mt0_xxl() -> Architecture {
    t5(24, 4096, 64, 10_240, 250_112)
}

/// Proves that the shapes give the parameter counts their publishers name.
#[test]
fn shapes_count_as_published() {
    for (name, model, published) in [
        ("BERT-large", bert_large_classifier(), 335_143_938),
        ("TinyLlama 1.1B", tiny_llama(), 1_100_048_384),
        ("SmolLM2 1.7B", smol_lm2(), 1_711_376_384),
        ("Qwen2.5 1.5B", qwen25_1b5(), 1_543_714_304),
        ("Llama 3.1 8B", llama31_8b(), 8_030_261_248),
        ("Llama 3.1 70B", llama31_70b(), 70_553_706_496),
        ("Llama 3.1 405B", llama31_405b(), 405_853_388_800),
        ("Llama 2 7B", llama2_7b(), 6_738_415_616),
        ("Llama 2 13B", llama2_13b(), 13_015_864_320),
        ("Qwen3 14B", qwen3_14b(), 14_768_307_200),
        ("Phi 1.5", phi15(), 1_418_270_720),
        ("BLOOMZ 7B1", bloomz_7b1(), 7_069_016_064),
        ("T0 3B", t0_3b(), 2_849_757_184),
        ("mT0 XXL", mt0_xxl(), 12_921_057_280),
    ] {
        let counted = model.parameters();
        assert!(counted.abs_diff(published) * 1000 < published, "{name}: {counted}, not {published}");
    }
}
