//! Real programs, undone and redone.

use std::fs;

use super::{Workplace, there_and_back};

const REPOSITORY: &str = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a \
    GIT_COMMITTER_EMAIL=a@b HOME=/nowhere
git init -q -b main . && mkdir -p src/deep && seq 50 > src/one && seq 20 > src/deep/two && echo x > three
git add . && git commit -qm one
git checkout -q -b side && seq 49 > src/one && git rm -q three && git commit -qam two
git checkout -q main && echo y >> src/deep/two && git commit -qam three";

const WHO: &str = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a \
    GIT_COMMITTER_EMAIL=a@b HOME=/nowhere; ";

/// Files of a repository, and the state of git itself, go back and forth.
#[tokio::test]
async fn git_commands_are_undone_and_redone() {
    for line in [
        "git checkout -q side",
        "echo z >> three && git stash -q",
        "git rebase -q side",
        "git merge -q -m m side",
        "git reset -q --hard HEAD~1",
        "echo q > new && git add . && git commit -qm four",
    ] {
        let mut place = Workplace::new();
        place.prepare(REPOSITORY).await;
        let recorded = there_and_back(&mut place, &format!("{WHO}{line}")).await;
        assert!(!recorded.entries.is_empty(), "{line}");
        assert_eq!(recorded.missed, [], "{line}: {}", recorded.output);
    }
}

/// Many files, a moved directory, a removed one, an archive, and writes through a mapping.
#[tokio::test]
async fn many_files_and_directories_are_undone_and_redone() {
    let many = "mkdir -p src/d && for i in $(seq 1000); do echo old $i > src/f$i; done
        for i in $(seq 40); do echo $i > src/d/$i; done; tar cf ../all.tar src && mv ../all.tar .";
    let python = "python3 -c \"
import mmap
with open('src/f1', 'r+b') as file:
    with mmap.mmap(file.fileno(), 0) as memory:
        memory[0:3] = b'new'
\"";
    let mut place = Workplace::new();
    place.prepare(many).await;
    for (line, least) in [
        ("sed -i s/old/new/ src/f*", 1000),
        ("rm -rf src", 1041),
        ("mv src moved", 2082),
        ("echo changed > src/f7; rm -rf src/d; tar xf all.tar", 41),
        (python, 1),
        ("chmod -R go= src", 1041),
        // All comes back as it was, but for the time of the directory above.
        ("cp -a src copy && rm -r src && mv copy src", 1),
    ] {
        let recorded = there_and_back(&mut place, line).await;
        assert!(
            recorded.entries.len() >= least,
            "{line}: {}",
            recorded.entries.len()
        );
        assert_eq!(recorded.missed, [], "{line}: {}", recorded.output);
    }
}

/// Of a directory that git ignores only new names are taken back, and the recording says so.
#[tokio::test]
async fn ignored_directories_are_missed() {
    let mut place = Workplace::new();
    place
        .prepare("git init -q .; mkdir target; echo /target > .gitignore; echo old > target/old")
        .await;

    let recorded = place
        .run("echo new > target/new; echo changed > target/old; mkdir -p node_modules/a; echo > node_modules/a/b; echo > plain")
        .await;
    place.undo(&recorded);

    let missed: Vec<_> = recorded
        .missed
        .iter()
        .filter_map(|it| it.path.clone())
        .collect();
    let path = |name: &str| place.path().join(name);
    let name = |name: &str| path(name).to_str().unwrap().to_owned();
    assert_eq!(missed, [name("target/"), name("node_modules/")]);
    assert!(!path("target/new").exists() && !path("node_modules").exists());
    assert!(!path("plain").exists());
    assert_eq!(fs::read_to_string(path("target/old")).unwrap(), "changed\n");
}

/// A file that is too large is named, and all others are restored.
#[tokio::test]
async fn large_files_are_missed() {
    let mut place = Workplace::new();
    place
        .prepare("truncate -s 20M large; echo old > small")
        .await;

    let recorded = place.run("echo > large; echo new > small").await;

    assert_eq!(recorded.missed.len(), 1, "{:?}", recorded.missed);
    assert_eq!(
        recorded.missed[0].why.as_deref(),
        Some("larger than 16.0 MB")
    );
}

/// Attributes of users belong to a file.
#[tokio::test]
async fn attributes_are_undone_and_redone() {
    let mut place = Workplace::new();
    place
        .prepare("echo a > a; python3 -c \"import os; os.setxattr('a', 'user.one', b'1')\"")
        .await;
    let line = "python3 -c \"
import os
os.setxattr('a', 'user.one', b'2'); os.setxattr('a', 'user.two', b'x')\"";

    let recorded = place.run(line).await;
    place.undo(&recorded);

    let read = "python3 -c \"import os; print(os.listxattr('a'), os.getxattr('a', 'user.one'))\"";
    let found = place.run(read).await;
    assert_eq!(found.output, "['user.one'] b'1'\n");
    assert!(found.entries.is_empty());
}
