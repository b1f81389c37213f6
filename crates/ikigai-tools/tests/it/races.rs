//! Directories that become links while a file tool runs.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use ikigai_core::settings::Approve;
use ikigai_tools::permission::{Decision, Grant, Permissions, Sandbox, decide};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};

use crate::desk::{Desk, text};

/// Calls of each tool; the unguarded code failed within the first few hundred.
const CALLS: usize = 400;

/// Working directory whose `d` alternates between a directory and a link to the hidden one.
struct Swapping {
    desk: Desk,
}

/// Ends the swapping thread.
struct EndsOnDrop<'a>(&'a AtomicBool);

impl Drop for EndsOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Swapping {
    fn new() -> Self {
        let desk = Desk::new();
        desk.put("d/e/file.txt", "inside\n");
        desk.put("d/e/notes.txt", "inside\n");
        let outside = desk.place.hidden[0].clone();
        fs::create_dir(outside.join("e")).unwrap();
        fs::write(outside.join("e/file.txt"), "OUTSIDE\n").unwrap();
        fs::write(outside.join("e/private.txt"), "OUTSIDE\n").unwrap();
        symlink(&outside, desk.path("link")).unwrap();
        Self { desk }
    }

    /// Runs `calls` while another thread swaps the directory for the link and back.
    fn run(&self, calls: impl FnOnce()) {
        let (one, other) = (self.desk.path("d"), self.desk.path("link"));
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
                }
            });
            // Also if a call panics: the scope waits for its threads.
            let _ends = EndsOnDrop(&over);
            calls();
        });
    }

    /// Names and contents of everything outside.
    fn outside(&self) -> Vec<(String, String)> {
        let directory = self.desk.place.hidden[0].join("e");
        let mut found: Vec<_> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| {
                let path = entry.unwrap().path();
                let content = fs::read_to_string(&path).unwrap_or_default();
                (path.display().to_string(), content)
            })
            .collect();
        found.sort();
        found
    }

    /// Returns the output of a call, if mode `edits` allows it.
    fn call(&self, tool: &str, arguments: &Value) -> Option<(bool, String)> {
        let prepared = self.desk.prepare(tool, arguments).ok()?;
        let permissions = Permissions {
            grant: Grant {
                mode: Approve::Edits,
                rules: Vec::new(),
            },
            allow: Vec::new(),
            refuse: Vec::new(),
            sandbox: Sandbox::Missing,
        };
        let decision = decide(&permissions, tool, &prepared, &self.desk.place);
        if decision != Decision::Allow {
            return None;
        }
        let output = self.desk.run(prepared);
        Some((output.success, text(&output)))
    }
}

/// Attack: swap a link while a file tool writes.
#[test]
fn writing_never_leaves_the_working_directory_through_a_swapped_link() {
    let swapping = Swapping::new();
    let before = swapping.outside();
    let mut succeeded = 0;

    swapping.run(|| {
        for number in 0..CALLS {
            let written = swapping.call(
                "file_write",
                &json!({"file_path": format!("d/e/new-{number}.txt"), "content": "mine\n"}),
            );
            let replaced = swapping.call(
                "file_write",
                &json!({"file_path": "d/e/file.txt", "content": format!("{number}\n")}),
            );
            let nested = swapping.call(
                "file_write",
                &json!({"file_path": format!("d/e/{number}/a.txt"), "content": "mine\n"}),
            );
            let edited = swapping.call(
                "file_edit",
                &json!({
                    "file_path": "d/e/file.txt",
                    "old_string": format!("{number}\n"),
                    "new_string": "inside\n",
                }),
            );
            let outcomes = [written, replaced, nested, edited];
            succeeded += outcomes.iter().flatten().filter(|(done, _)| *done).count();
        }
    });

    assert_eq!(swapping.outside(), before);
    assert!(succeeded > 0, "no call ever ran");
}

