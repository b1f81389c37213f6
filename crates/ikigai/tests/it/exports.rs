//! Exports of histories, and their import.

use std::fs;

use crate::support::TestUser;

const HOSTILE: &str = "<script>document.title='ran'</script> \"quoted\" & \u{1b}[31mred\u{202e} ```\n<img src=x onerror=alert(1)>";

fn someone() -> TestUser {
    let user = TestUser::new();
    user.ikigai(&["run", "hello"]);
    user.ikigai(&["run", HOSTILE]);
    user.ikigai(&["run", "what was said"]);
    user.ikigai(&["run", "/undo"]);
    user.ikigai(&["run", "!printf '<b>shell\\n'"]);
    user.ikigai(&["run", "/fork --fresh --name helper"]);
    user.ikigai(&["run", "--agent", "helper", "count to 3"]);
    user.ikigai(&["run", "/kill helper"]);
    user
}

#[test]
fn a_page_of_html_has_everything_and_runs_nothing() {
    let user = someone();

    let page = user.ikigai(&["export", "--tree", "--format", "html"]);

    assert_eq!((page.code, page.err.as_str()), (Some(0), ""));
    let html = &page.out;
    assert!(html.contains("default-src 'none'"), "it has a policy");
    assert!(html.contains("&lt;script&gt;document.title"), "{html}");
    for tag in [
        "<script",
        "<img",
        "<iframe",
        "<link",
        "<form",
        " onerror=alert",
        "javascript:",
    ] {
        let found = html.to_lowercase().matches(tag).count();
        let as_text = html.matches("&lt;img src=x onerror=alert").count();
        let allowed = if tag == " onerror=alert" { as_text } else { 0 };
        assert_eq!(found, allowed, "{tag}");
    }
    assert!(html.contains("↶ rewound to #8<"), "{html}");
    let ran =
        "<b>printf &#39;&lt;b&gt;shell\\n&#39;</b></summary><pre>&lt;b&gt;shell\n(exit 0)</pre>";
    assert!(html.contains(ran), "{html}");
    assert!(!html.contains('\u{1b}') && !html.contains('\u{202e}'));
    assert!(
        html.contains("<nav") && html.contains("helper"),
        "the tree is there"
    );
    let anchors = html.matches("<article").count();
    assert_eq!(html.matches(" id=\"r-").count(), anchors);
    for id in html.split(" href=\"#").skip(1) {
        let id = id.split('"').next().unwrap();
        assert!(
            html.contains(&format!(" id=\"{id}\"")),
            "{id} leads nowhere"
        );
    }
}

#[test]
fn markdown_tells_the_conversation_and_cannot_be_broken_out_of() {
    let user = someone();

    let text = user.ikigai(&["export", "--all"]);

    assert!(
        text.out.starts_with("# 2 agents\n") || text.out.starts_with("# project and"),
        "{}",
        text.out
    );
    assert!(text.out.contains("### user #3\n"), "{}", text.out);
    assert!(
        text.out.contains("\n## helper\n\ndead · created"),
        "{}",
        text.out
    );
    assert!(!text.out.contains('\u{1b}'));
}

#[test]
fn json_is_taken_in_as_the_same_log() {
    let user = someone();
    let path = user.home().join("all.json");
    let path = path.to_str().unwrap();
    let exported = user.ikigai(&["export", "--all", "--format", "json", "--output", path]);
    assert_eq!((exported.code, exported.err.as_str()), (Some(0), ""));

    let other = user.home().join("other.db");
    let other = other.to_str().unwrap();
    let taken = user.ikigai(&["import", "--db", other, "--format", "json", path]);
    let again = user.ikigai(&["import", "--db", other, path]);
    let copy = user.ikigai(&["export", "--db", other, "--all", "--format", "json"]);

    assert_eq!(taken.code, Some(0), "{}", taken.err);
    assert!(
        taken.out.starts_with("Imported 2 agents, "),
        "{}",
        taken.out
    );
    assert_eq!(again.code, Some(1));
    assert!(again.err.contains("already"), "{}", again.err);
    assert_eq!(copy.out, fs::read_to_string(path).unwrap());
    let log = |db: &[&str]| {
        user.ikigai(&[&["log", "project", "--json"], db].concat())
            .out
    };
    assert_eq!(log(&["--db", other]), log(&[]));
    let found = user.ikigai(&["search", "--db", other, "count"]);
    assert!(found.out.contains("#helper."), "{}", found.out);
    let talks = user.ikigai(&["run", "--db", other, "--agent", "project", "what did I say"]);
    assert_eq!(talks.code, Some(0), "{}", talks.err);
}

