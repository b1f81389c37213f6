//! Models by name, keys, and errors for missing configuration.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use ikigai_core::Request;
use ikigai_core::data::Amounts;
use ikigai_core::message::{Message, Role};
use ikigai_core::project::Scale;
use ikigai_core::settings::ModelChoice;
use ikigai_providers::catalogue::{Catalogue, Level, ModelName, ModelSpec, ThinkingStyle};
use ikigai_providers::dialects;
use ikigai_providers::presets::{PRESETS, full_base, preset};
use ikigai_providers::registry::{ProviderConfig, Registry};
use ikigai_providers::transport::{Client, Deadlines};
use ikigai_providers::{Delta, Demo, KeyError, Models, TypedKey};
use ikigai_testkit::server::{Script, Server};
use secrecy::ExposeSecret;
use serde_json::json;

fn registry(variables: &'static [(&str, &str)]) -> Registry {
    let find = move |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    Registry::new(
        Arc::new(find),
        Client::new(Deadlines::DEFAULT),
        Arc::new(|| 7),
    )
}

fn choice(provider: &str, model: &str, level: Option<&str>) -> ModelChoice {
    ModelChoice {
        provider: Some(provider.to_owned()),
        model: Some(model.to_owned()),
        level: level.map(str::to_owned),
    }
}

#[test]
fn the_table_that_is_shipped_can_be_read_and_is_whole() {
    let models = Catalogue::embedded().models();

    assert!(models.len() >= 60, "{}", models.len());
    for spec in models {
        let dialect = dialects::by_name(&spec.dialect);
        assert!(dialect.is_some(), "{}: {}", spec.id, spec.dialect);
        assert!(
            preset(&spec.provider).is_some(),
            "{}: {}",
            spec.id,
            spec.provider
        );
        assert!(spec.context_window.is_some(), "{}", spec.id);
        let thinking = spec
            .thinking
            .as_ref()
            .expect("every model says how it thinks");
        assert_eq!(thinking.levels.len(), 6, "{}", spec.id);
        let thinks = thinking.style != ThinkingStyle::None;
        assert_eq!(spec.levels().next().is_some(), thinks, "{}", spec.id);
        if thinks {
            for level in [Level::Min, Level::Low, Level::Med, Level::High] {
                assert!(spec.thinking_value(level).is_some(), "{} {level}", spec.id);
            }
        }
    }
}

#[test]
fn a_level_that_a_model_lacks_becomes_the_nearest_it_has() {
    let spec = Catalogue::embedded().find(None, "gpt-6.1-sol").unwrap();

    let (level, value) = spec.thinking_value(Level::None).unwrap();

    assert_eq!((level, value.value.as_str()), (Level::Min, Some("low")));
}

#[test]
fn what_is_typed_for_a_model_is_taken_apart() {
    let cases = [
        ("gpt-5", (None, "gpt-5", None)),
        ("gpt-5/low", (None, "gpt-5", Some(Level::Low))),
        (
            "openrouter:vendor/name",
            (Some("openrouter"), "vendor/name", None),
        ),
        (
            "openrouter:vendor/name/max",
            (Some("openrouter"), "vendor/name", Some(Level::Max)),
        ),
        (
            "ollama:qwen3:8b/none",
            (Some("ollama"), "qwen3:8b", Some(Level::None)),
        ),
        (":x", (None, ":x", None)),
        ("", (None, "", None)),
    ];

    for (typed, (provider, model, level)) in cases {
        let expected = ModelName {
            provider: provider.map(str::to_owned),
            model: model.to_owned(),
            level,
        };
        assert_eq!(ModelName::parse(typed), expected, "{typed}");
    }
}

