//! Choosing: letters narrow it, Enter carries out what was chosen, and looking leaves no row.

use crate::shown::{Shown, engine, on_runtime};

/// The row below which entries stand, and all rows of the picker.
fn picker(shown: &Shown, title: &str) -> Vec<String> {
    let rows = shown.rows();
    let top = rows.iter().position(|row| row.starts_with(title)).unwrap();
    rows[top..rows.len() - 1].to_vec()
}

#[test]
fn a_model_is_chosen_by_letters_and_then_its_level() {
    on_runtime(async {
        let mut shown = Shown::open(engine(), 100, 30).await;
        let agent = shown.driver.app.current();

        shown.type_text("/model").await;
        shown.press(&["enter"]).await;
        shown.wait_for("which model answers · now demo").await;
        assert_eq!(shown.commands(agent).await, [""; 0]);
        let all = picker(&shown, "which model answers");
        assert_eq!(all.len(), 15, "{all:#?}");
        let first = all
            .iter()
            .position(|row| row.contains("anthropic:"))
            .unwrap();
        assert!(!all[first].contains("no key"), "{all:#?}");

        shown.type_text("claude-opus").await;
        let marked = shown.rows().into_iter().find(|row| row.starts_with("> "));
        let marked = marked.unwrap();
        assert!(marked.contains("anthropic:claude-opus"), "{marked}");
        assert!(marked.contains('$') && marked.contains("low"), "{marked}");

        shown.press(&["enter"]).await;
        shown.wait_for("how much anthropic:claude-opus").await;
        shown.type_text("low").await;
        shown.press(&["enter"]).await;
        shown.wait_for("Switched to Anthropic").await;

        let commands = shown.commands(agent).await;
        assert_eq!(commands.len(), 1);
        assert!(commands[0].starts_with("/model anthropic:claude-opus"));
        assert!(commands[0].ends_with("/low"), "{commands:?}");
    });
}

#[test]
fn a_picker_counts_what_fits_and_leaves_no_row() {
    on_runtime(async {
        let mut shown = Shown::open(engine(), 80, 24).await;
        let agent = shown.driver.app.current();
        shown.type_text("/model").await;
        shown.press(&["enter"]).await;
        shown.wait_for("which model answers").await;

        shown.type_text("demo").await;
        let rows = picker(&shown, "which model answers");
        assert!(rows[0].ends_with("1/1"), "{rows:#?}");
        assert_eq!(rows[1], "choose demo");
        let row = shown.rows().iter().position(|row| row == "choose demo");
        let row = u16::try_from(row.unwrap()).unwrap();
        assert_eq!(shown.cursor(), Some((row, 11)));

        shown.type_text("xyzzy").await;
        shown.wait_for("nothing is called so").await;
        shown.press(&["enter", "ctrl-u", "esc"]).await;
        shown
            .wait_until("input", |text| !text.contains("choose"))
            .await;

        assert_eq!(shown.commands(agent).await, [""; 0]);
    });
}

#[test]
fn an_agent_is_chosen_by_the_mouse() {
    on_runtime(async {
        let mut shown = Shown::open(engine(), 80, 24).await;
        let parent = shown.driver.app.current();
        shown.type_text("/fork --name docs").await;
        shown.press(&["enter"]).await;
        shown.wait_for("[docs").await;
        let child = shown.driver.app.current();

        shown.type_text("/switch").await;
        shown.press(&["esc", "enter"]).await;
        shown.wait_for("go to an agent").await;
        shown.click("  docs").await;
        shown
            .wait_until("input", |text| !text.contains("go to an agent"))
            .await;
        assert_eq!(shown.driver.app.current(), child);

        shown.type_text("/sessions").await;
        shown.press(&["enter"]).await;
        shown.wait_for("go to a session's agent").await;
        shown.press(&["enter"]).await;
        shown.wait_for("[parser").await;

        assert_eq!(shown.driver.app.current(), parent);
        let said = shown.commands(child).await;
        assert_eq!(said, ["/switch docs", "/switch parser"]);
    });
}
