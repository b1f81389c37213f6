//! The board: groups of agents, the cursor, and actions on an agent.

use std::time::{Duration, Instant};

use ikigai_core::AgentId;
use ikigai_testkit::Step;

use crate::support::{SIZES, Stage};

/// Creates a root with a finished child and one that works until it is released.
async fn family(size: (u16, u16)) -> Stage {
    let mut stage = Stage::new(size).await;
    stage.talk("hello", "Hi.").await;
    stage
        .provider
        .will_say_to("write it", "The docs are there.");
    let waits = [Step::Say("Looking".to_owned()), Step::Wait, Step::Finish];
    stage.provider.will_to("measure it", waits);
    stage.line("/fork --name docs write it").await;
    stage.line("/fork --name bench measure it").await;
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        stage.until(|_| true).await;
        let known =
            |name: &str| agent(&stage, name).and_then(|id| stage.driver.app.roster().get(id));
        let is_done =
            known("docs").is_some_and(|docs| docs.live.summary.last.contains("docs are there"));
        let works = known("bench").is_some_and(|bench| bench.live.summary.last == "Looking");
        if is_done && works && !stage.works("docs") {
            return stage;
        }
        let came = tokio::time::timeout_at(end.into(), stage.driver.came()).await;
        let text = stage.text();
        assert!(came.is_ok(), "the children never came so far\n{text}");
    }
}

fn agent(stage: &Stage, name: &str) -> Option<AgentId> {
    let mut all = stage.driver.app.roster().all();
    all.find(|(_, known)| known.branch.agent.name == name)
        .map(|(id, _)| id)
}

impl Stage {
    fn works(&self, name: &str) -> bool {
        agent(self, name).is_some_and(|id| {
            let live = self.driver.app.roster().live(id);
            live.is_some_and(ikigai_engine::Live::is_busy)
        })
    }

    /// Marks the agent of a name.
    async fn mark(&mut self, name: &str) {
        self.press("/").await;
        self.line(name).await;
    }

    fn questions(&self, name: &str) -> usize {
        let id = agent(self, name).unwrap();
        let live = self.driver.app.roster().live(id);
        live.map_or(0, |live| live.questions.len())
    }
}

/// Checks that the rows with these texts are in this order.
fn in_order(stage: &mut Stage, texts: &[&str]) {
    let rows: Vec<_> = texts.iter().map(|text| stage.row_with(text)).collect();
    assert!(rows.is_sorted(), "{rows:?}\n{}", stage.text());
}

#[tokio::test]
async fn agents_stand_in_groups_or_as_a_tree() {
    for size in SIZES {
        let mut stage = family(size).await;

        stage.press("ctrl-x a").await;
        let all = [
            "Working",
            " bench",
            "Done, not merged",
            " docs",
            "Idle",
            "›parser",
        ];
        in_order(&mut stage, &all);
        let row = stage.row_with(" docs");
        let docs = stage.rows()[usize::from(row)].clone();
        assert!(docs.contains('✓'), "{docs}");
        assert!(docs.contains("The docs are"), "{docs}");

        stage.press("t").await;
        in_order(&mut stage, &["›parser", "   docs", "   bench"]);
        assert!(!stage.text().contains("Done, not merged"));

        stage.press("esc").await;
        assert!(stage.last_row().contains("? keys") || size.0 < 80);
    }
}

#[tokio::test]
async fn left_on_an_empty_input_and_a_command_open_it() {
    let mut stage = Stage::new((80, 24)).await;

    stage.press("left").await;
    stage.sees("1 agent").await;
    stage.press("q").await;
    assert!(!stage.text().contains("1 agent"));
    stage.line("/agents").await;
    assert!(stage.text().contains("1 agent"));
}

#[tokio::test]
async fn the_marked_agent_is_seen_at_work_and_gone_to() {
    for size in [(120, 40), (80, 24)] {
        let mut stage = family(size).await;
        stage.press("ctrl-x a").await;
        stage.mark("bench").await;
        if size.0 < 100 {
            assert!(!stage.text().contains("● Looking"));
            stage.press("space").await;
        }

        assert!(stage.text().contains("measure it"), "{}", stage.text());
        assert!(stage.text().contains("● Looking"), "{}", stage.text());
        stage.press("space").await;
        assert!(!stage.text().contains("● Looking"));

        stage.press("enter").await;
        assert_eq!(Some(stage.current()), agent(&stage, "bench"));
        assert!(stage.text().contains("● Looking"));
    }
}

