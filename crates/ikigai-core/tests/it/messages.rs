//! Provider-neutral messages, and the list of them.

use ikigai_core::data::{AssistantData, Opaque, StoredThinking, Tagged, ToolCallData};
use ikigai_core::load::Loaded;
use ikigai_core::message::{BlockItem, Conversation, Image, Payload};
use ikigai_core::{Block, Event, Message, Role, Target};
use ikigai_store::Agent;
use ikigai_testkit::{TestLog, check_request, target};
use serde_json::json;

fn payload(provider: &str, model: &str, text: &str) -> Payload {
    Payload {
        provider: provider.to_owned(),
        model: model.to_owned(),
        payload: text.to_owned(),
    }
}

fn thinking(text: &str, payload: Option<Payload>) -> Block {
    Block::Thinking {
        text: text.to_owned(),
        payload,
    }
}

fn text(text: &str) -> Block {
    let text = text.to_owned();
    Block::Text { text }
}

/// Returns a message with everything that a message can have.
fn rich() -> Message {
    let mut message = Message::tool_call("c1", "ls", "{}");
    message.blocks.insert(0, text("look"));
    let signed = Some(payload("p", "m", "{\"signature\":\"s\"}"));
    message.blocks.insert(0, thinking("hm", signed));
    message.metadata.push(BlockItem {
        block: 2,
        item: payload("p", "m", "{\"id\":1}"),
    });
    message
}

/// S2-1: a message is a role, an ordered list of blocks and opaque provider metadata.
#[test]
fn message_has_role_blocks_metadata() {
    let signed = payload("p", "m", "{\"signature\":\"s\"}");
    let Message {
        role,
        blocks,
        metadata,
    } = rich();

    assert_eq!(role, Role::Assistant);
    assert_eq!(blocks[..2], [thinking("hm", Some(signed)), text("look")]);
    assert_eq!(blocks[2..], Message::tool_call("c1", "ls", "{}").blocks);
    assert_eq!(metadata[0].block, 2);
    assert_eq!(
        json!(rich()),
        json!({
            "role": "assistant",
            "blocks": [
                {"type": "thinking", "text": "hm", "payload":
                    {"provider": "p", "model": "m", "payload": "{\"signature\":\"s\"}"}},
                {"type": "text", "text": "look"},
                {"type": "tool_call", "id": "c1", "name": "ls", "arguments": "{}"}
            ],
            "metadata": [{"block": 2, "provider": "p", "model": "m", "payload": "{\"id\":1}"}]
        })
    );
}

/// S2-2: the roles are user, assistant and tool; the match would not compile with another.
#[test]
fn no_system_role() {
    let word = |role| match role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    for role in [Role::User, Role::Assistant, Role::Tool] {
        assert_eq!(json!(role), word(role));
    }
}

/// S2-3: the block kinds and their fields; the match would not compile with another.
#[test]
fn block_kinds_and_fields() {
    let fields = |block: &Block| match block {
        Block::Text { text } => json!({"type": "text", "text": text}),
        Block::ToolCall {
            id,
            name,
            arguments,
        } => json!({"type": "tool_call", "id": id, "name": name, "arguments": arguments}),
        Block::ToolResult {
            tool_call_id,
            content,
            is_error,
            images,
        } => {
            let mut fields = json!({
                "type": "tool_result", "tool_call_id": tool_call_id, "content": content,
                "is_error": is_error
            });
            if !images.is_empty() {
                fields["images"] = json!(images);
            }
            fields
        }
        Block::Image(image) => {
            json!({"type": "image", "hash": image.hash, "media_type": image.media_type})
        }
        Block::Thinking {
            text,
            payload: None,
        } => json!({"type": "thinking", "text": text}),
        Block::Thinking {
            text,
            payload: Some(payload),
        } => json!({"type": "thinking", "text": text, "payload": payload}),
    };
    let mut blocks = rich().blocks;
    blocks.extend(Message::tool_result("c1", "out", true).blocks);
    blocks.push(Block::Image(Image {
        hash: "ab".to_owned(),
        media_type: "image/png".to_owned(),
        width: 1,
        height: 2,
        bytes: 3,
    }));
    blocks.push(thinking("", None));
    for block in blocks {
        assert_eq!(json!(block), fields(&block));
    }
}

/// S2-5 S2-6: the constructors make one block and no metadata; a message may hold several.
#[test]
fn constructors_make_one_block_and_no_metadata() {
    let made = [
        Message::text(Role::User, "hi"),
        Message::tool_call("c1", "ls", "{}"),
        Message::tool_result("c1", "out", false),
    ];
    for message in made {
        assert_eq!((message.blocks.len(), message.metadata.len()), (1, 0));
    }
    assert_eq!(rich().blocks.len(), 3);
}

