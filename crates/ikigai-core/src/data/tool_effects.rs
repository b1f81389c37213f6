//! Effects of tool calls: files that they touched, and accesses that the sandbox refused.

use serde::{Deserialize, Serialize};

use crate::json::{data_type, words};

data_type! {
    /// A file that a tool read or wrote.
    TouchedFile {
        /// Its path.
        path: String,
        /// Hash of its bytes afterwards.
        hash: String,
        /// True if the tool wrote the file.
        wrote: bool,
        /// Lines that a write added, if they were counted.
        added: u64,
        /// Lines that a write removed, if they were counted.
        removed: u64,
    }
}
words! {
    /// Kind of an access that a sandbox refused.
    RefusalKind {
        /// A connection to an address.
        Connection,
        /// A host that the configuration does not list.
        Host,
        /// A file or system call, as a line of the command's output suggests.
        Output,
    }
}
data_type! {
    /// Access that a sandbox refused to a command.
    SandboxRefusal {
        /// Kind of the access.
        kind: RefusalKind,
        /// The address or host, or the line of output.
        name: String,
    }
}