#[tokio::test]
async fn keys_mark_and_a_filter_narrows() {
    let mut stage = family((80, 24)).await;
    stage.press("ctrl-x a").await;
    let marked = |stage: &mut Stage| {
        let (row, _) = stage.grid().cursor.unwrap();
        stage.rows()[usize::from(row)].clone()
    };
    assert!(marked(&mut stage).contains("parser"));

    stage.press("k").await;
    assert!(marked(&mut stage).contains("docs"));
    stage.press("up").await;
    assert!(marked(&mut stage).contains("bench"));
    stage.press("k j").await;
    assert!(marked(&mut stage).contains("docs"));

    stage.press("/").await;
    stage.letters("BEN").await;
    assert!(stage.text().contains("No match. Esc shows all"));
    stage.press("esc").await;
    stage.mark("ben").await;
    assert!(marked(&mut stage).contains("bench"));
    assert!(!stage.text().contains("docs"));
    stage.press("esc").await;
    assert!(stage.text().contains("docs"), "first the filter goes");
}

#[tokio::test]
async fn a_question_is_refused_on_the_board_and_approved_where_it_is_whole() {
    for size in SIZES {
        let mut stage = family(size).await;
        stage.asks(agent(&stage, "bench").unwrap(), "cargo bench");
        stage.press("ctrl-x a").await;
        assert!(stage.text().contains("Needs approval"));
        assert!(stage.text().contains("cargo bench"), "{}", stage.text());
        assert!(stage.text().contains("n reject"), "{}", stage.text());

        stage.press("n").await;
        assert_eq!(stage.questions("bench"), 1, "it was only just asked");
        stage.pass(Duration::from_secs(1)).await;
        for key in ["y", "a"] {
            stage.press(key).await;
            assert_eq!(stage.questions("bench"), 1, "{key} approves unseen");
            stage.pass(Duration::from_secs(1)).await;
            stage.sees("always allow bash \"cargo *\"").await;
            stage.press("ctrl-x a").await;
            stage.sees("Needs approval").await;
            stage.pass(Duration::from_secs(1)).await;
        }
        stage.press("n").await;
        assert_eq!(stage.questions("bench"), 0);

        stage.mark("docs").await;
        stage.press("n").await;
        assert!(stage.text().contains("docs has no question"));
    }
}

#[tokio::test]
async fn the_line_about_another_agents_question_opens_it_and_only_refuses_unseen() {
    for size in SIZES {
        let mut stage = family(size).await;
        let (root, bench) = (stage.current(), agent(&stage, "bench").unwrap());
        stage.asks(bench, "cargo bench");
        for key in ["alt-y", "alt-a", "alt-g"] {
            stage.sees("needs approval").await;
            stage.press(key).await;
            assert_eq!(stage.questions("bench"), 1, "{key} approves unseen");
            stage.pass(Duration::from_secs(1)).await;
            stage.sees("always allow bash \"cargo *\"").await;
            assert_eq!(stage.current(), bench, "{key}");
            stage.press("ctrl-x up").await;
            assert_eq!(stage.current(), root);
        }

        stage.press("alt-n").await;

        assert_eq!(stage.questions("bench"), 0);
    }
}

#[tokio::test]
async fn mail_is_typed_on_the_board() {
    let mut stage = family((80, 24)).await;
    stage.press("ctrl-x a").await;
    stage.mark("docs").await;

    stage.press("s").await;
    assert!(stage.last_row().contains("message to docs:"));
    stage.line("mind the index").await;
    stage.press("esc esc").await;

    stage.sees("Sent to docs").await;
}

#[tokio::test]
async fn the_marked_agent_is_interrupted() {
    let mut stage = family((80, 24)).await;
    stage.press("ctrl-x a").await;
    stage.mark("docs").await;
    stage.press("i").await;
    assert!(stage.text().contains("docs is idle"));

    stage.press("esc").await;
    stage.mark("bench").await;
    stage.press("i esc").await;

    stage.until(|screen| !screen.contains("Working")).await;
    assert!(!stage.works("bench"));
}

#[tokio::test]
async fn a_kill_is_asked_about_and_names_how_many() {
    let mut stage = family((80, 24)).await;
    let root = stage.current();
    stage.press("ctrl-x a enter").await;
    stage.press("ctrl-x a").await;
    stage.mark("docs").await;
    stage.press("enter").await;
    stage.line("/fork --name below").await;
    stage.until(|screen| screen.contains("[below")).await;
    stage.press("ctrl-x up ctrl-x up").await;
    assert_eq!(stage.current(), root);

    stage.press("ctrl-x a").await;
    stage.sees("below").await;
    stage.press("x").await;
    assert!(stage.text().contains("is a root"));
    stage.mark("docs").await;
    stage.press("x").await;
    let question = stage.last_row();
    assert!(question.contains("kill docs and its child?"), "{question}");
    stage.press("n").await;
    assert!(!stage.last_row().contains("kill docs"));

    stage.press("x y esc").await;
    let screen = stage.sees("Ended").await;
    assert!(screen.contains("below"), "{screen}");
    let entries = stage.driver.app.pane().unwrap().agent.view.entries().iter();
    let kills = entries.filter(|entry| {
        let data = entry.row.data.as_deref().unwrap_or_default();
        data.contains("/kill docs")
    });
    assert_eq!(kills.count(), 1, "only the one that was confirmed");
}