#[test]
fn the_command_writes_a_file_and_leaves_others_alone() {
    let user = someone();

    let written = user.ikigai(&["run", "/export"]);
    let again = user.ikigai(&["run", "/export"]);
    let text = user.ikigai(&["run", "/export notes.md"]);

    let page = user.home().join("project/project.html");
    assert!(written.out.contains("Exported "), "{written:?}");
    assert!(fs::read_to_string(page).unwrap().ends_with("</html>\n"));
    assert!(format!("{again:?}").contains("already exists"), "{again:?}");
    assert!(text.out.contains("notes.md"), "{text:?}");
    let notes = fs::read_to_string(user.home().join("project/notes.md")).unwrap();
    assert!(notes.starts_with("# project\n"), "{notes}");
}

#[test]
fn a_page_names_agents_that_are_not_on_it() {
    let user = someone();
    user.ikigai(&["run", "/fork --name second"]);
    user.ikigai(&["run", "--agent", "second", "/undo"]);
    user.ikigai(&["run", "/reap helper"]);

    let parent = user.ikigai(&["export", "--format", "md"]);
    let child = user.ikigai(&["export", "second", "--format", "md"]);

    assert!(parent.out.contains("✗ killed helper"), "{}", parent.out);
    assert!(
        child.out.contains("↶ rewound to \\#project."),
        "{}",
        child.out
    );
}

#[test]
fn exports_have_merged_texts_and_the_figures_of_turns() {
    let user = TestUser::new();
    user.ikigai(&["run", "hello"]);
    user.ikigai(&["run", "/fork --fresh --name helper"]);
    user.ikigai(&["run", "--agent", "helper", "count to 3"]);
    user.ikigai(&["run", "/merge helper"]);

    let text = user.ikigai(&["export", "project"]).out;
    let html = user.ikigai(&["export", "project", "--format", "html"]).out;

    for page in [&text, &html] {
        assert!(page.contains("Result of the child agent helper:"), "{page}");
        assert!(page.contains("1 2 3"), "{page}");
    }
    let footer = text.lines().find(|line| line.starts_with("*demo · "));
    let footer = footer.unwrap_or_else(|| panic!("{text}"));
    assert!(footer.contains(" tokens · 20"), "{footer}");
    assert!(html.contains("<p class=turn>demo · "), "{html}");
}

#[test]
fn a_bad_stored_rewind_is_reported_by_log_and_export() {
    let user = TestUser::with_file();
    user.ikigai(&["run", "hello"]);
    user.ikigai(&["run", "/mark a"]);
    user.ikigai(&["run", "count to 3"]);
    user.ikigai(&["run", "/rewind a"]);
    let good = user.ikigai(&["log", "--all"]);
    assert!(!good.out.contains("is skipped"), "{}", good.out);
    let dump = user.ikigai(&["export", "--all", "--format", "json"]).out;
    let own = user.ikigai(&["agents", "--json"]).out;
    let own: serde_json::Value = serde_json::from_str(own.lines().next().unwrap()).unwrap();
    let own = own["id"].as_str().unwrap();
    let bad = dump
        .lines()
        .map(|line| {
            if line.contains("\\\"target\\\"") {
                let at = line.find("target").unwrap();
                let (before, after) = line.split_at(at);
                format!(
                    "{before}{}\n",
                    after.replacen(own, "AAAAAAAAAAAAAAAAAAAAAA", 1)
                )
            } else {
                format!("{line}\n")
            }
        })
        .collect::<Vec<_>>()
        .concat();
    assert_ne!(bad, dump);
    let path = user.home().join("bad.json");
    fs::write(&path, bad).unwrap();
    let other = user.home().join("other.db");
    let other = other.to_str().unwrap();
    let taken = user.ikigai(&["import", "--db", other, path.to_str().unwrap()]);
    assert_eq!(taken.code, Some(0), "{}", taken.err);

    for arguments in [
        &["log", "project", "--db", other][..],
        &["log", "project", "--all", "--db", other],
        &["log", "project", "--tail", "3", "--db", other],
        &["export", "project", "--db", other],
        &["export", "project", "--format", "html", "--db", other],
    ] {
        let said = user.ikigai(arguments);
        assert_eq!(said.code, Some(0), "{}", said.err);
        let shown = said.out.replace("&#39;", "'").replace('\\', "");
        assert!(
            shown.contains("of kind `rewind` is skipped"),
            "{arguments:?}: {shown}"
        );
    }
}
