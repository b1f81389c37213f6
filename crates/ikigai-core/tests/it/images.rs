//! Images: sent with the message or result that has them, until these are shortened.

use ikigai_core::data::{Elide, StoredImage, SummaryData, ToolResultData, UserData, UserOrigin};
use ikigai_core::project::estimate_request;
use ikigai_core::{AgentId, Block, Event, Request, Role, RowRef, Seq};
use ikigai_testkit::{TestLog, check_request, target};

fn stored(hash: &str) -> StoredImage {
    StoredImage {
        hash: Some(hash.to_owned()),
        r#type: Some("image/png".to_owned()),
        bytes: Some(2_000),
        width: Some(750),
        height: Some(100),
    }
}

/// Writes a message with an image, a call, and its result with images.
fn conversation(result_images: Vec<StoredImage>) -> (TestLog, AgentId, RowRef) {
    let mut log = TestLog::default();
    let agent = log.root();
    let data = UserData {
        origin: Some(UserOrigin::Typed),
        images: Some(vec![stored("a")]),
        ..UserData::default()
    };
    let text = "What is @a.png?".to_owned();
    log.append(agent, Event::User { text, data });
    let call = log.append(agent, Event::tool_call(1, "c1", "file_read", "{}"));
    let data = ToolResultData {
        tool_call_id: Some("c1".to_owned()),
        name: Some("file_read".to_owned()),
        output: Some("[image b.png]\n".to_owned()),
        success: Some(true),
        call: Some(call),
        images: Some(result_images),
        ..ToolResultData::default()
    };
    let result = log.append(agent, Event::ToolResult { shown: None, data });
    (log, agent, result)
}

fn sent(log: &TestLog, agent: AgentId) -> Request {
    let request = log.request(agent, &target("p", "m")).unwrap();
    assert_eq!(check_request(&request, &target("p", "m")), Ok(()));
    request
}

fn hashes(request: &Request) -> Vec<&str> {
    request
        .shown_images()
        .map(|image| image.hash.as_str())
        .collect()
}

fn output(request: &Request) -> &str {
    let blocks = request.messages.iter().flat_map(|message| &message.blocks);
    let mut outputs = blocks.filter_map(|block| match block {
        Block::ToolResult { content, .. } => Some(content.as_str()),
        _ => None,
    });
    outputs.next().unwrap()
}

#[test]
fn images_follow_the_text_of_their_message_or_result() {
    let without_hash = StoredImage {
        hash: None,
        ..stored("c")
    };
    let (log, agent, _) = conversation(vec![stored("b"), without_hash]);

    let request = sent(&log, agent);

    let first = &request.messages[0];
    assert_eq!(first.role, Role::User);
    assert!(
        matches!(&first.blocks[..], [Block::Text { .. }, Block::Image(image)] if image.width == 750)
    );
    assert_eq!(hashes(&request), ["a", "b"]);
    let (plain, agent, _) = conversation(Vec::new());
    let plain = sent(&plain, agent);
    assert_eq!(estimate_request(&request) - estimate_request(&plain), 100);
}

/// A shortened result has no images; the note names the row that has them.
#[test]
fn shortened_results_have_no_images() {
    let (mut log, agent, result) = conversation(vec![stored("b"), stored("c")]);
    log.append(agent, Event::assistant(2, "I see"));
    let mut shorter = Event::summary(None, RowRef::new(agent, Seq(1)), result);
    if let Event::Summary { data, .. } = &mut shorter {
        *data = SummaryData {
            elide: Some(Elide {
                head: Some(3),
                tail: Some(5),
            }),
            ..data.clone()
        };
    }
    log.append(agent, shorter);
    log.append(agent, Event::user("on"));

    let request = sent(&log, agent);

    assert_eq!(hashes(&request), ["a"]);
    let note = format!("[image b.png]\n[2 images left out: recall #{}]", result.seq);
    assert_eq!(output(&request), note);
}
