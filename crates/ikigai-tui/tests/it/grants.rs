//! Modes that another user granted.

use std::sync::atomic::Ordering;

use crate::support::Stage;

/// E22: the status shows the mode in force; a foreign mode is offered once, not applied.
#[tokio::test]
async fn a_mode_of_another_user_is_not_shown_as_in_force_and_offered_once() {
    let mut stage = Stage::new((120, 40)).await;
    stage.line("/approve all").await;
    stage.until(|text| text.contains("· all·")).await;
    let (engine, agent) = (stage.driver.engine.clone(), stage.current());
    engine.release(agent).await;

    stage.user.store(2, Ordering::Relaxed);
    let mut stage = stage.again(engine).await;

    let shown = stage.sees("Not in force here: mode all").await;
    assert!(shown.contains("/approve grant to apply"), "{shown}");
    assert!(shown.contains("· ask·"), "{shown}");
    stage.press("shift-tab").await;
    stage.until(|text| text.contains("· edits·")).await;
    assert!(!stage.text().contains("Not in force here: mode"));
}
