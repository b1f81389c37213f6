use std::fs;
use std::path::Path;

use super::guard::RepositoryGuard;
use super::{OwnDirectories, is_guarded, program_settings, repository_paths, runs_program};

#[test]
fn all_own_directories_are_listed() {
    let own = OwnDirectories {
        configuration: vec!["/h/.config/ikigai".into()],
        data: vec!["/h/.local/share/ikigai".into()],
        state: vec!["/h/.local/state/ikigai".into(), "/run/ikigai".into()],
        cache: vec!["/h/.cache/ikigai".into()],
    };

    assert_eq!(own.all().count(), 5);
}

#[test]
fn guarded_names_count_at_any_depth_and_in_any_case() {
    let table = [
        ("/w/.git/hooks/pre-commit", true),
        ("/w/a/b/.Git/config", true),
        ("/w/.ikigai", true),
        ("/w/.claude/settings.json", true),
        ("/w/sub/.vscode/tasks.json", true),
        ("/w/.gitignore", false),
        ("/w/git/hooks/x", false),
        ("/w/.vscode-test/x", false),
    ];

    for (path, expected) in table {
        assert_eq!(is_guarded(Path::new(path)), expected, "{path}");
    }
}

#[test]
fn settings_that_run_programs_are_known_in_any_case() {
    let running = [
        "core.hooksPath",
        "CORE.FSMonitor",
        "core.sshCommand",
        "core.editor",
        "core.pager",
        "alias.st",
        "filter.lfs.smudge",
        "filter.a.b.clean",
        "diff.pdf.textconv",
        "diff.pdf.command",
        "diff.external",
        "merge.mine.driver",
        "credential.helper",
        "credential.https://example.com.helper",
        "include.path",
        "includeIf.gitdir:~/work/.path",
        "gpg.program",
        "gpg.ssh.defaultKeyCommand",
        "sequence.editor",
        "init.templateDir",
        "difftool.x.cmd",
        "protocol.ext.allow",
        "remote.origin.uploadpack",
    ];
    let harmless = [
        "core.bare",
        "core.worktree",
        "user.name",
        "remote.origin.url",
        "branch.main.merge",
        "diff.algorithm",
        "merge.conflictStyle",
        "submodule.a.url",
        "core",
        "",
    ];

    for key in running {
        assert!(runs_program(key), "{key}");
    }
    for key in harmless {
        assert!(!runs_program(key), "{key}");
    }
}

#[test]
fn a_configuration_is_reduced_to_what_runs_programs() {
    let text = "[core]\n\tbare = false\n\tfsmonitor = \"touch x\" # note\n\
                [ALIAS]st=!sh -c \\\n  id\n\
                [filter \"a \\\"b\\\" ]\"]\n  clean = x\n\
                [diff.Old] textconv = y\n\
                ; [core] pager = no\n\
                [core]\neditor\n[broken\npager = z\n\
                [submodule \"s\"]\nupdate = rebase\n[submodule \"t\"]\nupdate = \"!cmd\"\n\
                [core]\nFSMonitor = again\n";

    let found = program_settings(text);

    let found: Vec<(&str, Vec<&str>)> = found
        .iter()
        .map(|(key, values)| (key.as_str(), values.iter().map(String::as_str).collect()))
        .collect();
    assert_eq!(
        found,
        [
            ("alias.st", vec!["!sh -c   id"]),
            ("core.editor", vec![""]),
            ("core.fsmonitor", vec!["touch x", "again"]),
            ("core.pager", vec!["z"]),
            ("diff.old.textconv", vec!["y"]),
            ("filter.a \"b\" ].clean", vec!["x"]),
            ("submodule.t.update", vec!["!cmd"]),
        ]
    );
}

#[test]
fn submodules_and_worktrees_of_a_repository_are_guarded() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("main");
    let other = directory.path().join("other");
    let git = root.join(".git");
    let module = git.join("modules/group/lib");
    let worktree = git.join("worktrees/other");
    for path in [&module, &worktree, &other, &root.join("src/deep")] {
        fs::create_dir_all(path).unwrap();
    }
    fs::write(module.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    let setting = "[core]\n\tworktree = ../../../../group/lib\n";
    fs::write(module.join("config"), setting).unwrap();
    let pointer = other.join(".git");
    fs::write(worktree.join("gitdir"), format!("{}\n", pointer.display())).unwrap();
    fs::write(worktree.join("commondir"), "../..\n").unwrap();
    fs::write(&pointer, format!("gitdir: {}\n", worktree.display())).unwrap();

    for start in [root.join("src/deep"), other.clone()] {
        let found = repository_paths(&start);

        for expected in [
            git.join("hooks"),
            module.join("hooks"),
            root.join(".ikigai"),
            root.join("group/lib/.vscode"),
            other.join(".claude"),
        ] {
            assert!(
                found.read_only.contains(&expected),
                "{} from {}",
                expected.display(),
                start.display()
            );
        }
        for expected in [
            git.join("config"),
            module.join("config"),
            worktree.join("config.worktree"),
        ] {
            assert!(found.git_configurations.contains(&expected), "{expected:?}");
        }
    }
}

