use ikigai_core::data::{
    Amounts, AssistantData, ErrorData, RewindData, UsageData, UserData, UserOrigin,
};
use ikigai_core::{AgentId, Event};
use ikigai_testkit::{TestLog, cases};
use proptest::prelude::*;

use super::*;
use crate::look::Tone;

/// Renders each row as its own lines, four of them unless unfolded.
struct Plain;

impl ItemRenderer for Plain {
    fn lay_out(&self, item: &ScrollbackItem, unfolded: bool) -> Vec<TextLine> {
        let ItemContent::Row { row, .. } = &item.what else {
            return Vec::new();
        };
        let text = row.content.clone().unwrap_or_default();
        let most = if unfolded { usize::MAX } else { 4 };
        let lines = text.lines().take(most);
        lines.map(|line| TextLine::of(line, Tone::Text)).collect()
    }

    fn generation(&self) -> u64 {
        1
    }

    fn is_airy(&self) -> bool {
        true
    }
}

fn user(text: &str) -> Event {
    let data = UserData {
        origin: Some(UserOrigin::Typed),
        ..UserData::default()
    };
    Event::User {
        text: text.to_owned(),
        data,
    }
}

fn assistant(text: &str) -> Event {
    Event::Assistant {
        text: text.to_owned(),
        data: AssistantData {
            response: Some(1),
            ..AssistantData::default()
        },
    }
}

/// A scrollback over rows with these numbers of lines.
fn with_rows(heights: &[usize]) -> (TestLog, AgentId, Scrollback) {
    let mut log = TestLog::default();
    let agent = log.root();
    for (number, height) in heights.iter().enumerate() {
        log.append(agent, user(&lines_of(number, *height)));
    }
    let mut scrollback = Scrollback::default();
    take_in(&log, agent, &mut scrollback);
    (log, agent, scrollback)
}

fn take_in(log: &TestLog, agent: AgentId, scrollback: &mut Scrollback) {
    let agent = log.live(agent);
    scrollback.set(&agent.state, &agent.view, None);
}

fn lines_of(number: usize, height: usize) -> String {
    let lines: Vec<_> = (0..height).map(|line| format!("{number}.{line}")).collect();
    lines.join("\n")
}

fn texts(rows: &[Visible]) -> Vec<String> {
    let text = |row: &Visible| row.line().map_or_else(String::new, TextLine::text);
    rows.iter().map(text).collect()
}

/// All rows from top to bottom, with the blank ones between them.
fn all_rows(heights: &[usize]) -> Vec<String> {
    let mut rows = Vec::new();
    for (number, height) in heights.iter().enumerate() {
        let shown = (*height).min(4);
        rows.extend(lines_of(number, shown).lines().map(str::to_owned));
        if shown > 0 {
            rows.push(String::new());
        }
    }
    rows.pop();
    rows
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(200, 5_000)))]

    #[test]
    fn any_scrolling_shows_a_part_of_the_whole(
        heights in prop::collection::vec(0_usize..7, 1..30),
        height in 1_usize..12,
        steps in prop::collection::vec(-15_isize..15, 0..12),
    ) {
        let (_, _, mut scrollback) = with_rows(&heights);
        let all = all_rows(&heights);
        let last = all.len().saturating_sub(height);
        let mut top = last;

        for step in steps {
            scrollback.visible(height, &Plain);
            scrollback.scroll(step, &Plain);
            top = top.saturating_add_signed(step).min(last);
            let shown = texts(&scrollback.visible(height, &Plain));

            prop_assert_eq!(&shown[..], &all[top..all.len().min(top + height)]);
        }
    }
}

#[test]
fn what_comes_below_does_not_move_what_is_looked_at() {
    let (mut log, agent, mut scrollback) = with_rows(&[2; 20]);
    scrollback.visible(6, &Plain);
    scrollback.scroll(-10, &Plain);
    let before = texts(&scrollback.visible(6, &Plain));

    log.append(agent, assistant("one\ntwo"));
    take_in(&log, agent, &mut scrollback);
    scrollback.set_live(vec![TextLine::of("live", Tone::Text)]);

    assert_eq!(texts(&scrollback.visible(6, &Plain)), before);
    assert_eq!(scrollback.new_rows(&Plain), 5);
    scrollback.look_at_end();
    let end = texts(&scrollback.visible(4, &Plain));
    assert_eq!(end, ["one", "two", "", "live"]);
    assert_eq!(scrollback.new_rows(&Plain), 0);
}