/// S2-7 S2-8 S2-9 S2-42: each constructor sets its role and keeps its fields.
#[test]
fn constructor_roles_and_fields() {
    let of = |role, block| Message {
        role,
        blocks: vec![block],
        metadata: Vec::new(),
    };
    for role in [Role::User, Role::Assistant, Role::Tool] {
        for words in ["hi", ""] {
            assert_eq!(Message::text(role, words), of(role, text(words)));
        }
    }
    let call = Block::ToolCall {
        id: "c1".to_owned(),
        name: "ls".to_owned(),
        arguments: "{".to_owned(),
    };
    assert_eq!(
        Message::tool_call("c1", "ls", "{"),
        of(Role::Assistant, call)
    );
    for is_error in [true, false] {
        let result = Block::ToolResult {
            tool_call_id: "c1".to_owned(),
            content: "out".to_owned(),
            is_error,
            images: Vec::new(),
        };
        let made = Message::tool_result("c1", "out", is_error);
        assert_eq!(made, of(Role::Tool, result));
    }
}

/// Returns the `opaque` of a row: thinking with these tags and texts, and perhaps an item.
fn opaque(blocks: &[(&str, &str, &str)], item: Option<(&str, &str)>) -> Opaque {
    let some = |text: &str| Some(text.to_owned());
    let stored = blocks.iter().map(|(provider, model, text)| StoredThinking {
        text: some(text),
        provider: some(provider),
        model: some(model),
        payload: Some(format!("{{ \"sig\": \"{text}\" }}")),
    });
    Opaque {
        thinking: (!blocks.is_empty()).then(|| stored.collect()),
        item: item.map(|(provider, model)| Tagged {
            provider: some(provider),
            model: some(model),
            payload: some("{\"id\": \"item\"}"),
        }),
    }
}

fn assistant(response: u64, text: &str, opaque: Opaque) -> Event {
    let data = AssistantData {
        response: Some(response),
        opaque: Some(opaque),
        ..AssistantData::default()
    };
    let text = text.to_owned();
    Event::Assistant { text, data }
}

fn call(response: u64, id: &str, opaque: Opaque) -> Event {
    let data = ToolCallData {
        tool_call_id: Some(id.to_owned()),
        name: Some("ls".to_owned()),
        arguments: Some("{}".to_owned()),
        response: Some(response),
        opaque: Some(opaque),
    };
    Event::ToolCall { shown: None, data }
}

fn blocks_of(agent: &Agent) -> Vec<Vec<Block>> {
    let entries = agent.view.entries().iter();
    entries
        .filter_map(|entry| match &entry.loaded {
            Ok(Loaded::Message(part)) => Some(part.message.blocks.clone()),
            _ => None,
        })
        .collect()
}

/// D9a: a thinking block has its text and an opaque payload tagged with provider and model.
///
/// A payload with an incomplete tag is dropped.
#[test]
fn thinking_block_carries_tagged_payload() {
    let whole = StoredThinking {
        text: Some("hm".to_owned()),
        provider: Some("p".to_owned()),
        model: Some("m".to_owned()),
        payload: Some("{ \"b\":1, \"a\":2 }".to_owned()),
    };
    let tagged = Some(payload("p", "m", "{ \"b\":1, \"a\":2 }"));
    let changed = |change: fn(&mut StoredThinking)| {
        let mut stored = whole.clone();
        change(&mut stored);
        stored
    };
    let cases = [
        (whole.clone(), thinking("hm", tagged.clone())),
        (changed(|it| it.text = None), thinking("", tagged)),
        (changed(|it| it.provider = None), thinking("hm", None)),
        (changed(|it| it.model = None), thinking("hm", None)),
        (changed(|it| it.payload = None), thinking("hm", None)),
        (StoredThinking::default(), thinking("", None)),
    ];
    for (stored, expected) in cases {
        let mut log = TestLog::default();
        let agent = log.root();
        let hung = Opaque {
            thinking: Some(vec![stored]),
            item: None,
        };
        log.append(agent, assistant(1, "yes", hung));

        assert_eq!(blocks_of(&log.replayed(agent)), [[expected, text("yes")]]);
    }
}

/// Appends responses with thinking before text, before calls, between them, and alone.
fn thoughtful_log(log: &mut TestLog) -> ikigai_core::AgentId {
    let agent = log.root();
    let own = |text| ("p", "m", text);
    log.append(agent, Event::user("one"));
    log.append(
        agent,
        assistant(1, "text only", opaque(&[own("a"), own("b")], None)),
    );
    log.append(agent, Event::user("two"));
    log.append(
        agent,
        assistant(2, "first", opaque(&[own("c")], Some(("p", "m")))),
    );
    let hung = opaque(
        &[own("d"), ("q", "m", "e"), ("p", "n", "f")],
        Some(("p", "m")),
    );
    let first = log.append(agent, call(2, "c1", hung));
    let second = log.append(agent, call(2, "c2", opaque(&[], Some(("q", "m")))));
    log.append(agent, Event::tool_result(second, "c2", "ls", "2", true));
    log.append(agent, Event::tool_result(first, "c1", "ls", "1", true));
    log.append(
        agent,
        assistant(3, "", opaque(&[own("alone")], Some(("p", "m")))),
    );
    log.append(agent, Event::user("three"));
    agent
}