#[test]
fn a_directory_without_repository_has_guarded_paths_too() {
    let directory = tempfile::tempdir().unwrap();

    let found = repository_paths(directory.path());

    assert!(found.read_only.contains(&directory.path().join(".vscode")));
    assert!(
        found
            .read_only
            .contains(&directory.path().join(".git/hooks"))
    );
}

#[test]
fn a_configuration_is_read_as_git_reads_it() {
    let hiding = [
        "[user]\n# comment \\\n[core]\nfsmonitor = x\n",
        "[user]\nname = a # \\\n[core]\nfsmonitor = x\n",
        "[user]\nname = a ; b \\\n[core] fsmonitor = x",
        "[user] name = \"a # b\" \\\n\n[core]fsmonitor=\"x\"\r\n",
        "\u{feff}[core]\n\tfsmonitor = \\\n  x\n",
        "[core]\nfsmonitor = \"x\" # why\n",
        "[core]\nFsMonitor=\"\"x\n",
        "[core]#c\n[ core ]fsmonitor=x",
    ];
    for text in hiding {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config");
        fs::write(&file, text).unwrap();
        let git = std::process::Command::new("git")
            .args(["config", "--get", "core.fsmonitor", "--file"])
            .arg(&file)
            .output()
            .unwrap();
        let rejects = !git.status.success();
        assert!(rejects || git.stdout == b"x\n", "{text:?}: {git:?}");
        let found = program_settings(text);
        assert_eq!(found["core.fsmonitor"], ["x"], "{text:?}");
    }
}

#[test]
fn settings_that_run_programs_are_put_back_and_others_stay() {
    let table = [
        ("[user]\n\tname = a\n", "[user]\n\tname = b\n", None),
        (
            "[core]\n\tbare = false\n",
            "[core]\n\tbare = true\n\tfsmonitor = evil\n[user]\n\tname = b\n",
            Some("[core]\n\tbare = true\n\t\n[user]\n\tname = b\n"),
        ),
        (
            "[core]\n\tpager = \"less \\\"-R\\\"\"\n",
            "[core] pager = evil\n[alias \"x\"] y = !z",
            Some("[core] \n[alias \"x\"] \n[core]\n\tpager = \"less \\\"-R\\\"\"\n"),
        ),
        (
            "[filter \"a b\"]\nclean = c\n",
            "",
            Some("\n[filter \"a b\"]\n\tclean = \"c\"\n"),
        ),
    ];
    for (before, after, expected) in table {
        let restored = super::restore_program_settings(before, after);
        let text = restored.map(|(text, _)| text);
        assert_eq!(text.as_deref(), expected, "{after:?}");
        if let Some(text) = text {
            assert_eq!(program_settings(&text), program_settings(before));
        }
    }
}

#[test]
fn commands_at_the_same_time_compare_with_the_state_before_the_first() {
    for place in ["", "nested"] {
        let directory = tempfile::tempdir().unwrap();
        let workdir = directory.path().canonicalize().unwrap();
        let inner = workdir.join(place);
        let writable = [workdir.clone()];

        let first = RepositoryGuard::begin(&workdir, &writable);
        fs::create_dir_all(inner.join(".vscode")).unwrap();
        fs::create_dir_all(inner.join(".git")).unwrap();
        fs::write(inner.join(".vscode/tasks.json"), "evil").unwrap();
        fs::write(inner.join(".git/config"), "[alias]\nx = !evil\n").unwrap();
        let second = RepositoryGuard::begin(&inner, &writable);
        let remark = first.finish().unwrap();
        let nothing_left = second.finish();

        assert!(remark.contains(".vscode/tasks.json"), "{remark}");
        assert!(remark.contains("alias.x"), "{remark}");
        assert_eq!(nothing_left, None);
        assert!(!inner.join(".vscode/tasks.json").exists());
        let config = fs::read_to_string(inner.join(".git/config")).unwrap();
        assert!(!config.contains("evil"), "{config}");
        let copies = remark.split_once("copies are in ").unwrap().1;
        fs::remove_dir_all(copies.split_once(". Only").unwrap().0).unwrap();
    }
}
