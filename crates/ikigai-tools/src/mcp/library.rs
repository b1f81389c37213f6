//! The protocol, by the library `rmcp`: the only module that uses it.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use reqwest::redirect;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ContentBlock,
    Implementation, PaginatedRequestParams, ProtocolVersion, ResourceContents, SubscriptionFilter,
};
use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::service::{NotificationContext, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, RoleClient};
use rustls::crypto::ring;
use rustls::{ClientConfig as TlsConfig, RootCertStore};
use secrecy::ExposeSecret;
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncWrite};

use super::connection::{
    AnswerPart, ListedTool, McpChanges, McpConnection, McpFailure, McpRevision, ToolAnswer,
};
use super::settings::McpAddress;
use crate::ToolFuture;
use crate::arguments::one_line;

/// Most pages of one list.
const MOST_PAGES: usize = 100;

/// Longest error of a server that is passed on, in characters.
const MOST_ERROR_CHARS: usize = 2_000;

/// Timeout of a connection attempt.
const CONNECT: Duration = Duration::from_secs(10);

/// Opens a connection over a pair of pipes.
pub(super) async fn connect_pipes(
    output: impl AsyncRead + Send + Unpin + 'static,
    input: impl AsyncWrite + Send + Unpin + 'static,
    revision: Option<McpRevision>,
    changes: McpChanges,
) -> Result<Arc<dyn McpConnection>, McpFailure> {
    let handler = ServerHandler { changes };
    let service = handler.serve_with_lifecycle((output, input), lifecycle(revision));
    Ok(Arc::new(LibraryConnection::new(
        service.await.map_err(of_pipe_start)?,
    )))
}

/// Opens a connection to an address.
pub(super) async fn connect_http(
    address: &McpAddress,
    revision: Option<McpRevision>,
    changes: McpChanges,
) -> Result<Arc<dyn McpConnection>, McpFailure> {
    let mut headers = HashMap::new();
    for (name, value) in &address.headers {
        let header = HeaderName::try_from(name.as_str());
        let header = header.map_err(|_| protocol(format!("`{name}` is not a header name")))?;
        let mut secret = HeaderValue::try_from(value.expose_secret())
            .map_err(|_| protocol(format!("the header `{name}` has an illegal value")))?;
        secret.set_sensitive(true);
        headers.insert(header, secret);
    }
    let config = StreamableHttpClientTransportConfig::with_uri(address.url.as_str())
        .custom_headers(headers)
        .reinit_on_expired_session(true);
    let client = http_client().map_err(protocol)?;
    let transport = StreamableHttpClientTransport::with_client(client, config);
    let handler = ServerHandler { changes };
    let service = handler.serve_with_lifecycle(transport, lifecycle(revision));
    Ok(Arc::new(LibraryConnection::new(
        service.await.map_err(of_start)?,
    )))
}

/// Builds a client that follows no redirect, because headers may be secrets.
fn http_client() -> Result<reqwest::Client, String> {
    let roots: RootCertStore = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
    let mut tls = TlsConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .connect_timeout(CONNECT)
        .redirect(redirect::Policy::none())
        .referer(false)
        .user_agent(concat!("ikigai/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| error.to_string())
}

fn lifecycle(revision: Option<McpRevision>) -> ClientLifecycleMode {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    match revision {
        Some(McpRevision::Handshake) => ClientLifecycleMode::Initialize,
        Some(McpRevision::Stateless) => ClientLifecycleMode::Discover { preferred_versions },
        None => ClientLifecycleMode::Auto {
            preferred_versions,
            legacy_version: Some(ProtocolVersion::V_2025_11_25),
        },
    }
}

/// Our side of a connection: it answers requests of the server.
#[derive(Clone)]
struct ServerHandler {
    changes: McpChanges,
}

impl ClientHandler for ServerHandler {
    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changes.tools.notify_one();
    }

    fn get_info(&self) -> ClientConfig {
        let about = Implementation::new("ikigai", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), about)
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
    }
}

/// Open connection.
struct LibraryConnection {
    service: Arc<RunningService<RoleClient, ServerHandler>>,
}

impl LibraryConnection {
    fn new(service: RunningService<RoleClient, ServerHandler>) -> Self {
        let service = Arc::new(service);
        let client = Self { service };
        if client.revision() == McpRevision::Stateless {
            tokio::spawn(listen(client.service.clone()));
        }
        client
    }
}

/// Asks a server for reports of changed lists, which the present revision sends only then.
async fn listen(service: Arc<RunningService<RoleClient, ServerHandler>>) {
    let changes = service.service().changes.clone();
    let peer = service.peer().clone();
    // The connection must end when its owner drops it.
    drop(service);
    let wanted = SubscriptionFilter::builder().tools_list_changed().build();
    if let Ok(mut reports) = peer.listen(wanted).await {
        while let Ok(Some(_)) = reports.next().await {
            changes.tools.notify_one();
        }
    }
}

impl McpConnection for LibraryConnection {
    fn revision(&self) -> McpRevision {
        let known = self.service.peer().peer_info();
        match known {
            Some(known) if known.protocol_version.has_initialize() => McpRevision::Handshake,
            Some(_) => McpRevision::Stateless,
            None => McpRevision::Handshake,
        }
    }