/// Attack: swap a link while a file tool reads.
#[test]
fn reading_never_shows_a_hidden_file_through_a_swapped_link() {
    let swapping = Swapping::new();
    let mut succeeded = 0;

    swapping.run(|| {
        for _ in 0..CALLS {
            for (tool, arguments) in [
                ("file_read", json!({"file_path": "d/e/file.txt"})),
                ("file_read", json!({"file_path": "d/e/privat.txt"})),
                ("glob", json!({"pattern": "d/**"})),
                ("glob", json!({"pattern": "**/*.txt"})),
                ("grep", json!({"pattern": "OUTSIDE", "path": "d/e"})),
                ("grep", json!({"pattern": "OUTSIDE|sk-1"})),
            ] {
                if let Some((done, said)) = swapping.call(tool, &arguments) {
                    succeeded += usize::from(done);
                    assert!(!said.contains("OUTSIDE\n"), "{tool} {arguments}: {said}");
                    assert!(!said.contains("private"), "{tool} {arguments}: {said}");
                    assert!(!said.contains("sk-1234"), "{tool} {arguments}: {said}");
                }
            }
        }
    });

    assert!(succeeded > 0, "no call ever ran");
}

/// Attack: lead an approved path elsewhere after the approval.
#[test]
fn a_call_fails_if_its_path_leads_elsewhere_than_was_decided() {
    let desk = Desk::new();
    desk.put("d/a.txt", "inside\n");
    let outside = desk.place.workdir.with_file_name("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a.txt"), "outside\n").unwrap();
    let calls: Vec<_> = [
        ("file_read", json!({"file_path": "d/a.txt"})),
        (
            "file_write",
            json!({"file_path": "d/a.txt", "content": "x"}),
        ),
        (
            "file_write",
            json!({"file_path": "d/b/c.txt", "content": "x"}),
        ),
        (
            "file_edit",
            json!({"file_path": "d/a.txt", "old_string": "side", "new_string": "x"}),
        ),
        ("grep", json!({"pattern": "side", "path": "d"})),
        ("glob", json!({"pattern": "d/*"})),
    ]
    .into_iter()
    .map(|(tool, arguments)| (tool, desk.prepare(tool, &arguments).ok().unwrap()))
    .collect();

    fs::rename(desk.path("d"), desk.path("moved")).unwrap();
    symlink(&outside, desk.path("d")).unwrap();

    for (tool, prepared) in calls {
        let output = desk.run(prepared);
        let said = text(&output);
        assert!(!output.success, "{tool}: {said}");
        assert!(said.contains("symbolic link"), "{tool}: {said}");
    }
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    assert_eq!(
        fs::read_to_string(outside.join("a.txt")).unwrap(),
        "outside\n"
    );
}

#[test]
fn links_inside_the_project_keep_working() {
    let desk = Desk::new();
    desk.put("real/a.txt", "one\n");
    symlink("real", desk.path("directory")).unwrap();
    symlink("real/a.txt", desk.path("file")).unwrap();
    symlink("real/new.txt", desk.path("dangling")).unwrap();

    assert_eq!(
        desk.done("file_read", &json!({"file_path": "directory/a.txt"})),
        "     1\tone\n"
    );
    desk.done(
        "file_edit",
        &json!({"file_path": "file", "old_string": "one", "new_string": "two"}),
    );
    desk.done(
        "file_write",
        &json!({"file_path": "dangling", "content": "new\n"}),
    );
    desk.done(
        "file_write",
        &json!({"file_path": "directory/deep/er/b.txt", "content": "two\n"}),
    );
    let found = desk.done("grep", &json!({"pattern": "two", "path": "directory"}));

    assert_eq!(desk.get("real/a.txt"), "two\n");
    assert_eq!(desk.get("real/new.txt"), "new\n");
    assert!(desk.path("file").is_symlink() && desk.path("dangling").is_symlink());
    assert_eq!(found, "real/a.txt\n1:two\n\nreal/deep/er/b.txt\n1:two\n");
}
