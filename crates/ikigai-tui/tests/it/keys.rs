//! API keys: hidden while typed, and held back from messages.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use ikigai_core::{PageQuery, Seq, Span};
use ikigai_engine::commands::KEY_PROVIDERS;
use ikigai_providers::presets::PRESETS;
use ikigai_providers::registry::Registry;
use ikigai_providers::transport::{Client, Deadlines};
use ikigai_testkit::server::{Script, Server};
use ikigai_tui::key::TerminalEvent;

use crate::support::Stage;

const KEY: &str = "sk-ant-0123456789abcdefghijkl";

/// Returns a screen whose providers are all at this address, with a file for keys.
async fn stage(address: String, file: std::path::PathBuf) -> Stage {
    let variables = move |name: &str| (name == "ANTHROPIC_BASE_URL").then(|| address.clone());
    let client = Client::new(Deadlines::DEFAULT);
    let models = Registry::new(Arc::new(variables), client, Arc::new(|| 1));
    Stage::with_registry(models.with_credentials(Some(file)), (90, 24)).await
}

#[test]
fn every_provider_that_takes_a_key_can_be_completed() {
    let presets = PRESETS.iter().filter(|preset| !preset.keys.is_empty());
    let mut names: Vec<_> = presets.map(|preset| preset.name).collect();
    let mut typed = KEY_PROVIDERS.to_vec();
    names.sort_unstable();
    typed.sort_unstable();

    assert_eq!(typed, names);
}

#[tokio::test]
async fn a_key_is_typed_hidden_tried_and_kept() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("credentials");
    let list = r#"{"data":[{"id":"a"}]}"#;
    let server = Server::start([Script::answer(200, &[], list)]);
    let mut stage = stage(server.url(""), file.clone()).await;
    let agent = stage.current();
    stage.sees("use a real model (or openai, google)").await;

    stage.line("/key anthropic").await;
    stage.sees("anthropic API key (hidden):").await;
    stage.letters("sk-ant-").await;
    stage
        .happened(TerminalEvent::Paste(format!("{}\n", &KEY[7..])))
        .await;
    let text = stage.sees("29 characters").await;
    assert!(!text.contains("sk-ant"), "{text}");
    stage.press("enter").await;
    let text = stage.sees("Anthropic accepts the key").await;
    stage
        .until(|text| text.contains("❯ /model anthropic:"))
        .await;

    assert!(!text.contains(KEY), "{text}");
    let kept = std::fs::read_to_string(&file).unwrap();
    assert_eq!(kept, format!("anthropic = \"{KEY}\"\n"));
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(stage.commands(agent).await, ["/key anthropic"]);
    let query = PageQuery::oldest(Span::new(agent, Seq(1), Seq(1000)), 1000);
    let rows = stage.driver.engine.reader().page(query).await.unwrap();
    assert!(!format!("{rows:?}").contains(KEY));
    stage.press("ctrl-u").await;
    for keys in ["up", "up", "ctrl-y"] {
        stage.press(keys).await;
        assert!(!stage.input().contains("sk-ant"), "{}", stage.input());
    }
}

#[tokio::test]
async fn a_refused_key_is_not_kept_and_esc_leaves_it() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("credentials");
    let server = Server::start([Script::answer(401, &[], "{}")]);
    let mut stage = stage(server.url(""), file.clone()).await;

    stage.line("/key anthropic").await;
    stage.letters("half").await;
    stage.press("esc").await;
    stage.sees("Cancelled. Key not saved").await;
    assert_eq!(stage.input(), "");
    stage.line("/key anthropic").await;
    stage.line(KEY).await;
    stage
        .sees("rejected the key (status 401) · key not saved")
        .await;

    assert!(!file.exists());
}

#[tokio::test]
async fn a_message_that_looks_like_a_key_is_held_back() {
    let mut stage = Stage::new((90, 24)).await;
    let question = "This looks like an API key. Enter again to send it, Esc to keep editing";

    stage.line(KEY).await;
    stage.sees(question).await;
    assert_eq!(stage.input(), KEY);
    stage.press("esc").await;
    stage.until(|text| !text.contains(question)).await;
    assert_eq!(stage.input(), KEY);
    stage.press("enter").await;
    stage.sees(question).await;
    stage.press("enter").await;

    assert_eq!(stage.input(), "");
}

#[tokio::test]
async fn a_key_after_the_provider_is_not_sent() {
    let mut stage = Stage::new((90, 24)).await;
    let agent = stage.current();
    let line = format!("/key anthropic {KEY}");

    stage.line(&line).await;
    stage.sees("Type only /key PROVIDER").await;
    stage.press("enter").await;

    assert_eq!(stage.input(), line);
    assert_eq!(stage.commands(agent).await, [""; 0]);
}
