//! HTTP/1.1 with one chunk, in one write, for each event.

use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use super::{FramedState, PATIENCE};
use crate::server::read_request;

const NOT_FOUND: &str = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";
const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

pub(super) fn listen(shared: &Arc<FramedState>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let shared = shared.clone();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            shared.count_connection();
            let shared = shared.clone();
            // A client that disconnects needs no response.
            thread::spawn(move || serve(stream, &shared));
        }
    });
    address
}

fn serve(mut stream: TcpStream, shared: &FramedState) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    while let Some(request) = read_request(&mut stream)? {
        if !request.line.starts_with("POST ") {
            stream.write_all(NOT_FOUND.as_bytes())?;
            continue;
        }
        stream.write_all(HEAD.as_bytes())?;
        let sent = send_events(&mut stream, shared);
        // A client may hang up at the terminal event, before the last one is sent.
        shared.report_sent();
        sent?;
        stream.write_all(b"0\r\n\r\n")?;
    }
    Ok(())
}

fn send_events(stream: &mut TcpStream, shared: &FramedState) -> io::Result<()> {
    let begun = Instant::now();
    for (index, event) in shared.stream.events.iter().enumerate() {
        thread::sleep(shared.stream.left_until(index, begun));
        stream.write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes())?;
    }
    Ok(())
}
