use serde_json::{Value, json};

use super::*;

fn tokens_of(window: Option<ServedWindow>) -> Option<(u64, bool)> {
    window.map(|window| (window.tokens, window.is_provisional))
}

#[test]
fn the_entry_of_a_list_of_models_states_the_window() {
    let final_at = |tokens| Some((tokens, false));
    let table = [
        // vLLM and SGLang.
        (
            json!({"id": "m", "object": "model", "owned_by": "vllm", "root": "m", "max_model_len": 32768}),
            final_at(32_768),
        ),
        // OpenRouter: the provider that is routed to has less.
        (
            json!({"id": "m", "context_length": 1_000_000, "top_provider": {"context_length": 200_000, "max_completion_tokens": 64_000}}),
            final_at(200_000),
        ),
        (
            json!({"id": "m", "context_length": 8192, "top_provider": null}),
            final_at(8_192),
        ),
        // Groq, Mistral, Together.
        (
            json!({"id": "m", "context_window": 131_072}),
            final_at(131_072),
        ),
        (
            json!({"id": "m", "max_context_length": 262_144}),
            final_at(262_144),
        ),
        (
            json!({"id": "m", "metadata": {"context_length": 65_536}}),
            final_at(65_536),
        ),
        // LM Studio, loaded and not.
        (
            json!({"id": "m", "state": "loaded", "max_context_length": 40960, "loaded_context_length": 8192}),
            final_at(8_192),
        ),
        (
            json!({"id": "m", "state": "not-loaded", "max_context_length": 40960}),
            Some((40_960, true)),
        ),
        // llama.cpp.
        (
            json!({"id": "m", "owned_by": "llamacpp", "meta": {"n_ctx_train": 131_072, "n_params": 8_030_261_312_u64}}),
            final_at(131_072),
        ),
        (
            json!({"id": "m", "owned_by": "llamacpp", "meta": {"n_ctx_train": 131_072, "n_ctx": 16_384}}),
            final_at(16_384),
        ),
        // Anthropic and Gemini.
        (
            json!({"id": "m", "type": "model", "max_input_tokens": 200_000, "max_tokens": 64_000}),
            final_at(200_000),
        ),
        (
            json!({"name": "models/m", "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536}),
            final_at(1_048_576),
        ),
        // A server in Python.
        (json!({"id": "m", "max_model_len": 4096.0}), final_at(4_096)),
        // OpenAI states nothing.
        (
            json!({"id": "m", "object": "model", "created": 1_686_935_002, "owned_by": "openai"}),
            None,
        ),
    ];

    for (entry, expected) in table {
        assert_eq!(tokens_of(entry_window(&entry)), expected, "{entry}");
    }
}

#[test]
fn numbers_that_can_be_no_window_are_ignored() {
    let hostile = [
        json!(0),
        json!(-1),
        json!(-8192),
        json!(1),
        json!(1023),
        json!(4096.5),
        json!(1e30),
        json!(16_777_217),
        json!(u64::MAX),
        json!("8192"),
        json!("many"),
        json!(true),
        json!(null),
        json!([8192]),
        json!({"tokens": 8192}),
    ];

    for number in hostile {
        let entry = json!({"id": "m", "max_model_len": number, "loaded_context_length": number});
        assert_eq!(entry_window(&entry), None, "{number}");
        let props = json!({"default_generation_settings": {"n_ctx": number}});
        assert_eq!(props_window(&props), None, "{number}");
        let shown = json!({"model_info": {"x.context_length": number}, "parameters": number});
        assert_eq!(shown_window(&shown), None, "{number}");
        let running = json!({"models": [{"name": "m", "context_length": number}]});
        assert_eq!(running_window(&running, "m"), None, "{number}");
        // A field that is no window does not hide one that is.
        let entry = json!({"id": "m", "max_model_len": number, "context_length": 8192});
        assert_eq!(
            tokens_of(entry_window(&entry)),
            Some((8_192, false)),
            "{number}"
        );
    }
}

#[test]
fn a_model_is_found_by_name_or_because_it_is_the_only_one() {
    let two =
        json!({"object": "list", "data": [{"id": "a", "n_ctx": 2048}, {"id": "b", "n_ctx": 4096}]});
    let one = json!({"data": [{"id": "/models/a.gguf"}]});
    let tagged = json!({"data": [{"id": "qwen3:latest"}, {"id": "qwen3:8b"}]});
    let twice = json!({"data": [
        {"id": "a", "state": "not-loaded", "max_context_length": 9000},
        {"id": "a", "state": "loaded", "loaded_context_length": 4096},
    ]});
    let table = [
        (&two, "b", Some(json!({"id": "b", "n_ctx": 4096}))),
        (&two, "c", None),
        (&one, "anything", Some(json!({"id": "/models/a.gguf"}))),
        (&tagged, "qwen3", Some(json!({"id": "qwen3:latest"}))),
        (&twice, "a", Some(twice["data"][1].clone())),
    ];

    for (list, model, expected) in table {
        assert_eq!(entry(list, model), expected.as_ref(), "{model} in {list}");
    }
    for other in [
        json!([]),
        json!({}),
        json!({"data": "a"}),
        json!({"data": []}),
        json!("a"),
    ] {
        assert_eq!(entry(&other, "a"), None, "{other}");
    }
}

#[test]
fn llama_cpp_and_ollama_state_what_they_have_loaded() {
    let props = json!({
        "default_generation_settings": {"id": 0, "n_ctx": 16_384, "params": {}},
        "total_slots": 2, "model_path": "/models/a.gguf",
    });
    assert_eq!(tokens_of(props_window(&props)), Some((16_384, false)));

    let info = json!({"general.architecture": "qwen3", "qwen3.context_length": 40_960, "clip.context_length": 2048});
    let shown =
        |parameters: &str| json!({"parameters": parameters, "model_info": info, "details": {}});
    let table = [
        (
            "num_ctx                        8192\ntemperature 0.6",
            Some((8_192, false)),
        ),
        ("stop \"<|im_end|>\"\nnum_ctx 262144", Some((40_960, false))),
        ("temperature 0.6", Some((40_960, true))),
        ("num_ctx 0", Some((40_960, true))),
        ("num_ctx lots", Some((40_960, true))),
        ("num_ctx", Some((40_960, true))),
    ];
    for (parameters, expected) in table {
        let window = shown_window(&shown(parameters));
        assert_eq!(tokens_of(window), expected, "{parameters}");
    }

    let running = json!({"models": [{"name": "qwen3:latest", "model": "qwen3:latest", "size_vram": 1, "context_length": 4096}]});
    let window = running_window(&running, "qwen3");
    assert_eq!(tokens_of(window), Some((4_096, false)));
    assert_eq!(running_window(&running, "other"), None);
    assert!(is_running_list(&running));
    assert!(!is_running_list(&json!({"data": []})));
}

#[test]
fn the_longest_answer_is_read_where_a_server_states_it() {
    let table = [
        (
            json!({"max_input_tokens": 200_000, "max_tokens": 64_000}),
            Some(64_000),
        ),
        (
            json!({"inputTokenLimit": 200_000, "outputTokenLimit": 8192}),
            Some(8_192),
        ),
        (json!({"context_length": 8192, "max_tokens": 8192}), None),
        (
            json!({"context_length": 8192, "max_output_tokens": 0}),
            None,
        ),
        (
            json!({"context_length": 8192, "max_output_tokens": -1}),
            None,
        ),
    ];

    for (entry, expected) in table {
        let entry: Value = entry;
        let window = entry_window(&entry).unwrap();
        assert_eq!(window.max_output, expected, "{entry}");
    }
}
