//! Reads of a store that wraps another.

/// Implements [`ikigai_store::ReadLog`] for a wrapper: each read passes through one of its methods.
///
/// The wrapper has `process`, `read`, `read_rows` (for reads of rows), `dump` and `watch`. The second
/// argument turns the future of the inner store into the answer that `read` expects.
macro_rules! forward_reads {
    ($wrapper:ty, $answer:path) => {
        impl ikigai_store::ReadLog for $wrapper {
            fn process(&self) -> ikigai_core::ProcessId {
                <$wrapper>::process(self)
            }

            forward_reads! { @by read_rows, $answer;
                control(query: ikigai_core::ControlQuery) -> Vec<ikigai_core::Row>;
                page(query: ikigai_core::PageQuery) -> Vec<ikigai_core::Row>;
                usage(span: ikigai_core::Span, limit: usize) -> Vec<ikigai_core::Row>;
                files_rows(span: ikigai_core::Span, limit: usize) -> Vec<ikigai_core::Row>;
                process_rows(span: ikigai_core::Span, limit: usize) -> Vec<ikigai_core::Row>;
                merge_rows(parents: Vec<(ikigai_core::AgentId, ikigai_core::Micros)>) -> Vec<ikigai_core::Row>;
                newest_usage(agents: Vec<ikigai_core::AgentId>) -> Vec<ikigai_core::Row>;
                pages(spans: Vec<ikigai_core::Span>, limit: usize) -> Vec<ikigai_core::Row>;
                restore_point(agent: ikigai_core::AgentId, limit: usize) -> Option<ikigai_store::RestorePoint>;
            }
            forward_reads! { @by read, $answer;
                head(agent: ikigai_core::AgentId) -> Option<ikigai_store::Head>;
                user_rows(spans: Vec<ikigai_core::Span>, limit: usize) -> Vec<ikigai_core::Row>;
                count_messages(spans: Vec<ikigai_core::Span>) -> u64;
                snapshot(upto: ikigai_core::RowRef) -> Option<ikigai_store::Snapshot>;
                agents(session: Option<ikigai_core::SessionId>) -> Vec<ikigai_store::AgentRecord>;
                outlines() -> Vec<ikigai_store::AgentOutline>;
                living_roots(session: ikigai_core::SessionId) -> Vec<ikigai_store::AgentRecord>;
                owners() -> Vec<ikigai_store::ProcessRecord>;
                agent(agent: ikigai_core::AgentId) -> Option<ikigai_store::AgentRecord>;
                ancestry(agent: ikigai_core::AgentId, most: usize) -> Option<ikigai_store::Ancestry>;
                dead_among(agents: Vec<ikigai_core::AgentId>) -> Vec<ikigai_core::AgentId>;
                pulse() -> ikigai_store::Pulse;
                sessions() -> Vec<ikigai_store::SessionRecord>;
                mail(to: ikigai_core::AgentId) -> Vec<ikigai_store::MailRecord>;
                queued_mail(to: ikigai_core::AgentId) -> Vec<ikigai_store::MailRecord>;
                open_runs(agent: ikigai_core::AgentId) -> Vec<ikigai_store::RunRecord>;
                open_jobs(of: Option<ikigai_core::AgentId>) -> Vec<ikigai_store::JobRecord>;
                jobs(agent: ikigai_core::AgentId, limit: usize) -> Vec<ikigai_store::JobRecord>;
                waiting_requests() -> Vec<ikigai_store::RequestRecord>;
                request(request: ikigai_store::RequestId) -> Option<ikigai_store::RequestRecord>;
                draft(agent: ikigai_core::AgentId) -> Option<ikigai_store::DraftRecord>;
                blob(hash: ikigai_store::BlobHash) -> Option<Vec<u8>>;
                search(query: ikigai_store::SearchQuery) -> ikigai_store::SearchPage;
                index_chunk() -> u64;
            }
            forward_reads! { @borrowed $answer;
                find_by_name(session: Option<ikigai_core::SessionId>, name: &'a str) -> Vec<ikigai_store::AgentRecord>;
                living_names(session: ikigai_core::SessionId, beginning: &'a str) -> Vec<String>;
                sessions_in(directory: &'a str) -> Vec<ikigai_store::SessionRecord>;
                seen(person: &'a str) -> Vec<ikigai_store::SeenMark>;
                is_process_alive(process: &'a ikigai_store::ProcessRecord) -> bool;
            }

            fn dump(
                &self,
                of: Option<Vec<ikigai_core::AgentId>>,
                lines: tokio::sync::mpsc::Sender<String>,
            ) -> ikigai_store::ReadFuture<'_, ()> {
                <$wrapper>::dump(self, of, lines)
            }

            fn watch(&self) -> Result<ikigai_store::Watch, ikigai_store::StoreError> {
                <$wrapper>::watch(self)
            }
        }
    };
    (@by $by:ident, $answer:path; $($name:ident($($argument:ident: $kind:ty),*) -> $value:ty;)*) => {
        $(fn $name(&self, $($argument: $kind),*) -> ikigai_store::ReadFuture<'_, $value> {
            self.$by(move |store| $answer(store.$name($($argument),*)))
        })*
    };
    (@borrowed $answer:path; $($name:ident($($argument:ident: $kind:ty),*) -> $value:ty;)*) => {
        $(fn $name<'a>(&'a self, $($argument: $kind),*) -> ikigai_store::ReadFuture<'a, $value> {
            self.read(move |store| $answer(store.$name($($argument),*)))
        })*
    };
}

pub(crate) use forward_reads;
