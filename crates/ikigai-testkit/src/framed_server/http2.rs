//! HTTP/2 over TLS with one DATA frame for each event.

use std::error::Error;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use bytes::Bytes;
use h2::SendStream;
use http::{Method, Response, StatusCode};
use tokio::net::{TcpListener as AsyncListener, TcpStream};
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;

use super::FramedState;
use crate::tls;

type StreamEnd = Result<(), Box<dyn Error + Send + Sync>>;

pub(super) fn listen(shared: &Arc<FramedState>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let shared = shared.clone();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(accept(listener, &shared));
    });
    address
}

async fn accept(listener: TcpListener, shared: &Arc<FramedState>) {
    let listener = AsyncListener::from_std(listener).unwrap();
    let tls = TlsAcceptor::from(tls::http2_config());
    while let Ok((stream, _)) = listener.accept().await {
        shared.count_connection();
        // A client that disconnects needs no response.
        tokio::spawn(serve(stream, tls.clone(), shared.clone()));
    }
}

async fn serve(stream: TcpStream, tls: TlsAcceptor, shared: Arc<FramedState>) -> StreamEnd {
    stream.set_nodelay(true)?;
    let mut connection = h2::server::handshake(tls.accept(stream).await?).await?;
    while let Some(request) = connection.accept().await {
        let (request, mut respond) = request?;
        if request.method() != Method::POST {
            let not_found = Response::builder().status(StatusCode::NOT_FOUND).body(())?;
            respond.send_response(not_found, true)?;
            continue;
        }
        let mut body = request.into_body();
        let head = Response::builder()
            .header("content-type", "text/event-stream")
            .body(())?;
        let shared = shared.clone();
        tokio::spawn(async move {
            while let Some(part) = body.data().await {
                body.flow_control().release_capacity(part?.len())?;
            }
            send(respond.send_response(head, false)?, &shared).await
        });
    }
    Ok(())
}

async fn send(mut stream: SendStream<Bytes>, shared: &FramedState) -> StreamEnd {
    let sent = send_events(&mut stream, shared).await;
    // A client may hang up at the terminal event, before the last one is sent.
    shared.report_sent();
    sent?;
    stream.send_data(Bytes::new(), true)?;
    Ok(())
}

async fn send_events(stream: &mut SendStream<Bytes>, shared: &FramedState) -> StreamEnd {
    let begun = Instant::now();
    for (index, event) in shared.stream.events.iter().enumerate() {
        let left = shared.stream.left_until(index, begun);
        if !left.is_zero() {
            sleep(left).await;
        }
        stream.send_data(Bytes::copy_from_slice(event.as_bytes()), false)?;
    }
    Ok(())
}
