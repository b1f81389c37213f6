//! Checks of search: hits, conditions and order.

use ikigai_core::data::{AssistantData, BlobRef, ToolResultData};
use ikigai_core::find::Words;
use ikigai_core::{Event, Kind, Micros, RowRef};
use ikigai_store::blobs::put_blob;
use ikigai_store::{Effect, Hit, Log, NewAgent, SearchPage, SearchQuery, SessionRecord, SortOrder};

use super::Rig;
use super::samples::{at, create, user, user_row};
use super::workbench::Workbench;

fn query(typed: &str) -> SearchQuery {
    SearchQuery {
        words: Words::parse(typed),
        limit: 10,
        ..SearchQuery::default()
    }
}

async fn search(store: &dyn Log, query: SearchQuery) -> SearchPage {
    store.search(query).await.unwrap()
}

async fn found(store: &dyn Log, query: SearchQuery) -> Vec<RowRef> {
    let page = search(store, query).await;
    assert!(!page.cut && !page.whole_words, "{page:?}");
    page.hits.into_iter().map(|hit| hit.at).collect()
}

fn marked(hit: &Hit) -> Vec<&str> {
    let marks = hit.snippet.marks.iter();
    marks.map(|mark| &hit.snippet.text[mark.clone()]).collect()
}

fn result(output: &str, blob: Option<BlobRef>) -> Event {
    Event::ToolResult {
        shown: Some("shown".to_owned()),
        data: ToolResultData {
            tool_call_id: Some("c".to_owned()),
            name: Some("bash".to_owned()),
            output: Some(output.to_owned()),
            success: Some(true),
            blob,
            ..ToolResultData::default()
        },
    }
}

/// Words, phrases and prefixes are found, with any case and accents.
///
/// Rows that are added later, also by another process, are found too.
pub(super) async fn rows_are_found_by_their_words(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut holder = desk.agent("root").await;
    let said = ["The quick brown fox", "a brown bear", "Señor Müller"];
    holder.add(said.map(user)).await;
    let store = &*desk.store;
    let row = |seq| holder.row(seq);

    assert_eq!(found(store, query("brown")).await, [row(2), row(1)]);
    assert_eq!(found(store, query("BROWN fox")).await, [row(1)]);
    assert_eq!(found(store, query("\"brown bear\"")).await, [row(2)]);
    assert_eq!(found(store, query("\"bear brown\"")).await, []);
    assert_eq!(found(store, query("senor muller")).await, [row(3)]);
    assert_eq!(found(store, query("bro")).await, []);
    assert_eq!(found(store, query("bro* qui*")).await, [row(1)]);
    let hit = search(store, query("fox quick")).await.hits.remove(0);
    assert_eq!((hit.kind.name(), hit.created_at), ("user", at(0)));
    assert_eq!(marked(&hit), ["quick", "fox"]);

    holder.add([user("one more fox")]).await;

    let later = [holder.row(4), holder.row(1)];
    assert_eq!(found(store, query("fox")).await, later);
    let second = desk.second(rig);
    assert_eq!(found(&*second.store, query("fox")).await, later);
}

/// Chinese and Japanese have no spaces: a typed sequence is found anywhere in a text.
pub(super) async fn words_without_spaces_are_found_within_others(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut holder = desk.agent("root").await;
    let said = ["修复解析器的错误", "Rust言語のコード・テスト", "解器析"];
    holder.add(said.map(user)).await;
    let store = &*desk.store;
    let row = |seq| holder.row(seq);

    assert_eq!(found(store, query("解析器")).await, [row(1)]);
    assert_eq!(found(store, query("错误 修复")).await, [row(1)]);
    assert_eq!(found(store, query("析")).await, [row(3), row(1)]);
    assert_eq!(found(store, query("rust コード")).await, [row(2)]);
    assert_eq!(found(store, query("コードテ")).await, [row(2)]);
    assert_eq!(found(store, query("言語*")).await, [row(2)]);
    assert_eq!(found(store, query("器解")).await, []);
    let hit = search(store, query("解析器")).await.hits.remove(0);
    assert_eq!(marked(&hit), ["解析器"]);
}

