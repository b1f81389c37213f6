//! Streams of single chunks and frames: read without pauses, over connections that are kept.

use std::time::Duration;

use ikigai_providers::transport::{Client, content_limit, send};
use ikigai_testkit::framed_server::{EventStream, FramedServer, Framing};
use tokio::time::timeout;

use super::support::{HASTY, PATIENT, read, run, told};
use super::wires::{DIALECTS, Part, answer, call_in};

/// Far more than 5,000 chunks take, and far less than a pause for each of them.
const SOON: Duration = Duration::from_secs(20);

#[test]
fn no_chunk_of_a_fast_stream_waits_for_the_next() {
    let pieces = vec!["word "; 5_000];
    for framing in [Framing::Chunks, Framing::Http2Frames] {
        let stream = EventStream {
            events: answer("chat", Part::Text, &pieces),
            ..EventStream::default()
        };
        let server = FramedServer::start(framing, stream);
        let client = Client::new(PATIENT).trusting(server.ca_file());
        let call = call_in("chat", server.url(), content_limit(None));

        let deltas = run(async { timeout(SOON, read(&mut *send(&client, call, HASTY, 7))).await });

        let deltas = deltas.expect("all chunks are read");
        let whole = format!("finished {}", pieces.concat());
        assert_eq!(told(&deltas).last(), Some(&whole), "{framing:?}");
    }
}

#[test]
fn six_answers_of_any_dialect_need_one_connection() {
    for dialect in DIALECTS {
        let stream = EventStream {
            events: answer(dialect, Part::Text, &["one ", "two"]),
            ..EventStream::default()
        };
        let server = FramedServer::start(Framing::Chunks, stream);
        let client = Client::new(PATIENT);

        run(async {
            for _ in 0..6 {
                let call = call_in(dialect, server.url(), content_limit(None));
                let mut answer = send(&client, call, HASTY, 7);
                let deltas = read(&mut *answer).await;
                assert_eq!(
                    told(&deltas).last().unwrap(),
                    "finished one two",
                    "{dialect}"
                );
                if let Some(rest) = answer.into_rest() {
                    rest.await;
                }
            }
        });

        assert_eq!(server.connections(), 1, "{dialect}");
    }
}
