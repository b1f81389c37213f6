//! Stored shapes of rows about changed files.

use ikigai_core::Event;
use ikigai_core::data::{BlobRef, FileChange, FileKind, FileVersion, FilesData, MissedChange};
use serde_json::json;

use crate::table::{A, Shape, at, some};

/// Returns the shapes of rows about changed files.
pub(crate) fn all() -> Vec<Shape> {
    let before = FileVersion {
        hash: some("00ff"),
        kind: Some(FileKind::File),
        mode: Some(0o644),
        mtime_ns: Some(1_700_000_000_000_000_001),
        xattrs: Some([("user.a".to_owned(), "ff".to_owned())].into()),
        same_as: some("/w/b"),
        ..FileVersion::default()
    };
    let link = FileVersion {
        kind: Some(FileKind::Link),
        link: some("b"),
        ..FileVersion::default()
    };
    let entry = |before, after| FileChange {
        path: some("/w/a"),
        before: Some(before),
        after: Some(after),
    };
    let whole = FilesData {
        call: Some(at(A, 2)),
        entries: Some(vec![
            entry(before, link),
            entry(FileVersion::absent(), FileVersion::default()),
        ]),
        missed: Some(vec![
            MissedChange {
                path: some("/w/target/"),
                why: some("ignored"),
                ..MissedChange::default()
            },
            MissedChange {
                what: some("bash"),
                why: some("w"),
                ..MissedChange::default()
            },
        ]),
        ..FilesData::default()
    };
    let whole_json = json!({
        "call": {"agent": A, "seq": 2},
        "entries": [
            {
                "path": "/w/a",
                "before": {
                    "hash": "00ff", "kind": "file", "mode": 0o644,
                    "mtime_ns": 1_700_000_000_000_000_001_i64,
                    "xattrs": {"user.a": "ff"}, "same_as": "/w/b"
                },
                "after": {"kind": "link", "link": "b"}
            },
            {"path": "/w/a", "before": {"absent": true}, "after": {}}
        ],
        "missed": [
            {"path": "/w/target/", "why": "ignored"},
            {"what": "bash", "why": "w"}
        ]
    });
    let large = FilesData {
        call: Some(at(A, 2)),
        blob: Some(BlobRef {
            hash: some("00ff"),
            bytes: Some(9),
        }),
        ..FilesData::default()
    };
    let large_json = json!({
        "call": {"agent": A, "seq": 2}, "blob": {"hash": "00ff", "bytes": 9}
    });
    let kind = |kind, word: &str| {
        let version = FileVersion {
            kind: Some(kind),
            ..FileVersion::default()
        };
        let data = FilesData {
            entries: Some(vec![FileChange {
                after: Some(version),
                ..FileChange::default()
            }]),
            ..FilesData::default()
        };
        let json = json!({"entries": [{"after": {"kind": word}}]});
        (Event::Files(data), None, Some(json))
    };
    vec![
        (Event::Files(whole), None, Some(whole_json)),
        (Event::Files(large), None, Some(large_json)),
        kind(FileKind::Directory, "directory"),
        kind(FileKind::Fifo, "fifo"),
    ]
}