/// Tool output is found, also the ends of a large one in a blob.
pub(super) async fn tool_output_is_found_in_rows_and_blobs(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut holder = desk.agent("root").await;
    let large = format!(
        "firstword\n{}middleword\n{}lastword",
        "x y z\n".repeat(150_000),
        "x y z\n".repeat(150_000)
    );
    let hash = put_blob(&*desk.store, large.as_bytes()).await.unwrap();
    let blob = BlobRef {
        hash: Some(hash.to_string()),
        bytes: Some(large.len() as u64),
    };
    let missing = BlobRef {
        hash: Some("00".repeat(32)),
        bytes: Some(1),
    };
    let results = [
        result("a needle in it", None),
        result("cut", Some(blob)),
        result("cut", Some(missing)),
    ];
    holder.add(results).await;
    let store = &*desk.store;

    assert_eq!(found(store, query("needle")).await, [holder.row(1)]);
    assert_eq!(found(store, query("shown bash")).await.len(), 3);
    for word in ["firstword", "lastword"] {
        let page = search(store, query(word)).await;
        assert_eq!(page.hits.len(), 1, "{word}");
        assert_eq!(page.hits[0].at, holder.row(2));
        assert_eq!(marked(&page.hits[0]), [word]);
    }
    assert_eq!(found(store, query("middleword")).await, []);
}

/// No text is a syntax error, and none has an effect beyond words.
pub(super) async fn what_is_typed_has_no_meaning_but_quotes_and_stars(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut holder = desk.agent("root").await;
    let said = [
        "near and not or",
        "a1 kuser tags text",
        "say \"cheese\" now",
    ];
    holder.add(said.map(user)).await;
    let store = &*desk.store;

    assert_eq!(
        found(store, query("NOT and NEAR OR")).await,
        [holder.row(1)]
    );
    assert_eq!(found(store, query("tags:kuser")).await, []);
    assert_eq!(found(store, query("tags : kuser")).await, [holder.row(2)]);
    assert_eq!(found(store, query("cheese\" say*")).await, [holder.row(3)]);
    for hostile in [
        "\"",
        "\"\"\"",
        "a\"b\"\"c",
        "(",
        ")*(",
        "{text}",
        "^x",
        "a + b",
        "near(a b, 3)",
        "x AND",
        "NOT",
        "-- ;",
        "';drop table search;--",
        "\0",
        "a\0b",
        "*",
        "\u{fffd}\u{301}",
        "text:",
        "- - -",
        "%",
        "\\",
        "\u{202e}",
    ] {
        found(store, query(hostile)).await;
    }
    found(store, query(&"(".repeat(100_000))).await;
    found(store, query(&"word ".repeat(10_000))).await;
}

/// Every condition narrows, alone and combined.
pub(super) async fn hits_are_narrowed_by_agent_kind_model_time_and_directory(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut one = desk.agent("one").await;
    let elsewhere = desk.ids.session();
    let make = Effect::MakeSession(SessionRecord {
        id: elsewhere,
        name: "other".to_owned(),
        directory: "/home/ada/workshop".to_owned(),
        created_at: at(0),
        machine: None,
        host: None,
    });
    let agent = NewAgent {
        session: elsewhere,
        ..desk.new_agent("two")
    };
    let two_id = agent.id;
    desk.done([make, create(agent, true)]).await;
    let mut two = desk.holder(two_id, ikigai_core::Epoch(1), ikigai_core::Seq(0));
    let answer = |model: &str| Event::Assistant {
        text: "word".to_owned(),
        data: AssistantData {
            model: Some(model.to_owned()),
            ..AssistantData::default()
        },
    };
    one.add([user("word"), answer("claude-opus-4"), Event::Clear])
        .await;
    let late = user("word").into_row(two.agent, at(50));
    two.commit(vec![late], Vec::new()).await.unwrap();
    let store = &*desk.store;
    let all = [two.row(1), one.row(2), one.row(1)];

    assert_eq!(found(store, query("word")).await, all);
    let of = |agents: &[_]| SearchQuery {
        agents: Some(agents.to_vec()),
        ..query("word")
    };
    assert_eq!(found(store, of(&[two.agent])).await, all[..1]);
    assert_eq!(found(store, of(&[two.agent, one.agent])).await, all);
    assert_eq!(found(store, of(&[desk.ids.agent()])).await, []);
    assert_eq!(found(store, of(&[])).await, []);
    let kinds = |kinds: &[Kind], typed| SearchQuery {
        kinds: kinds.to_vec(),
        ..query(typed)
    };
    assert_eq!(
        found(store, kinds(&[Kind::Assistant], "word")).await,
        all[1..2]
    );
    assert_eq!(found(store, kinds(&[Kind::Clear], "")).await, [one.row(3)]);
    assert_eq!(
        found(store, kinds(&[Kind::ToolCall, Kind::Mark], "")).await,
        []
    );
    let model = |model: &str| SearchQuery {
        model: Some(Words::parse(model)),
        ..query("word")
    };
    assert_eq!(found(store, model("Opus-4")).await, all[1..2]);
    assert_eq!(found(store, model("opus-5")).await, []);
    let between = |after, before| SearchQuery {
        after,
        before,
        ..query("word")
    };
    assert_eq!(found(store, between(Some(at(50)), None)).await, all[..1]);
    assert_eq!(found(store, between(None, Some(at(50)))).await, all[1..]);
    assert_eq!(
        found(store, between(Some(at(0)), Some(Micros(0)))).await,
        []
    );
    let times = SearchQuery {
        words: Words::default(),
        ..between(Some(at(1)), None)
    };
    assert_eq!(found(store, times).await, all[..1]);
    let within = |directory: &str| SearchQuery {
        directory: Some(directory.to_owned()),
        ..query("word")
    };
    assert_eq!(found(store, within("/home/ada/work")).await, all[1..]);
    assert_eq!(found(store, within("/home/ada/")).await, all);
    assert_eq!(found(store, within("/home/ad")).await, []);
}