#[test]
fn what_is_missing_is_said_with_what_to_do() {
    let registry = registry(&[("OPENAI_API_KEY", "sk-something")]);
    let cases = [
        ("gpt-55", "there is no model `gpt-55`", "did you mean"),
        (
            "zzzzzzzz",
            "there is no model `zzzzzzzz`",
            "`ikigai models` lists them",
        ),
        (
            "claude-opus-5-5",
            "there is no key for `anthropic`",
            "set ANTHROPIC_API_KEY",
        ),
        (
            "gemini-2.5-flash",
            "there is no key for `google`",
            "set GOOGLE_API_KEY or GEMINI_API_KEY",
        ),
        (
            "nowhere:x",
            "there is no provider `nowhere`",
            "set base_url in [providers.nowhere]",
        ),
    ];

    for (typed, reason, advice) in cases {
        let missing = registry.choose(typed).unwrap_err();
        assert_eq!(missing.reason, reason);
        assert!(
            missing.advice.contains(advice),
            "{typed}: {}",
            missing.advice
        );
    }
    assert_eq!(
        registry.choose("gpt-5/low").unwrap(),
        choice("openai", "gpt-5", Some("low"))
    );
    assert_eq!(registry.choose("demo").unwrap(), Demo::choice());
    assert!(
        registry.choose("ollama:anything").is_ok(),
        "a local server needs no key"
    );
}

#[test]
fn a_mistyped_level_is_an_error_with_near_matches() {
    let mine = ProviderConfig {
        base_url: Some("http://127.0.0.1:9".to_owned()),
        ..ProviderConfig::default()
    };
    let registry = registry(&[("OPENAI_API_KEY", "sk-something")])
        .with_configuration(
            BTreeMap::from([("mine".to_owned(), mine)]),
            vec![ModelSpec::unknown("mine".to_owned(), "coder".to_owned())],
        )
        .with_first(Some("mine:other".to_owned()));
    let cases = [
        (
            "gpt-5/hgh",
            "`gpt-5` has no thinking level `hgh`",
            "did you mean gpt-5/high? levels: min, low, med, high",
        ),
        (
            "openai:gpt-5/ultra",
            "`openai:gpt-5` has no thinking level `ultra`",
            "levels of openai:gpt-5: min, low, med, high",
        ),
        (
            "coder/ultra",
            "`coder` has no thinking level `ultra`",
            "use coder: it has no levels",
        ),
        (
            "mine:coder/ultra",
            "`mine:coder` has no thinking level `ultra`",
            "use mine:coder: it has no levels",
        ),
        (
            "mine:other/hig",
            "`mine:other` has no thinking level `hig`",
            "did you mean mine:other/high?",
        ),
        (
            "demo/ultra",
            "`demo` has no thinking level `ultra`",
            "use demo: it has no levels",
        ),
        (
            "codr/ultra",
            "there is no model `codr/ultra`",
            "did you mean coder?",
        ),
    ];

    for (typed, reason, advice) in cases {
        let missing = registry.choose(typed).unwrap_err();
        assert_eq!(missing.reason, reason);
        assert!(
            missing.advice.starts_with(advice),
            "{typed}: {}",
            missing.advice
        );
    }
    assert!(
        registry.choose("ollama:library/anything").is_ok(),
        "names of models may have slashes"
    );
    let configured = registry.with_first(Some("coder/ultra".to_owned()));
    assert!(configured.first_choice().is_err());
}

#[test]
fn a_new_agent_gets_a_model_whose_key_is_present_else_the_demo() {
    let none = registry(&[]).first_choice();
    let google = registry(&[("GEMINI_API_KEY", "x")]).first_choice();
    let wished = registry(&[("GEMINI_API_KEY", "x")]).with_first(Some("demo".to_owned()));
    let blank = registry(&[("OPENAI_API_KEY", "  ")]).first_choice();

    assert_eq!(none, Ok(Demo::choice()));
    assert_eq!(google.unwrap().provider.as_deref(), Some("google"));
    assert_eq!(wished.first_choice(), Ok(Demo::choice()));
    assert_eq!(blank, Ok(Demo::choice()));
    let unusable = registry(&[("GEMINI_API_KEY", "x")]).with_first(Some("gpt-5".to_owned()));
    let refused = unusable.first_choice().unwrap_err();
    assert_eq!(
        refused.reason, "there is no key for `openai`",
        "no other provider is asked instead"
    );
}

