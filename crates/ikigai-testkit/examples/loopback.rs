//! A model server on this machine that answers every request at once, in Chat Completions.
//!
//! Measures the cost of a turn without the time of a model. Each event is one HTTP/1.1 chunk, sent
//! by itself. Prints its address, and ends with its input.

use std::io::{self, Read, Write};

use ikigai_testkit::framed_server::{EventStream, FramedServer, Framing};

const EVENTS: [&str; 5] = [
    "{\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"Hello\"}}]}",
    "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\", this is an answer.\\n\\n\"}}]}",
    "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"```rust\\nlet six = 6; // why\\n```\\n\"}}]}",
    "{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\
     \"usage\":{\"prompt_tokens\":40,\"completion_tokens\":7,\"total_tokens\":47}}",
    "[DONE]",
];

fn main() -> io::Result<()> {
    let events = EVENTS.iter().map(|event| format!("data: {event}\n\n"));
    let stream = EventStream {
        events: events.collect(),
        ..EventStream::default()
    };
    let server = FramedServer::start(Framing::Chunks, stream);
    writeln!(io::stdout(), "{}", server.url())?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
