//! Checks of rows: stored and read unchanged, in order, and only valid ones.

use ikigai_core::kind::PartRule;
use ikigai_core::{
    Direction, Epoch, Event, Kind, Micros, NewRow, PageQuery, Seq, Span, StoredKind,
};
use ikigai_store::{CommitError, Effect, HeadClaim, MailEffect, Snapshot};

use super::Rig;
use super::samples::{at, kill_row, mark, one_of_each_kind, rewind, usage, user, user_row};
use super::workbench::{Workbench, seqs, stored};

/// S1-9: every kind is stored and reads back with the same kind, content, data and time.
pub(super) async fn insert_and_read_back_every_kind(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut holder = desk.agent("root").await;
    let events = one_of_each_kind(holder.agent);
    let rows: Vec<NewRow> = (0..)
        .zip(events)
        .map(|(n, event)| event.into_row(holder.agent, at(n)))
        .collect();

    holder.commit(rows.clone(), Vec::new()).await.unwrap();

    let expected: Vec<_> = (1..)
        .zip(rows)
        .map(|(seq, row)| stored(row, Seq(seq)))
        .collect();
    assert_eq!(expected.len(), Kind::ALL.len());
    assert_eq!(desk.rows(holder.agent).await, expected);
}

/// D4a: no name outside the enum, the legacy `tool` included, is a kind of new rows.
/// A row that breaks the rule of its kind is refused with its whole batch.
pub(super) async fn insert_refuses_unknown_kind(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut holder = desk.agent("root").await;

    for name in ["tool", "bogus", "", "User", "user ", "tool-call"] {
        assert!(name.parse::<Kind>().is_err(), "`{name}` is no kind");
    }
    for event in one_of_each_kind(holder.agent) {
        for row in rule_breakers(event.into_row(holder.agent, at(0))) {
            let batch = vec![user_row(holder.agent, "before"), row.clone()];
            let refused = holder.commit(batch, Vec::new()).await;
            assert_refused!(refused, CommitError::BadRow(_), "{row:?}");
        }
    }

    assert_eq!(desk.rows(holder.agent).await, []);
    assert_eq!(desk.head(holder.agent).await.seq, Seq(0));
}

/// Rows of an older, newer or faulty program are read like all others.
/// The store returns their original kind names; loading judges them.
pub(super) async fn foreign_rows_are_read_as_they_are(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut holder = desk.agent("root").await;
    holder.add([user("before")]).await;

    let foreign = [
        ("tool", Some("shown"), Some("{}"), false),
        ("a kind of 2031", None, Some("no JSON at all"), true),
        ("user", None, None, false),
    ];
    for (kind, content, data, control) in foreign {
        holder.head = rig.inject(holder.agent, kind, content, data, control).seq;
    }
    holder.add([user("after")]).await;

    let rows = desk.rows(holder.agent).await;
    let places = seqs(&rows);
    assert_eq!(places, [1, 2, 3, 4, 5]);
    for (row, (kind, content, data, _)) in rows[1..].iter().zip(foreign) {
        assert_eq!(row.kind, StoredKind::of(kind));
        assert_eq!(row.content.as_deref(), content);
        assert_eq!(row.data.as_deref(), data);
    }
    let span = Span::new(holder.agent, Seq(1), Seq(5));
    let control = desk.control(span, 9).await;
    assert_eq!(control, [rows[2].clone()]);
}

/// S3-3 S3-14: a row of an unknown agent, or without a claim, is refused with its batch.
pub(super) async fn row_without_owner_is_refused(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut holder = desk.agent("root").await;
    let unknown = desk.ids.agent();

    let unclaimed = vec![user_row(holder.agent, "mine"), user_row(unknown, "whose?")];
    let refused = holder.commit(unclaimed, Vec::new()).await;
    assert_refused!(refused, CommitError::BadBatch(_));

    let claims = [
        desk.holder(unknown, Epoch(1), Seq(0)).claim(),
        desk.holder(unknown, Epoch(0), Seq(0)).claim(),
        HeadClaim {
            agent: unknown,
            lease: None,
        },
    ];
    for claim in claims {
        let rows = match claim.lease {
            Some(_) => vec![user_row(holder.agent, "mine"), user_row(unknown, "whose?")],
            None => vec![
                user_row(holder.agent, "mine"),
                kill_row(unknown, holder.agent),
            ],
        };
        let heads = vec![holder.claim(), claim];
        let refused = desk.commit(heads, rows, Vec::new()).await;
        assert_refused!(refused, CommitError::NoAgent(agent) if *agent == unknown);
    }

    assert_eq!(desk.rows(holder.agent).await, []);
    assert_eq!(desk.rows(unknown).await, []);
    assert_eq!(desk.store.head(unknown).await.unwrap(), None);
}

