//! Merging a child: its preview is shown and can be edited before.

use ikigai_core::data::{self, UserData};
use ikigai_core::{Kind, Row};
use ikigai_testkit::Step;
use ikigai_tui::key::TerminalEvent;

use crate::support::{SIZES, Stage};

/// Returns a screen of a root whose children have answered.
async fn children(size: (u16, u16), names: &[&str]) -> Stage {
    let mut stage = Stage::new(size).await;
    stage.talk("hello", "Hi.").await;
    for name in names {
        let word = format!("write {name}");
        let said = format!("The {name} are there.");
        stage.provider.will_say_to(&word, &said);
        stage.line(&format!("/fork --name {name} {word}")).await;
        stage.done(name).await;
    }
    stage
}

impl Stage {
    /// Waits until an agent has ended its work.
    async fn done(&mut self, name: &str) {
        let is_done = |stage: &Stage| {
            let mut all = stage.driver.app.roster().all();
            all.any(|(_, known)| {
                let is_it = known.branch.agent.name == name;
                is_it && known.live.summary.last.contains("are there") && !known.live.is_busy()
            })
        };
        while !is_done(self) {
            self.driver.came().await;
            self.until(|_| true).await;
        }
    }

    fn merged(&self) -> Vec<Row> {
        let pane = self.driver.app.pane().unwrap();
        let rows = pane.agent.view.entries().iter().map(|entry| &entry.row);
        let merges = rows.filter(|row| {
            let user: UserData = data::read(row.data.as_deref());
            row.kind.read_as() == Some(Kind::User) && user.merge.is_some()
        });
        merges.map(|row| (**row).clone()).collect()
    }
}

#[tokio::test]
async fn a_child_is_merged_in_words_that_can_be_changed() {
    for size in SIZES {
        let mut stage = children(size, &["docs"]).await;

        stage.press("esc").await;
        stage.sees("Esc again to browse").await;
        stage.line("/merge docs").await;
        let screen = stage.sees("Merge docs #").await;
        assert!(screen.contains("into parser"), "{screen}");
        assert!(screen.contains("The docs are there."), "{screen}");
        for key in ["Enter merge", "Esc cancel"] {
            assert!(screen.contains(key), "{screen}");
        }
        stage.letters("Yes: ").await;
        stage.press("enter").await;
        let screen = stage.sees("1✓ merged").await;
        assert_eq!(screen.matches("⇐ merged docs #").count(), 1, "{screen}");

        let merged = stage.merged();
        assert_eq!(merged.len(), 1);
        let text = merged[0].content.as_deref().unwrap();
        assert!(text.contains("Yes: The docs are there."), "{text}");
        assert_eq!(stage.provider.requests().len(), 2, "nothing was asked");

        stage.press("ctrl-x a").await;
        let rows = stage.rows();
        let docs = rows.iter().find(|row| row.starts_with(" docs")).unwrap();
        assert!(docs.contains('✓'), "{docs}");
        assert!(!rows.iter().any(|row| row.contains("not merged")));
    }
}

#[tokio::test]
async fn esc_merges_nothing() {
    let mut stage = children((80, 24), &["docs"]).await;

    stage.line("/merge").await;
    stage.sees("Merge docs").await;
    stage.press("x esc").await;

    assert!(stage.text().contains("Nothing merged"));
    // Earlier requests to the agent are handled before this one.
    stage.talk("go on", "Yes.").await;
    assert_eq!(stage.merged(), []);
}

#[tokio::test]
async fn a_paste_goes_into_the_preview() {
    let mut stage = children((80, 24), &["docs"]).await;

    stage.line("/merge docs").await;
    stage.sees("Merge docs").await;
    stage
        .happened(TerminalEvent::Paste("Pasted. ".to_owned()))
        .await;

    assert!(stage.text().contains("Pasted. The docs are there."));
    stage.press("esc").await;
    assert_eq!(stage.input(), "");
}

#[tokio::test]
async fn what_cannot_be_merged_is_said() {
    let mut stage = children((80, 24), &["docs"]).await;

    stage.line("/merge missing").await;

    stage.sees("⚠").await;
    assert!(stage.text().contains("missing"));
}

#[tokio::test]
async fn several_are_looked_at_one_after_the_other() {
    let mut stage = children((80, 24), &["docs", "tests"]).await;

    stage.line("/merge --done").await;
    let screen = stage.sees("1 of 2").await;
    assert!(screen.contains("The docs are there."));
    stage.press("enter").await;
    assert!(stage.text().contains("2 of 2"));
    assert!(stage.text().contains("The tests are there."));
    stage.press("enter").await;
    stage.sees("2✓ merged").await;

    assert_eq!(stage.merged().len(), 2);
}

#[tokio::test]
async fn leaving_a_series_of_merges_says_how_many_were_merged() {
    let mut stage = children((80, 24), &["docs", "tests"]).await;

    stage.line("/merge --done").await;
    stage.sees("1 of 2").await;
    stage.press("enter").await;
    stage.press("esc").await;
    let screen = stage.sees("Cancelled. 1 of 2 merged").await;

    assert!(!screen.contains("Nothing merged"), "{screen}");
}

#[tokio::test]
async fn the_board_merges_and_is_there_again() {
    let mut stage = children((80, 24), &["docs"]).await;
    stage.press("ctrl-x a k").await;

    stage.press("m").await;
    stage.sees("Merge docs").await;
    stage.press("enter").await;

    stage.sees("✓ merged").await;
    assert!(stage.text().contains("2 agents"));
}

#[tokio::test]
async fn a_parent_at_work_merges_after_its_turn() {
    let mut stage = children((80, 24), &["docs"]).await;
    let waits = [Step::Say("Well".to_owned()), Step::Wait, Step::Finish];
    stage.provider.will(waits);
    stage.line("think").await;
    stage.sees("● Well").await;

    stage.line("/merge docs").await;
    stage.sees("Merge docs").await;
    stage.press("enter").await;
    assert!(stage.text().contains("when parser finishes its turn"));
    assert!(stage.merged().is_empty());
    stage.provider.go_on();

    stage.sees("1✓ merged").await;
    assert_eq!(stage.merged().len(), 1);
}