    fn list_tools(&self, most: usize) -> ToolFuture<Result<Vec<ListedTool>, McpFailure>> {
        let service = self.service.clone();
        Box::pin(async move {
            let offers = service.peer().peer_info();
            if offers.is_some_and(|offers| offers.capabilities.tools.is_none()) {
                return Ok(Vec::new());
            }
            let mut tools = Vec::new();
            let mut cursor: Option<String> = None;
            let mut seen = HashSet::new();
            for _ in 0..MOST_PAGES {
                let params = PaginatedRequestParams::default().with_cursor(cursor.take());
                let page = service.list_tools(Some(params)).await.map_err(of_request)?;
                tools.extend(page.tools.into_iter().map(listed));
                let next = page.next_cursor.filter(|next| seen.insert(next.clone()));
                match next {
                    Some(next) if tools.len() < most => cursor = Some(next),
                    _ => break,
                }
            }
            tools.truncate(most);
            Ok(tools)
        })
    }

    fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> ToolFuture<Result<ToolAnswer, McpFailure>> {
        let service = self.service.clone();
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        Box::pin(async move {
            let answer = service.call_tool(params).await.map_err(of_request)?;
            Ok(answered(answer))
        })
    }

    fn close(&self) {
        self.service.cancellation_token().cancel();
    }

    fn is_closed(&self) -> bool {
        self.service.is_closed() || self.service.peer().is_transport_closed()
    }
}

fn listed(tool: rmcp::model::Tool) -> ListedTool {
    let title = tool.title.unwrap_or_default();
    let description = tool.description.map_or(title, Cow::into_owned);
    ListedTool {
        name: tool.name.into_owned(),
        description,
        schema: Arc::unwrap_or_clone(tool.input_schema),
        is_reading: tool.annotations.and_then(|hints| hints.read_only_hint) == Some(true),
    }
}

fn answered(answer: CallToolResult) -> ToolAnswer {
    ToolAnswer {
        parts: answer.content.into_iter().map(part).collect(),
        structured: answer.structured_content,
        is_error: answer.is_error == Some(true),
    }
}

fn part(block: ContentBlock) -> AnswerPart {
    match block {
        ContentBlock::Text(text) => AnswerPart::Text(text.text),
        ContentBlock::Image(image) => AnswerPart::Image(image.data),
        ContentBlock::Audio(audio) => {
            AnswerPart::Other(format!("audio, {}, not shown", audio.mime_type))
        }
        ContentBlock::Resource(resource) => resource_part(resource.resource),
        ContentBlock::ResourceLink(link) => {
            AnswerPart::Other(format!("resource {}: {}", link.uri, link.name))
        }
        _ => AnswerPart::Other("content of an unknown kind, not shown".to_owned()),
    }
}

fn resource_part(resource: ResourceContents) -> AnswerPart {
    match resource {
        ResourceContents::TextResourceContents { uri, text, .. } => {
            AnswerPart::Text(format!("[resource {uri}]\n{text}"))
        }
        ResourceContents::BlobResourceContents {
            mime_type: Some(kind),
            blob,
            ..
        } if kind.starts_with("image/") => AnswerPart::Image(blob),
        ResourceContents::BlobResourceContents { uri, mime_type, .. } => {
            let kind = mime_type.unwrap_or_else(|| "binary".to_owned());
            AnswerPart::Other(format!("resource {uri}, {kind}, not shown"))
        }
        _ => AnswerPart::Other("a resource of an unknown kind, not shown".to_owned()),
    }
}

fn protocol(reason: String) -> McpFailure {
    McpFailure::Protocol(reason)
}

/// Converts a failed start over pipes: what cannot be written or read there means that the server ended.
fn of_pipe_start(error: ClientInitializeError) -> McpFailure {
    match error {
        ClientInitializeError::TransportError { .. } => McpFailure::Closed,
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => of_pipe_start(*fallback),
        other => of_start(other),
    }
}

fn of_start(error: ClientInitializeError) -> McpFailure {
    if error.is_authorization_required() {
        return McpFailure::Unauthorized;
    }
    match error {
        ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::Cancelled => {
            McpFailure::Closed
        }
        ClientInitializeError::JsonRpcError(error) => protocol(format!(
            "it refused the handshake: {}",
            shorten(&error.message)
        )),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => of_start(*fallback),
        ClientInitializeError::NoCompatibleProtocolVersion {
            server_supported, ..
        } => protocol(format!(
            "it speaks only the revisions {}",
            shorten(&format!("{server_supported:?}"))
        )),
        ClientInitializeError::TransportError { error, .. } => protocol(format!(
            "it cannot be reached: {}",
            shorten(&without_url(&describe(&*error.error)))
        )),
        other => protocol(shorten(&describe(&other))),
    }
}

fn of_request(error: ServiceError) -> McpFailure {
    match error {
        ServiceError::McpError(error) => McpFailure::Answered(format!(
            "{} (error {})",
            shorten(&error.message),
            error.code.0
        )),
        ServiceError::TransportClosed => McpFailure::Closed,
        ServiceError::TransportSend(error) => {
            protocol(shorten(&without_url(&describe(&*error.error))))
        }
        other => protocol(shorten(&describe(&other))),
    }
}

/// Removes the address from an error of the HTTP client, because its query may be a secret.
fn without_url(text: &str) -> String {
    let text = text.strip_prefix("Client error: ").unwrap_or(text);
    match text.split_once(" for url (") {
        Some((before, behind)) => {
            let after = behind.split_once(')').map_or("", |(_, after)| after);
            format!("{before}{after}")
        }
        None => text.to_owned(),
    }
}

/// Joins an error with its causes.
fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

fn shorten(text: &str) -> String {
    one_line(text, MOST_ERROR_CHARS)
}