#[test]
fn a_base_address_alone_makes_a_compatible_server() {
    let config = ProviderConfig {
        base_url: Some("http://127.0.0.1:9".to_owned()),
        ..ProviderConfig::default()
    };
    let wrong = ProviderConfig {
        dialect: Some("morse".to_owned()),
        ..config.clone()
    };
    let providers = [("mine", config), ("odd", wrong)];
    let providers: BTreeMap<_, _> = providers
        .into_iter()
        .map(|(name, config)| (name.to_owned(), config))
        .collect();
    let registry = registry(&[]).with_configuration(providers, Vec::new());

    let model = registry.resolve(&choice("mine", "anything", None)).unwrap();
    let odd = registry
        .resolve(&choice("odd", "anything", None))
        .err()
        .unwrap();

    assert_eq!((model.provider(), model.name()), ("mine", "anything"));
    assert!(model.window_tokens() > 1_000);
    assert!(odd.advice.contains("responses, chat, messages or gemini"));
}

#[test]
fn base_addresses_get_a_version_where_they_need_one() {
    let cases = [
        ("chat", "http://127.0.0.1:8080", "http://127.0.0.1:8080/v1"),
        (
            "chat",
            "http://127.0.0.1:8080/v1/",
            "http://127.0.0.1:8080/v1",
        ),
        (
            "chat",
            "https://api.z.ai/api/paas/v4",
            "https://api.z.ai/api/paas/v4",
        ),
        (
            "messages",
            "https://api.anthropic.com",
            "https://api.anthropic.com/v1",
        ),
        (
            "gemini",
            "http://127.0.0.1:1/v1beta",
            "http://127.0.0.1:1/v1beta",
        ),
        ("gemini", "http://127.0.0.1:1/", "http://127.0.0.1:1"),
    ];

    for (dialect, base, full) in cases {
        assert_eq!(full_base(dialect, base), full);
    }
    for preset in PRESETS {
        assert!(
            dialects::by_name(preset.dialect).is_some(),
            "{}",
            preset.name
        );
    }
}

#[test]
fn keys_come_from_a_file_only_if_nobody_else_can_read_it() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("credentials");
    fs::write(&file, "# keys\nanthropic = \"sk-ant-very-secret\"\n").unwrap();
    let with_file = || registry(&[]).with_credentials(Some(file.clone()));
    let opus = choice("anthropic", "claude-opus-5-5", None);
    let set_mode = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();

    set_mode(0o644);
    let open = with_file().resolve(&opus).err().unwrap();
    set_mode(0o600);
    let own = with_file().resolve(&opus);
    fs::write(&file, "sk-ant-very-secret\n").unwrap();
    let bad = with_file().resolve(&opus).err().unwrap();

    assert!(open.advice.starts_with("chmod 600"), "{}", open.advice);
    assert!(own.is_ok());
    assert!(bad.reason.contains("line 1"), "{}", bad.reason);
    for said in [open.reason, open.advice, bad.reason, bad.advice] {
        assert!(!said.contains("very-secret"), "{said}");
    }
}

#[test]
fn a_response_costs_what_the_table_says() {
    let spec = Catalogue::embedded().find(None, "gpt-6.1-sol").unwrap();
    let usage = Amounts {
        input: Some(1_000),
        cache_read: Some(10_000),
        cache_write: Some(100),
        output: Some(500),
        ..Amounts::default()
    };

    // 1,000 at $2, 10,000 at $0.10, 100 at $2.50 and 500 at $10 for a million each.
    assert_eq!(
        spec.cost_nano_usd(&usage),
        Some(2_000_000 + 1_000_000 + 250_000 + 5_000_000)
    );
}

