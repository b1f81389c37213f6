//! A server on this machine that answers every request at once, in Chat Completions: for measuring
//! what a turn costs without the time of a model. Prints its address, and ends with its input.

use std::io::{self, Read, Write};

use ikigai_testkit::server::{Script, Server};

/// More requests than any measurement sends.
const ANSWERS: usize = 100_000;

const STREAM: &str = concat!(
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"Hello\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\", this is an answer.\\n\\n\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"```rust\\nlet six = 6; // why\\n```\\n\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],",
    "\"usage\":{\"prompt_tokens\":40,\"completion_tokens\":7,\"total_tokens\":47}}\n\n",
    "data: [DONE]\n\n",
);

fn main() -> io::Result<()> {
    let answer = Script::stream().send(STREAM);
    let server = Server::start(std::iter::repeat_n(answer, ANSWERS));
    writeln!(io::stdout(), "{}", server.url(""))?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
