//! Commands that list something: they leave rows, which a restart shows again.

use std::time::{Duration, Instant};

use ikigai_core::AgentId;
use ikigai_tui::look::Look;
use ikigai_tui::paint::Theme;

use tokio::time::timeout;

use crate::support::Stage;

/// Types a line and waits for its row.
async fn typed(stage: &mut Stage, line: &str) {
    let agent = stage.current();
    let before = stage.commands(agent).await.len();
    stage.line(line).await;
    let end = Instant::now() + Duration::from_secs(20);
    while stage.commands(agent).await.len() == before {
        assert!(Instant::now() < end, "{line} left no row");
        let _ = timeout(Duration::from_millis(50), stage.driver.came()).await;
        stage.until(|_| true).await;
    }
}

/// Reports whether the input is above the status, so that no other layer is open.
fn has_input(text: &str) -> bool {
    let above = text.lines().rev().nth(1);
    above.is_some_and(|row| row.starts_with('❯'))
}

/// Waits for an overlay, picker or board, and closes it.
async fn close(stage: &mut Stage) {
    stage.until(|text| !has_input(text)).await;
    stage.press("esc").await;
    stage.until(has_input).await;
}

/// E18: a typed listing leaves its row, however the screen shows it; one opened by a key does not.
#[tokio::test]
async fn typed_listings_leave_rows() {
    let mut stage = Stage::with_models((100, 40)).await;
    let agent = stage.current();
    let lines = [
        "/help",
        "/help mark",
        "/agents",
        "/model",
        "/tools",
        "/cost",
        "/context",
        "/sessions",
        "/keys",
    ];

    for line in lines {
        typed(&mut stage, line).await;
        close(&mut stage).await;
    }
    // The browser shows rows of the log itself, and a key is not typed.
    stage.line("/history").await;
    stage.press("esc").await;
    for keys in ["?", "ctrl-x a"] {
        stage.press(keys).await;
        close(&mut stage).await;
    }

    assert_eq!(stage.commands(agent).await, lines);
    let folded = stage.text();
    assert!(folded.contains("\n/agents · "), "{folded}");
    assert!(!folded.contains("/rewind"), "{folded}");
}

/// E18: a listing leaves no row in an agent that another process holds.
#[tokio::test]
async fn a_listing_leaves_no_row_in_an_agent_of_another_process() {
    let (stage, _) = Stage::with_faults(None).await;
    let agent: AgentId = stage.current();
    let mut other = stage.beside().await;
    other.sees("open in another ikigai").await;

    other.line("/keys").await;
    let shown = other.sees("Keys").await;

    assert!(!shown.contains("⚠"), "{shown}");
    assert_eq!(other.commands(agent).await, [""; 0]);
}

/// S3-22a: listings, outputs and warnings are on the screen again after a restart.
#[tokio::test]
async fn command_output_survives_restart() {
    let place = tempfile::tempdir().unwrap();
    let (mut stage, _) = Stage::with_faults(Some(place.path())).await;
    stage.resized(100, 300).await;
    stage.talk("hello", "Good day.").await;
    for line in ["/agents", "/help"] {
        typed(&mut stage, line).await;
        close(&mut stage).await;
    }
    // The scripted provider has no models to pick from.
    typed(&mut stage, "/model").await;
    typed(&mut stage, "/mark here").await;
    typed(&mut stage, "/frobnicate").await;
    let folded = conversation(&mut stage).await;
    stage.line("/view open").await;
    stage.sees("/view open").await;
    let open = conversation(&mut stage).await;

    let (mut stage, _) = stage.killed(place.path()).await;
    stage.resized(100, 300).await;
    let restored = conversation(&mut stage).await;
    stage.line("/view open").await;
    stage
        .until(|text| text.contains("the tree of agents"))
        .await;
    let reopened = conversation(&mut stage).await;

    for (before, after) in [(folded, restored), (open, reopened)] {
        assert!(
            after.starts_with(&before),
            "{before}\n--- and then\n{after}"
        );
        for line in ["/agents", "/help", "/model"] {
            assert!(before.contains(&format!("\n{line}")), "{before}");
        }
        assert!(before.contains("⚑ here · /rewind here"), "{before}");
        assert!(before.contains("⚠ no command /frobnicate"), "{before}");
    }
}

/// Returns the conversation on the screen, without input and status.
async fn conversation(stage: &mut Stage) -> String {
    stage.sees("no command /frobnicate").await;
    let text = stage.text();
    let end = text.find("\n─ [").unwrap();
    text[..end].trim_end().to_owned()
}

/// S3-42: a command row is a dim echo, a blank row, the dim output and a blank row.
#[tokio::test]
async fn command_row_rendering() {
    let place = tempfile::tempdir().unwrap();
    let (mut stage, _) = Stage::with_faults(Some(place.path())).await;
    stage.line("/name reader").await;
    stage.sees("Renamed to reader (was parser)").await;
    let live = rows_of_command(&mut stage);
    let (mut stage, _) = stage.killed(place.path()).await;
    stage.sees("Renamed to reader (was parser)").await;
    let replayed = rows_of_command(&mut stage);

    let dim = |text: &str| vec![(text.to_owned(), true)];
    let expected = [
        dim("/name reader"),
        Vec::new(),
        dim("Renamed to reader (was parser)"),
        Vec::new(),
    ];
    assert_eq!(live, expected);
    assert_eq!(replayed, expected);
    // Only the typed command has an echo, not the row with the starting settings.
    assert!(!stage.text().contains("/approve"));
}

/// Returns four rows from the echo on: texts of one style, and whether they are dim.
fn rows_of_command(stage: &mut Stage) -> Vec<Vec<(String, bool)>> {
    let first = stage.row_with("/name reader");
    let grid = stage.grid();
    let spans = |row| {
        let runs = grid.spans(row, Theme::Mono).into_iter();
        let runs = runs.map(|run| (run.text.trim_end().to_owned(), run.style.has(Look::DIM)));
        runs.filter(|(text, _)| !text.is_empty()).collect()
    };
    (first..first + 4).map(spans).collect()
}