/// D12b: sequence numbers start at 1 for each agent and have no gap, even after failed batches.
pub(super) async fn sequence_has_no_gaps(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut one = desk.agent("one").await;
    let mut two = desk.agent("two").await;
    let lost = |agent| mark("lost").into_row(agent, at(0));

    for round in 0..5 {
        let done = one.append([user("a"), user("b"), user("c")]).await.unwrap();
        assert_eq!(done.rows, [1, 2, 3].map(|n| one.row(3 * round + n)));
        two.add([user("d")]).await;

        // Refused in the check, after the rows, and because of another agent's claim.
        let bad_row = NewRow {
            content: None,
            ..user_row(one.agent, "")
        };
        one.commit(vec![lost(one.agent), bad_row], vec![])
            .await
            .unwrap_err();
        let bad_effect = Effect::Mail(MailEffect::Withdraw {
            mail: desk.ids.mail(),
        });
        one.commit(vec![lost(one.agent)], vec![bad_effect])
            .await
            .unwrap_err();
        let stale = desk.holder(two.agent, Epoch(1), Seq(0)).claim();
        let rows = vec![lost(one.agent), lost(two.agent)];
        desk.commit(vec![one.claim(), stale], rows, Vec::new())
            .await
            .unwrap_err();
    }

    for (agent, count) in [(one.agent, 15), (two.agent, 5)] {
        let rows = desk.rows(agent).await;
        let places = seqs(&rows);
        assert_eq!(places, (1..=count).collect::<Vec<u64>>());
        assert!(rows.iter().all(|row| row.at.agent == agent));
        assert!(
            rows.iter()
                .all(|row| row.kind == StoredKind::Known(Kind::User))
        );
        let span = Span::new(agent, Seq(1), Seq(count));
        assert_eq!(desk.control(span, 9).await, []);
        assert_eq!(desk.head(agent).await.seq, Seq(count));
    }
}

/// Rows of one batch may alternate between agents.
/// Each log has them in the order of the batch, and the reply has their positions.
pub(super) async fn rows_of_several_agents_keep_their_order(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let one = desk.agent("one").await;
    let two = desk.agent("two").await;

    let words = [
        (&one, "a"),
        (&two, "b"),
        (&two, "c"),
        (&one, "d"),
        (&two, "e"),
    ];
    let rows = words
        .iter()
        .map(|(holder, text)| user_row(holder.agent, text))
        .collect();
    let heads = vec![two.claim(), one.claim()];
    let done = desk.commit(heads, rows, Vec::new()).await.unwrap();

    assert_eq!(
        done.rows,
        [one.row(1), two.row(1), two.row(2), one.row(2), two.row(3)]
    );
    assert_eq!(desk.texts(one.agent).await, ["a", "d"]);
    assert_eq!(desk.texts(two.agent).await, ["b", "c", "e"]);
}

/// S3-17 D12a: order is by sequence number alone, for any times.
pub(super) async fn order_ignores_timestamps(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut holder = desk.agent("root").await;
    let times = [
        at(5),
        at(5),
        at(-9),
        at(5),
        Micros(i64::MIN),
        Micros(i64::MAX),
        Micros(0),
    ];
    for (text, time) in ["a", "b", "c", "d", "e", "f", "g"].into_iter().zip(times) {
        let row = NewRow {
            created_at: time,
            ..user_row(holder.agent, text)
        };
        holder.commit(vec![row], Vec::new()).await.unwrap();
    }

    let rows = desk.rows(holder.agent).await;

    assert_eq!(
        desk.texts(holder.agent).await,
        ["a", "b", "c", "d", "e", "f", "g"]
    );
    assert_eq!(
        rows.iter().map(|row| row.created_at).collect::<Vec<_>>(),
        times
    );
    let touched = desk.record(holder.agent).await.touched_at;
    assert_eq!(touched, Some(Micros(0)));
}

