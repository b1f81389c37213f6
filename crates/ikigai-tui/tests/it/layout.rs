//! Positions of elements in the scrollback.

use ikigai_testkit::Step;

use crate::support::Stage;

#[tokio::test]
async fn what_a_turn_used_stands_right_below_it() {
    let mut stage = Stage::new((80, 24)).await;
    stage.talk("what is two and two", "It is four.").await;

    stage.line("/mark here").await;
    stage.sees("⚑ here").await;
    stage.talk("and three more", "Then it is seven.").await;

    let rows = stage.rows();
    let place = |text: &str| rows.iter().position(|row| row.contains(text));
    let used: Vec<_> = (0..rows.len())
        .filter(|row| rows[*row].ends_with("· 14:03"))
        .map(Some)
        .collect();
    assert_eq!(used.len(), 2, "{}", rows.join("\n"));
    assert!(place("It is four.") < used[0] && used[0] < place("⚑ here"));
    assert!(place("Then it is seven.") < used[1]);
}

#[tokio::test]
async fn what_children_do_begins_in_one_column() {
    let mut stage = Stage::new((80, 24)).await;
    for name in ["docs", "a-much-longer-name"] {
        let said = Step::Say("Working on it".to_owned());
        stage.provider.will_to(name, [said, Step::Wait]);
        let line = format!("/fork --name {name} about {name}");
        stage.line(&line).await;
    }

    let text = stage
        .until(|text| text.matches("Working on it").count() == 2)
        .await;

    let columns: Vec<_> = text.lines().filter_map(|row| row.find("Working")).collect();
    assert_eq!(columns[0], columns[1], "{text}");
}