#[tokio::test]
async fn the_marked_agent_is_forked() {
    let mut stage = family((80, 24)).await;
    let docs = agent(&stage, "docs");
    stage.press("ctrl-x a").await;
    stage.mark("docs").await;

    stage.press("f").await;
    stage
        .until(|screen| screen.contains("forked from docs"))
        .await;

    stage.sees("↑docs").await;
    let current = stage.driver.app.roster().get(stage.current());
    let parent = current.and_then(|known| known.branch.agent.parent);
    assert_eq!(parent, docs);
}

#[tokio::test]
async fn agents_of_former_processes_show_what_they_said_and_used() {
    let mut stage = family((120, 40)).await;
    stage.provider.go_on();
    stage.until(|_| true).await;
    let engine = stage.driver.engine.clone();
    let mut stage = stage.again(engine).await;

    stage.press("ctrl-x a").await;

    let screen = stage.sees("The docs are there.").await;
    let docs = screen.lines().find(|row| row.contains(" docs")).unwrap();
    assert!(docs.contains("✓ done"), "{docs}");
    assert!(docs.contains("12"), "tokens: {docs}");
}

#[tokio::test]
async fn a_long_answer_is_previewed_from_its_beginning() {
    let mut stage = Stage::new((90, 24)).await;
    stage.talk("hello", "Good day.").await;
    stage.line("/fork --name docs").await;
    stage.sees("[docs").await;
    let answer = format!("Yes. All {}", "remarkable ".repeat(40));
    stage.talk("tell me much", answer.trim()).await;

    stage.press("ctrl-x a").await;
    let board = stage.sees("docs   ✓ done").await;

    assert!(board.contains("Yes. All remarkable"), "{board}");
}

#[tokio::test]
async fn a_failed_child_has_a_cross_in_the_tree_and_on_the_board() {
    let mut stage = Stage::new((80, 24)).await;
    stage.talk("hello", "Hi.").await;
    let fails = [Step::Fail("no such model".to_owned())];
    stage.provider.will_to("break it", fails);

    stage.line("/fork --name docs break it").await;
    let tree = stage.until(|text| text.contains("(1✗)")).await;
    stage.press("ctrl-x a").await;
    let board = stage.sees("✗ failed").await;

    assert!(tree.contains("  ✗ docs"), "{tree}");
    assert!(tree.contains("no such model"), "{tree}");
    assert!(board.contains("no such model"), "{board}");
    assert!(!tree.contains('✓'), "{tree}");
    assert!(board.contains("Failed\n"), "{board}");
}

#[tokio::test]
async fn an_interrupted_child_is_stopped_and_not_done() {
    let mut stage = family((120, 24)).await;
    stage.press("ctrl-x a").await;
    stage.mark("bench").await;

    stage.press("i esc").await;
    let board = stage.sees("⏸ stopped").await;
    stage.press("esc").await;
    let tree = stage.sees("1⏸").await;
    stage.line("/switch bench").await;
    stage.sees("[bench ⏸]").await;
    stage.press("ctrl-x a").await;
    let looked_at = stage.sees("⏸ stopped").await;

    for board in [&board, &looked_at] {
        assert_eq!(board.matches("✓ done").count(), 1, "{board}");
    }
    assert!(!tree.contains("✓ bench"), "{tree}");
}

#[tokio::test]
async fn only_agents_with_a_turn_of_their_own_are_at_work() {
    let mut stage = Stage::new((120, 24)).await;
    let waits = [Step::Say("Looking".to_owned()), Step::Wait, Step::Finish];
    stage.provider.will_to("measure it", waits);

    stage.line("/fork --name bench measure it").await;
    stage.sees("◐ bench").await;
    stage.press("ctrl-x a").await;
    let board = stage.sees("1 working").await;

    let row = board.lines().find(|row| row.starts_with("›parser"));
    assert!(row.is_some_and(|row| row.contains("· idle")), "{board}");
}

#[tokio::test]
async fn a_long_call_of_another_agent_leaves_room_for_the_keys() {
    let mut stage = family((80, 24)).await;
    let docs = agent(&stage, "docs").unwrap();

    stage.asks(docs, &"touch file && ".repeat(20));
    let seen = stage.sees("Alt-G open").await;

    assert!(seen.contains("…   Alt-N no · Alt-G open"), "{seen}");
}