/// S3-16: a range has the rows after its start, up to and including its end.
/// As a span that is `from..=to`. It is read from either end, never with more rows than requested.
pub(super) async fn range_start_exclusive_end_inclusive(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut holder = desk.agent("root").await;
    let mut other = desk.agent("other").await;
    for n in 1..=6 {
        holder.add([user(&n.to_string())]).await;
        other.add([user("not this one")]).await;
    }
    let cases: [(u64, u64, usize, &[u64]); 10] = [
        (1, 6, 9, &[1, 2, 3, 4, 5, 6]),
        (3, 5, 9, &[3, 4, 5]),
        (3, 3, 9, &[3]),
        (5, 99, 9, &[5, 6]),
        (5, u64::MAX, usize::MAX, &[5, 6]),
        (0, 2, 9, &[1, 2]),
        (4, 3, 9, &[]),
        (7, 9, 9, &[]),
        (u64::MAX, u64::MAX, 9, &[]),
        (1, 6, 0, &[]),
    ];

    for (from, to, limit, expected) in cases {
        let span = Span::new(holder.agent, Seq(from), Seq(to));
        let forwards = places(&desk, span, Direction::Forwards, limit).await;
        assert_eq!(forwards, expected, "{span:?}");
        let mut backwards = places(&desk, span, Direction::Backwards, limit).await;
        backwards.reverse();
        assert_eq!(backwards, expected, "{span:?}");
    }
    let span = Span::new(holder.agent, Seq(2), Seq(5));
    assert_eq!(places(&desk, span, Direction::Forwards, 2).await, [2, 3]);
    assert_eq!(places(&desk, span, Direction::Backwards, 2).await, [5, 4]);
    let unknown = Span::new(desk.ids.agent(), Seq(1), Seq(9));
    assert!(
        places(&desk, unknown, Direction::Forwards, 9)
            .await
            .is_empty()
    );
}

/// Rows of several spans, of one agent or more, come from one query, newest first.
/// There are never more than requested, and they end where a span has fewer rows than it should.
pub(super) async fn rows_of_several_spans_come_in_one_go(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut parent = desk.agent("parent").await;
    let mut child = desk.agent("child").await;
    for n in 1..=6 {
        parent.add([user(&n.to_string())]).await;
        child.add([user(&n.to_string())]).await;
    }
    let (p, c) = (parent.agent, child.agent);
    let span = |agent, from, to| Span::new(agent, Seq(from), Seq(to));
    let path = vec![span(c, 5, 6), span(c, 1, 2), span(p, 2, 4)];
    let torn = vec![span(c, 5, 6), span(p, 6, 9), span(p, 1, 2)];
    let all = [(c, 6), (c, 5), (c, 2), (c, 1), (p, 4), (p, 3), (p, 2)];
    let cases = [
        (&path, usize::MAX, &all[..]),
        (&path, 7, &all[..]),
        (&path, 6, &all[..6]),
        (&path, 4, &all[..4]),
        (&path, 3, &all[..3]),
        (&path, 1, &all[..1]),
        (&path, 0, &[]),
        (&torn, 9, &[(c, 6), (c, 5), (p, 6)]),
    ];

    for (spans, limit, expected) in cases {
        let rows = desk.store.pages(spans.clone(), limit).await.unwrap();
        let places: Vec<_> = rows
            .iter()
            .map(|row| (row.at.agent, row.at.seq.0))
            .collect();
        assert_eq!(places, expected, "{spans:?} {limit}");
        for row in &rows {
            let whole = desk.rows(row.at.agent).await;
            assert!(whole.contains(row), "{row:?}");
        }
    }
    assert_eq!(desk.store.pages(Vec::new(), 9).await.unwrap(), []);
}