#[test]
fn a_refusal_names_a_message_of_the_request_and_not_of_the_wire() {
    let words = [
        (
            "messages",
            "messages.1.content.0: invalid signature in thinking block",
        ),
        ("chat", "Invalid value at messages[2]"),
        ("gemini", "Invalid part in contents[1]"),
    ];
    for (dialect, words) in words {
        let body = json!({ "error": { "type": "invalid_request_error", "message": words } });
        let server = Server::start([Script::answer(
            400,
            &[("content-type", "application/json")],
            &body.to_string(),
        )]);
        let config = ProviderConfig {
            base_url: Some(server.url("")),
            dialect: Some(dialect.to_owned()),
            ..ProviderConfig::default()
        };
        let providers = [("mine".to_owned(), config)].into_iter().collect();
        let registry = registry(&[]).with_configuration(providers, Vec::new());
        let model = registry.resolve(&choice("mine", "some", None)).unwrap();
        let request = Request {
            system: Some("be brief".to_owned()),
            messages: vec![
                Message::text(Role::User, "hello"),
                Message::text(Role::Assistant, "hi"),
                Message::text(Role::User, "go on"),
            ],
            ..Request::default()
        };

        let mut answer = model.answer(request, "conversation");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let refused = runtime.block_on(answer.next()).unwrap().unwrap_err();

        assert_eq!(refused.names_message, Some(1), "{dialect}: {refused:?}");
    }
}

#[test]
fn a_corrected_model_keeps_its_place_in_the_table() {
    let table = Catalogue::embedded();
    let mut third = table.models()[2].clone();
    third.price_in = Some(99.0);
    let unknown = ModelSpec::unknown("mine".to_owned(), "big".to_owned());

    let corrected = table.with(vec![third.clone(), unknown.clone()]);

    let ids = |catalogue: &Catalogue| -> Vec<String> {
        catalogue
            .models()
            .iter()
            .map(|spec| spec.id.clone())
            .collect()
    };
    assert_eq!(ids(&corrected)[..table.models().len()], ids(table));
    assert_eq!(corrected.models()[2], third);
    assert_eq!(corrected.models().last(), Some(&unknown));
}

/// Needs no key, and follows the dialect that is configured.
#[test]
fn estimates_follow_the_dialect_until_the_model_has_told() {
    let mine = ProviderConfig {
        dialect: Some("messages".to_owned()),
        ..ProviderConfig::default()
    };
    let configured = BTreeMap::from([("mine".to_owned(), mine)]);
    let registry = registry(&[]).with_configuration(configured, Vec::new());
    let scale = |provider: &str| registry.token_scale(&choice(provider, "any", None));

    for provider in ["anthropic", "mine"] {
        assert_eq!(scale(provider), Scale::thousandths(1150), "{provider}");
    }
    for provider in ["demo", "openai", "google", "ollama", "stranger"] {
        assert_eq!(scale(provider), Scale::default(), "{provider}");
    }
}

/// Returns the first delta or retry error of a configured provider.
fn asked(config: ProviderConfig) -> String {
    let configured = BTreeMap::from([("mine".to_owned(), config)]);
    let registry = registry(&[]).with_configuration(configured, Vec::new());
    let model = registry.resolve(&choice("mine", "small", None)).unwrap();
    let request = Request {
        messages: vec![
            Message::text(Role::User, "one"),
            Message::text(Role::User, "two"),
        ],
        ..Request::default()
    };
    crate::transport::run(async {
        let mut answer = model.answer(request, "agent");
        let first = answer.next().await.unwrap();
        match first {
            Ok(Delta::Waiting(wait)) => wait.error.message,
            other => format!("{other:?}"),
        }
    })
}

#[test]
fn every_provider_has_its_own_deadlines() {
    let brief = Duration::from_millis(20);
    let silent = Server::start([Script::new().await_close()]);
    let stalled = Server::start([Script::stream().send(": hm\n\n").await_close()]);
    let on = |server: &Server| ProviderConfig {
        base_url: Some(server.url("")),
        ..ProviderConfig::default()
    };

    let first_byte = ProviderConfig {
        first_byte: Some(brief),
        ..on(&silent)
    };
    let idle = ProviderConfig {
        idle: Some(brief),
        ..on(&stalled)
    };

    let no_answer = asked(first_byte);
    let stopped = asked(idle);
    assert!(no_answer.contains("within 20 ms"), "{no_answer}");
    assert!(stopped.contains("for 20 ms"), "{stopped}");
}