#[test]
fn what_streams_in_can_be_scrolled_and_stays_in_sight_when_it_is_stored() {
    let (mut log, agent, mut scrollback) = with_rows(&[2; 3]);
    let lines: Vec<_> = (0..20).map(|line| format!("live {line}")).collect();
    let live = lines
        .iter()
        .map(|line| TextLine::of(line, Tone::Text))
        .collect();
    scrollback.set_live(live);
    scrollback.visible(6, &Plain);

    scrollback.scroll(-9, &Plain);
    let before = texts(&scrollback.visible(6, &Plain));
    log.append(agent, assistant(&lines.join("\n")));
    take_in(&log, agent, &mut scrollback);
    let newest = scrollback
        .items()
        .iter()
        .rev()
        .find(|item| item.is_said())
        .unwrap()
        .id;
    scrollback.toggle(newest);
    scrollback.set_live(Vec::new());

    assert_eq!(before[0], "live 5");
    assert_eq!(texts(&scrollback.visible(6, &Plain)), before);
}

#[test]
fn unfolding_shows_all_of_an_item() {
    let (_, _, mut scrollback) = with_rows(&[6]);
    let id = scrollback.items()[0].id;
    let folded = texts(&scrollback.visible(9, &Plain));

    scrollback.toggle(id);
    let unfolded = texts(&scrollback.visible(9, &Plain));

    assert_eq!(folded.len(), 4);
    assert_eq!(unfolded.len(), 6);
    scrollback.toggle_all();
    scrollback.toggle(id);
    assert_eq!(texts(&scrollback.visible(9, &Plain)), folded);
}

#[test]
fn an_item_is_brought_onto_the_screen() {
    let (_, _, mut scrollback) = with_rows(&[3; 10]);
    let (first, fifth) = (scrollback.items()[0].id, scrollback.items()[4].id);
    scrollback.visible(8, &Plain);

    scrollback.reveal(first, &Plain);
    assert_eq!(
        texts(&scrollback.visible(8, &Plain))[..3],
        ["0.0", "0.1", "0.2"]
    );
    scrollback.reveal(fifth, &Plain);
    assert_eq!(
        texts(&scrollback.visible(8, &Plain))[4..7],
        ["4.0", "4.1", "4.2"]
    );
}

#[test]
fn a_turn_that_is_over_says_what_it_used() {
    let mut log = TestLog::default();
    let agent = log.root();
    log.append(agent, user("hello"));
    log.append(agent, assistant("hi"));
    log.append(agent, user("again"));
    let mut scrollback = Scrollback::default();
    take_in(&log, agent, &mut scrollback);

    let ids: Vec<_> = scrollback.items().iter().map(|item| item.id).collect();

    let [first, second, third] =
        [1, 2, 3].map(|seq| ikigai_core::RowRef::new(agent, ikigai_core::Seq(seq)));
    assert_eq!(
        ids,
        [
            Id::Row(first),
            Id::Row(second),
            Id::Turn(first),
            Id::Row(third)
        ]
    );
}

#[test]
fn a_turn_that_is_sent_again_took_as_long_as_that_did() {
    let mut log = TestLog::default();
    let agent = log.root();
    let at = |seq| ikigai_core::RowRef::new(agent, ikigai_core::Seq(seq));
    log.append(agent, user("hello"));
    log.append(agent, assistant("hi"));
    log.append(
        agent,
        Event::Rewind(RewindData {
            target: Some(at(1)),
            ..RewindData::default()
        }),
    );
    log.append(agent, assistant("hi again"));
    log.append(agent, user("next"));
    let live = log.live(agent);
    let rows: Vec<_> = live.view.entries().iter().map(|entry| &entry.row).collect();
    let mut scrollback = Scrollback::default();
    take_in(&log, agent, &mut scrollback);

    let turn = scrollback.item(Id::Turn(at(1))).map(|item| &item.what);

    let Some(ItemContent::Turn(turn)) = turn else {
        panic!("{turn:?}");
    };
    assert_eq!(
        (turn.began, turn.ended),
        (rows[1].created_at, rows[2].created_at)
    );
}