/// The query for opening an agent returns the same as the single queries.
pub(super) async fn an_agent_is_opened_with_one_question(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut holder = desk.agent("root").await;
    let mut other = desk.agent("other").await;
    let agent = holder.agent;
    let point = async |limit| {
        desk.store
            .restore_point(agent, limit)
            .await
            .unwrap()
            .unwrap()
    };
    let unknown = desk.store.restore_point(desk.ids.agent(), 9).await.unwrap();
    let empty = point(9).await;
    for n in 1..=4 {
        let label = n.to_string();
        holder.add([mark(&label), user(&label)]).await;
        other.add([mark("not this one")]).await;
    }
    let before = point(9).await;
    let snapshot = |seq, folded: &str| Snapshot {
        upto: holder.row(seq),
        folded: folded.to_owned(),
    };
    let (old, new) = (snapshot(1, "old"), snapshot(4, "new"));
    for snapshot in [&old, &new] {
        desk.done([Effect::PutSnapshot(snapshot.clone())]).await;
    }
    let after = point(9).await;
    let short = point(1).await;

    assert_eq!(unknown, None);
    assert_eq!(
        (empty.head, seqs(&empty.control), empty.snapshot),
        (Seq(0), vec![], None)
    );
    assert_eq!(
        (before.head, seqs(&before.control)),
        (Seq(8), vec![7, 5, 3, 1])
    );
    assert_eq!(before.snapshot, None);
    assert_eq!((after.head, seqs(&after.control)), (Seq(8), vec![7, 5]));
    assert_eq!(after.snapshot, Some(new));
    assert_eq!(seqs(&short.control), [7]);
}

/// The control rows of a span come newest first; a limit keeps the newest.
pub(super) async fn control_rows_come_newest_first(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut holder = desk.agent("root").await;
    let mut other = desk.agent("other").await;
    other.add([mark("not this one")]).await;
    for n in 1..=4 {
        holder.add([user("said"), mark(&n.to_string())]).await;
    }
    let control = async |from, to, limit| -> Vec<u64> {
        let span = Span::new(holder.agent, Seq(from), Seq(to));
        let rows = desk.control(span, limit).await;
        seqs(&rows)
    };

    assert_eq!(control(1, 8, 9).await, [8, 6, 4, 2]);
    assert_eq!(control(1, u64::MAX, usize::MAX).await, [8, 6, 4, 2]);
    assert_eq!(control(1, 8, 2).await, [8, 6]);
    assert!(control(1, 8, 0).await.is_empty());
    assert_eq!(control(4, 6, 9).await, [6, 4]);
    assert!(control(5, 5, 9).await.is_empty());
    let span = Span::new(holder.agent, Seq(4), Seq(4));
    let rows = desk.control(span, 1).await;
    assert_eq!(rows, desk.rows(holder.agent).await[3..4]);
}

/// `usage` rows of a span come newest first; each agent's newest one is found.
pub(super) async fn usage_rows_come_newest_first(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut holder = desk.agent("root").await;
    let mut other = desk.agent("other").await;
    let silent = desk.agent("silent").await;
    other.add([usage(7), user("said")]).await;
    for n in 1..=4 {
        holder.add([user("said"), usage(n)]).await;
    }
    let found = async |from, to, limit| -> Vec<u64> {
        let span = Span::new(holder.agent, Seq(from), Seq(to));
        let rows = desk.store.usage(span, limit).await.unwrap();
        seqs(&rows)
    };

    assert_eq!(found(1, 8, 9).await, [8, 6, 4, 2]);
    assert_eq!(found(1, u64::MAX, usize::MAX).await, [8, 6, 4, 2]);
    assert_eq!(found(1, 7, 2).await, [6, 4]);
    assert!(found(1, 8, 0).await.is_empty());
    let agents = vec![holder.agent, silent.agent, other.agent];
    let newest = desk.store.newest_usage(agents).await.unwrap();
    let mut expected = desk.rows(holder.agent).await[7..].to_vec();
    expected.extend(desk.rows(other.agent).await[..1].to_vec());
    assert_eq!(newest, expected);
}