/// Pages follow each other without gaps, and new rows do not move them.
pub(super) async fn hits_come_newest_first_in_pages(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut one = desk.agent("one").await;
    let mut two = desk.agent("two").await;
    let mut expected = Vec::new();
    for _ in 0..3 {
        for holder in [&mut one, &mut two] {
            holder.add([user("word"), user("other")]).await;
            expected.insert(0, holder.row(holder.head.0 - 1));
        }
    }
    let store = &*desk.store;
    let mut next = SearchQuery {
        limit: 4,
        ..query("word")
    };

    let first = search(store, next.clone()).await;
    one.add([user("word")]).await;
    next.cursor = first.next;
    let second = search(store, next).await;

    assert_eq!((first.hits.len(), second.hits.len()), (4, 2));
    assert_eq!(second.next, None);
    let told: Vec<_> = first
        .hits
        .iter()
        .chain(&second.hits)
        .map(|hit| hit.at)
        .collect();
    assert_eq!(told, expected);
}

/// Order by relevance works on request, in pages too.
pub(super) async fn the_best_hits_come_first_if_they_are_asked_for(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut holder = desk.agent("root").await;
    let long = format!("word {}", "filler ".repeat(200));
    holder
        .add([user("word word word"), user(&long), user("nothing of it")])
        .await;
    let best = SearchQuery {
        order: SortOrder::Relevance,
        limit: 1,
        ..query("word")
    };
    let store = &*desk.store;

    let first = search(store, best.clone()).await;
    let second = search(
        store,
        SearchQuery {
            cursor: first.next,
            ..best
        },
    )
    .await;

    assert_eq!(
        (first.order, first.hits[0].at),
        (SortOrder::Relevance, holder.row(1))
    );
    assert_eq!((second.next, second.hits[0].at), (None, holder.row(2)));
    let newest = search(store, query("word")).await;
    assert_eq!(
        (newest.order, newest.hits[0].at),
        (SortOrder::Newest, holder.row(2))
    );
}

/// A bad row does not hide others, and its text, if any, is found.
pub(super) async fn rows_that_cannot_be_read_are_searched_too(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut holder = desk.agent("root").await;
    let unknown = rig.inject(holder.agent, "dream", Some("a word"), Some("{"), false);
    let broken = rig.inject(holder.agent, "tool_call", Some("word"), Some("[1]"), true);
    let legacy = r#"{"tool_call_id":"x","output":"old word"}"#;
    let legacy = rig.inject(holder.agent, "tool", None, Some(legacy), false);
    holder.head = desk.head(holder.agent).await.seq;
    let row = user_row(holder.agent, "good word");
    holder.commit(vec![row], Vec::new()).await.unwrap();
    let store = &*desk.store;

    let rows = found(store, query("word")).await;

    assert_eq!(rows, [holder.row(4), legacy, broken, unknown]);
    let results = SearchQuery {
        kinds: vec![Kind::ToolResult],
        ..query("word")
    };
    assert_eq!(found(store, results).await, [legacy]);
}