/// `/compact` stores the usage of its summary long after the turn.
#[test]
fn what_comes_after_a_turn_does_not_change_its_figures() {
    let usage = |response, output| {
        Event::Usage(UsageData {
            response: Some(response),
            amounts: Amounts {
                output: Some(output),
                ..Amounts::default()
            },
            ..UsageData::default()
        })
    };
    let mut log = TestLog::default();
    let agent = log.root();
    let at = |seq| ikigai_core::RowRef::new(agent, ikigai_core::Seq(seq));
    log.append(agent, user("hello"));
    log.append(agent, assistant("hi"));
    log.append(agent, usage(1, 7));
    let figures = |log: &TestLog| {
        let mut scrollback = Scrollback::default();
        take_in(log, agent, &mut scrollback);
        let item = scrollback
            .item(Id::Turn(at(1)))
            .map(|item| item.what.clone());
        let items: Vec<_> = scrollback.items().iter().map(|item| item.id).collect();
        (item, items.iter().position(|id| *id == Id::Turn(at(1))))
    };
    let before = figures(&log);

    log.append(agent, usage(2, 1000));
    log.append(
        agent,
        Event::Error {
            text: "the summary failed".to_owned(),
            data: ErrorData::default(),
        },
    );
    let after = figures(&log);

    let (Some(ItemContent::Turn(turn)), _) = &before else {
        panic!("{before:?}");
    };
    assert_eq!(turn.tokens, 7);
    assert_eq!(after, before);
}

#[test]
fn selected_rows_are_copied_without_signs_and_joined_where_they_were_broken() {
    let sign = crate::line::TextSpan::new("❯ ", Tone::User);
    let row = |text: &str, joined| TextLine {
        spans: vec![sign.clone(), crate::line::TextSpan::new(text, Tone::Text)],
        lead: 1,
        joined,
    };
    let rows = [
        row("a word", None),
        row("and more", Some(" ")),
        row("end", None),
    ];

    let all = rows.iter().map(|row| (row, 0, usize::MAX));
    assert_eq!(select::join_rows(all), "a word and more\nend");
    assert_eq!(select::text_between(&rows[0], 4, 6), "wo");
}

/// Elisions and cuts are lines of the scrollback. A cut also marks where the context begins.
#[test]
fn context_rows_without_text_are_lines() {
    let mut log = TestLog::default();
    let agent = log.root();
    let at = |seq| ikigai_core::RowRef::new(agent, ikigai_core::Seq(seq));
    log.append(agent, user("hello"));
    log.append(agent, assistant("hi"));
    let row = |data| Event::Summary { text: None, data };
    let range = ikigai_core::data::SummaryData {
        from: Some(at(1)),
        to: Some(at(2)),
        ..Default::default()
    };
    let elides = ikigai_core::data::SummaryData {
        elide: Some(ikigai_core::data::Elide::default()),
        ..range.clone()
    };
    log.append(agent, row(elides));
    let cuts = ikigai_core::data::SummaryData {
        cut: Some(true),
        ..range
    };
    log.append(agent, row(cuts));
    let mut scrollback = Scrollback::default();
    take_in(&log, agent, &mut scrollback);

    assert!(scrollback.item(Id::Row(at(3))).is_some());
    assert!(scrollback.item(Id::Row(at(4))).is_some());
    let mark = scrollback.item(Id::Context(at(2))).map(|item| &item.what);
    let expected = ItemContent::Context {
        by: at(4),
        replaced: crate::rows::Replaced::ByCut,
    };
    assert_eq!(mark, Some(&expected));
}