#[test]
fn a_slow_provider_is_given_its_time() {
    let slow = ProviderConfig {
        base_url: Some("http://127.0.0.1:9".to_owned()),
        first_byte: Some(Duration::from_hours(1)),
        ..ProviderConfig::default()
    };
    let configured = BTreeMap::from([("slow".to_owned(), slow)]);
    let registry = registry(&[]).with_configuration(configured, Vec::new());
    let model = registry.resolve(&choice("slow", "m", None)).unwrap();
    let request = Request {
        messages: vec![Message::text(Role::User, "hello")],
        ..Request::default()
    };

    let answer = model.answer(request, "agent");

    assert!(answer.patience() > Duration::from_hours(1));
}

#[test]
fn a_strict_server_is_configured_so() {
    let server = Server::start([Script::stream()]);
    let config = ProviderConfig {
        base_url: Some(server.url("")),
        alternating_roles: Some(true),
        ..ProviderConfig::default()
    };

    asked(config);

    let body: serde_json::Value = serde_json::from_slice(&server.received()[0].body).unwrap();
    let merged = json!([{"role": "user", "content": "one\n\ntwo"}]);
    assert_eq!(body["messages"], merged);
}

#[test]
fn a_typed_key_is_tried_with_the_list_of_models_and_only_then_kept() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("new/credentials");
    let list = r#"{"data":[{"id":"a"},{"id":"b"}]}"#;
    let server = Server::start([
        Script::answer(401, &[], r#"{"error":"no"}"#),
        Script::answer(200, &[], "<html>"),
        Script::answer(200, &[], list),
        Script::answer(200, &[], list),
    ]);
    let mut config = ProviderConfig {
        base_url: Some(server.url("")),
        ..ProviderConfig::default()
    };
    config
        .headers
        .insert("x-team".to_owned(), "parser".to_owned());
    let providers = BTreeMap::from([("anthropic".to_owned(), config)]);
    let registry = registry(&[])
        .with_credentials(Some(file.clone()))
        .with_configuration(providers, Vec::new());
    let key = TypedKey::new("sk-ant-typed-1234").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    let take = |provider, key| runtime.block_on(registry.take_key(provider, key));

    let refused = take("anthropic", &key).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "anthropic rejected the key (status 401)"
    );
    let page = take("anthropic", &key).unwrap_err();
    assert!(matches!(page, KeyError::Untried { .. }), "{page}");
    let unknown = take("demo", &key).unwrap_err();
    assert!(matches!(unknown, KeyError::NoProvider(_)), "{unknown}");
    assert!(!file.exists());

    let kept = take("anthropic", &key).unwrap();
    assert_eq!((kept.title.as_str(), kept.models), ("Anthropic", 2));
    assert_eq!(kept.hidden_by, None);
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("# mine\nopenai = \"sk-other\"\n{text}")).unwrap();
    let newer = TypedKey::new("sk-ant-newer-1234").unwrap();
    take("anthropic", &newer).unwrap();

    let text = fs::read_to_string(&file).unwrap();
    let expected = "# mine\nopenai = \"sk-other\"\nanthropic = \"sk-ant-newer-1234\"\n";
    assert_eq!(text, expected);
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
    let asked = &server.received()[2];
    assert_eq!(asked.line, "GET /v1/models");
    assert_eq!(asked.header("x-api-key"), Some("sk-ant-typed-1234"));
    assert_eq!(asked.header("x-team"), Some("parser"));
    let known = registry.later_keys();
    assert_eq!(known.last().unwrap().expose_secret(), "sk-ant-newer-1234");
}