/// Only rows of kind `user` are counted, in the given spans, both ends included.
pub(super) async fn messages_of_spans_are_counted(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut holder = desk.agent("root").await;
    let mut other = desk.agent("other").await;
    other.add([user("said"), user("said")]).await;
    for n in 1..=4 {
        holder.add([user("said"), usage(n)]).await;
    }
    let span = |from, to| Span::new(holder.agent, Seq(from), Seq(to));
    let cases = [
        (vec![], 0),
        (vec![span(1, 8)], 4),
        (vec![span(3, 5)], 2),
        (vec![span(4, 4)], 0),
        (vec![span(1, 1), span(5, 8), Span::whole(other.agent)], 5),
    ];

    for (spans, expected) in cases {
        let counted = desk.store.count_messages(spans.clone()).await.unwrap();
        assert_eq!(counted, expected, "{spans:?}");
        let rows = desk.store.user_rows(spans.clone(), 100).await.unwrap();
        assert_eq!(rows.len() as u64, expected, "{spans:?}");
    }
    let spans = vec![span(5, 8), span(1, 4)];
    let newest = desk.store.user_rows(spans, 3).await.unwrap();
    assert_eq!(
        seqs(&newest),
        [7, 5, 3],
        "newest first, as far as the limit"
    );
}

/// S3-22b: text and data are restored byte for byte.
pub(super) async fn command_text_round_trips(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut holder = desk.agent("root").await;
    let all_of_unicode: String = ('\u{1}'..=char::MAX).collect();
    let large = "0123456789abcdef é\n".repeat(5_000_000 / 20);
    let texts = [
        "",
        " ",
        "\n",
        "\r\n\t",
        "'single' \"double\" `back` \\ \\n %s $1 ?1 :a @b; DROP TABLE messages; --",
        "e\u{301} is not é",
        &all_of_unicode,
        &large,
    ];
    let data = [
        "{}",
        "{ \"b\" : 1 ,\n\t\"a\":2}\n",
        r#"{"a":1,"a":2}"#,
        r#"{"n":1.0,"m":1e2,"k":0.10,"big":123456789012345678901234567890}"#,
        r#"{"nul":"\u0000","escaped":"\u00e9\/","plain":"é/"}"#,
        "",
        "neither an object nor JSON",
        &large,
    ];

    for (text, data) in texts.into_iter().zip(data) {
        let data = Some(data.to_owned());
        let row = NewRow {
            data,
            ..user_row(holder.agent, text)
        };
        holder.commit(vec![row.clone()], Vec::new()).await.unwrap();

        let span = Span::new(holder.agent, holder.head, holder.head);
        let query = PageQuery::oldest(span, 1);
        let read = desk.store.page(query).await.unwrap();
        // Not `assert_eq`, which would print megabytes.
        assert!(
            read == [stored(row, holder.head)],
            "text of {} bytes has changed",
            text.len()
        );
    }
}

/// D11g: `clear` and `rewind` are ordinary rows and remove nothing from the log.
pub(super) async fn clear_and_rewind_delete_no_rows(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut holder = desk.agent("root").await;
    holder.add([user("one"), mark("here"), user("two")]).await;
    let before = desk.rows(holder.agent).await;

    holder.add([rewind(holder.agent, 2, 3)]).await;
    holder.add([Event::Clear, user("three")]).await;

    let after = desk.rows(holder.agent).await;
    assert_eq!(after[..3], before);
    let kinds: Vec<&str> = after[3..].iter().map(|row| row.kind.name()).collect();
    assert_eq!(kinds, ["rewind", "clear", "user"]);
}

async fn places(desk: &Workbench, span: Span, direction: Direction, limit: usize) -> Vec<u64> {
    let rows = desk
        .store
        .page(PageQuery {
            span,
            direction,
            limit,
        })
        .await
        .unwrap();
    assert!(rows.iter().all(|row| row.at.agent == span.agent));
    seqs(&rows)
}

/// Returns variants of the row: without a required part, or with a forbidden one.
fn rule_breakers(row: NewRow) -> Vec<NewRow> {
    let rule = row.kind.insert_rule();
    let mut broken = Vec::new();
    let break_part = |rule: PartRule, word: &str| match rule {
        PartRule::Required => Some(None),
        PartRule::Absent => Some(Some(word.to_owned())),
        PartRule::Optional => None,
    };
    if let Some(content) = break_part(rule.content, "text") {
        broken.push(NewRow {
            content,
            ..row.clone()
        });
    }
    if let Some(data) = break_part(rule.data, "{}") {
        broken.push(NewRow { data, ..row });
    }
    broken
}
