//! Tests of HTML and Markdown output.

use super::prose::render;

#[test]
fn no_tag_of_a_text_becomes_a_tag() {
    let hostile = [
        "<script>alert(1)</script>",
        "hi <img src=x onerror=alert(1)> there",
        "<!-- c --><style>*{display:none}</style>",
        "```html\n<script>1</script>\n```",
        "`<script>`",
        "[x](javascript:alert(1)) [y](JaVaScRiPt:alert) [z](data:text/html,<script>)",
        "![p](https://e.example/\"onload=alert(1))",
        "[q](<https://e.example/\"><script>>)",
        "| <script> | b |\n|---|---|\n| <b>x</b> | \"' |",
        "[^1]\n\n[^1]: <script>",
        "&lt;script&gt; &#60;script&#62;",
        "<https://e.example/<script>>",
    ];
    let ours = [
        "p",
        "pre",
        "code",
        "a",
        "span",
        "table",
        "tr",
        "th",
        "td",
        "div",
        "em",
        "strong",
        "ul",
        "li",
        "br",
        "h3",
        "ol",
        "blockquote",
    ];
    for text in hostile {
        let html = render(text);
        for tag in html.split('<').skip(1) {
            let name = tag.trim_start_matches('/');
            let end = name.find(|c: char| !c.is_ascii_alphanumeric()).unwrap();
            assert!(ours.contains(&&name[..end]), "{text} → {html}");
        }
        assert!(
            !html.contains("href=\"javascript") && !html.contains("href=\"data"),
            "{html}"
        );
        let quotes = html.matches('"').count();
        assert_eq!(quotes % 2, 0, "{html}");
    }
}

#[test]
fn what_is_deep_or_broken_is_closed() {
    for text in [
        "> ".repeat(5000) + "x",
        "- ".repeat(2000) + "x",
        "**a _b `c\n\n```rust\nopen".to_owned(),
        "| a |\n|---|\n| b".to_owned(),
        "[".repeat(3000),
    ] {
        let html = render(&text);
        for tag in ["blockquote", "ul", "li", "p", "table", "em", "strong"] {
            let opened = html.matches(&format!("<{tag}>")).count();
            let closed = html.matches(&format!("</{tag}>")).count();
            assert_eq!(opened, closed, "{tag}");
            assert!(opened < 100);
        }
    }
}

#[test]
fn markdown_looks_like_what_it_says() {
    let html = render(
        "# T\n\na *b* **c** `d`\n\n1. x\n\n```diff\n@@ -1 +1 @@\n-a\n+b\n```\n[l](https://e.example)",
    );

    assert_eq!(
        html,
        "<h3>T</h3>\n<p>a <em>b</em> <strong>c</strong> <code>d</code></p>\n<ol start=\"1\">\n<li>x</li>\n</ol>\n\
         <pre class=diff><i>@@ -1 +1 @@\n</i><del>-a\n</del><ins>+b\n</ins></pre>\n\
         <p><a rel=\"noopener noreferrer nofollow\" href=\"https://e.example\">l</a></p>\n"
    );
}