/// D9b: thinking is kept for every response, in its order, and is equal after a restart.
#[test]
fn thinking_survives_restart_for_every_response() {
    let mut log = TestLog::default();

    let agent = thoughtful_log(&mut log);

    let signed = |text: &str| {
        let tag = payload("p", "m", &format!("{{ \"sig\": \"{text}\" }}"));
        thinking(text, Some(tag))
    };
    let (live, replayed) = (log.live(agent), log.replayed(agent));
    assert_eq!(live, replayed);
    let blocks = blocks_of(&replayed);
    assert_eq!(blocks[1], [signed("a"), signed("b"), text("text only")]);
    assert_eq!(blocks[3], [signed("c"), text("first")]);
    assert_eq!(blocks[4].len(), 4);
    assert_eq!(blocks[8], [signed("alone"), text("")]);
    let item = BlockItem {
        block: 1,
        item: payload("p", "m", "{\"id\": \"item\"}"),
    };
    assert_eq!(replayed.view.conversation().messages()[8].metadata, [item]);
}

fn sent(log: &TestLog, agent: ikigai_core::AgentId, target: &Target) -> Vec<String> {
    let request = log.request(agent, target).unwrap();
    assert_eq!(check_request(&request, target), Ok(()));
    let messages = request.messages.iter();
    let blocks = messages.flat_map(|message| {
        let items = &message.metadata;
        let hung = move |index| items.iter().any(|item| item.block == index);
        let blocks = message.blocks.iter().enumerate();
        blocks.map(move |(index, block)| {
            let words = match block {
                Block::Thinking { text, .. } => format!("({text})"),
                Block::Text { text } => text.clone(),
                Block::ToolCall { id, .. } => format!("call {id}"),
                Block::ToolResult { content, .. } => format!("result {content}"),
                Block::Image(image) => image.hash.clone(),
            };
            if hung(index) { words + "+" } else { words }
        })
    });
    blocks.collect()
}

/// D9c: thinking and items are sent only to the provider and model of their tag.
///
/// For any other target they are left out, and the request stays valid.
#[test]
fn foreign_thinking_is_not_sent() {
    let mut log = TestLog::default();
    let agent = thoughtful_log(&mut log);
    let cases: [(&str, &str, &[&str]); 6] = [
        (
            "p",
            "m",
            &[
                "one",
                "(a)",
                "(b)",
                "text only",
                "two",
                "(c)",
                "first+",
                "(d)",
                "call c1+",
                "call c2",
                "result 1",
                "result 2",
                "three",
            ],
        ),
        (
            "q",
            "m",
            &[
                "one",
                "text only",
                "two",
                "first",
                "(e)",
                "call c1",
                "call c2+",
                "result 1",
                "result 2",
                "three",
            ],
        ),
        (
            "p",
            "n",
            &[
                "one",
                "text only",
                "two",
                "first",
                "(f)",
                "call c1",
                "call c2",
                "result 1",
                "result 2",
                "three",
            ],
        ),
        ("q", "n", &NEUTRAL),
        ("", "", &NEUTRAL),
        ("P", "m", &NEUTRAL),
    ];
    for (provider, model, expected) in cases {
        assert_eq!(sent(&log, agent, &target(provider, model)), expected);
    }
}

const NEUTRAL: [&str; 9] = [
    "one",
    "text only",
    "two",
    "first",
    "call c1",
    "call c2",
    "result 1",
    "result 2",
    "three",
];

/// S2-33 S2-34: a new agent's list is empty; `add` appends and returns the added message.
#[test]
fn add_message_appends_in_order() {
    let mut log = TestLog::default();
    let agent = log.root();
    assert_eq!(log.live(agent).view.conversation(), Conversation::default());
    let first = Message::text(Role::User, "one");
    let mut list = Conversation::default();

    assert_eq!(list.add(first.clone()), &first);
    assert_eq!(list.add(rich()), &rich());

    assert_eq!(list.messages(), [first, rich()]);
    log.append(agent, Event::user("one"));
    log.append(agent, Event::assistant(1, "two"));
    let said = [
        Message::text(Role::User, "one"),
        Message::text(Role::Assistant, "two"),
    ];
    for agent in [log.live(agent), log.replayed(agent)] {
        assert_eq!(agent.view.conversation().messages(), said);
    }
}

/// S2-35 S2-45a: count and order are right for one, several, 20 and 10,000 messages.
#[test]
fn message_list_grows() {
    for count in [1, 3, 20, 10_000] {
        let mut list = Conversation::default();
        let mut log = TestLog::default();
        let agent = log.root();
        let say = |n: usize| n.to_string();
        for n in 0..count {
            list.add(Message::text(Role::User, say(n)));
        }
        log.append_all(agent, (0..count).map(|n| Event::user(say(n))).collect());

        assert_eq!(list.len(), count);
        assert!(!list.is_empty());
        for (n, message) in list.messages().iter().enumerate() {
            assert_eq!(message, &Message::text(Role::User, say(n)));
        }
        assert_eq!(log.replayed(agent).view.conversation(), list);
    }
}

/// S0-17 S2-36 S2-45b: clearing drops restored and new messages and leaves a usable list.
///
/// Clearing an empty list is safe.
#[test]
fn clear_messages_leaves_usable_list() {
    let mut log = TestLog::default();
    let agent = log.root();
    log.append(agent, Event::Clear);
    log.append(agent, Event::user("old"));
    let mut list = log.replayed(agent).view.conversation();
    list.add(Message::text(Role::User, "new"));
    log.append(agent, Event::assistant(1, "fresh"));

    list.clear();
    log.append(agent, Event::Clear);

    for _ in 0..2 {
        assert_eq!((list.len(), list.is_empty()), (0, true));
        assert_eq!(list, log.live(agent).view.conversation());
        assert_eq!(list, log.replayed(agent).view.conversation());
        list.clear();
        log.append(agent, Event::Clear);
    }
    list.add(Message::text(Role::User, "again"));
    log.append(agent, Event::user("again"));
    let again = [Message::text(Role::User, "again")];
    assert_eq!(list.messages(), again);
    assert_eq!(log.replayed(agent).view.conversation().messages(), again);
}

/// S2-37 S2-45c: a clone has every message and block.
///
/// A later change of one list never shows in the other.
#[test]
fn clone_messages_is_deep() {
    let mut log = TestLog::default();
    let agent = thoughtful_log(&mut log);
    let mut original = log.replayed(agent).view.conversation();
    original.add(rich());

    let mut copy = original.clone();

    assert_eq!(copy, original);
    assert_eq!(copy.messages().last(), Some(&rich()));
    let before = original.clone();
    copy.add(Message::text(Role::User, "only in the copy"));
    assert_eq!(original, before);
    original.clear();
    assert_eq!(copy.len(), before.len() + 1);
    assert_eq!(copy.messages()[..before.len()], *before.messages());

    // The same for the lists of agents: a child's grows without its parent's.
    let order = log.order("child");
    let child = log.fork(agent, order);
    let inherited = log.replayed(child).view.conversation();
    assert_eq!(inherited, log.replayed(agent).view.conversation());
    log.append(child, Event::user("only in the child"));
    assert_eq!(log.live(agent).view.conversation(), inherited);
}

/// S2-38 S2-45d D8: cloning an empty source empties the destination.
#[test]
fn clone_of_empty_empties_destination() {
    let empty = Conversation::default();
    let mut full = Conversation::default();
    full.add(rich());
    for mut destination in [full, Conversation::default()] {
        destination.clone_from(&empty);

        assert_eq!(destination, empty);
        assert!(destination.is_empty());
        destination.add(rich());
        assert_eq!((destination.len(), empty.len()), (1, 0));
    }
}

/// S2-40: marks are separate from messages; adding or removing one changes no message.
#[test]
fn marks_are_separate_from_messages() {
    let mut log = TestLog::default();
    let agent = log.root();
    let first = log.append(agent, Event::user("one"));
    let before = log.live(agent).view.conversation();
    let marks = |log: &TestLog| -> Vec<_> {
        let agent = log.replayed(agent);
        let marks = agent.state.marks();
        marks
            .map(|(row, label)| (row, label.map(str::to_owned)))
            .collect()
    };
    assert_eq!(marks(&log), []);

    let one = log.append(agent, Event::mark(Some("x")));
    let two = log.append(agent, Event::mark(None));

    let named = (one, Some("x".to_owned()));
    assert_eq!(marks(&log), [named.clone(), (two, None)]);
    assert_eq!(log.replayed(agent).view.conversation(), before);
    log.append(
        agent,
        Event::rewind(one, two, ikigai_core::data::Via::Rewind),
    );
    assert_eq!(marks(&log), [named]);
    assert_eq!(log.replayed(agent).view.conversation(), before);
    log.append(
        agent,
        Event::rewind(first, one, ikigai_core::data::Via::Rewind),
    );
    assert_eq!(marks(&log), []);
    for living in [log.live(agent), log.replayed(agent)] {
        assert_eq!(living.view.conversation(), before);
    }
}
