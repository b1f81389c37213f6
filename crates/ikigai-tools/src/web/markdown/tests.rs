use proptest::prelude::*;

use super::*;

fn base() -> Url {
    Url::parse("https://example.com/docs/page").unwrap()
}

fn text(html: &str) -> String {
    page(html, &base()).text
}

#[test]
fn elements_become_markdown() {
    let table = [
        ("plain text", "plain text"),
        ("<p>one</p><p>two</p>", "one\n\ntwo"),
        ("a<br>b", "a\nb"),
        ("<p>a\n  b\t c&nbsp;d</p>", "a b c d"),
        (
            "<h1>One</h1>text<h3>Three</h3>",
            "# One\n\ntext\n\n### Three",
        ),
        ("<h2></h2>text", "text"),
        (
            "a <b>bold</b>, <em>it</em> and <code>x &lt; y</code>.",
            "a **bold**, *it* and `x < y`.",
        ),
        ("a<b></b>b", "ab"),
        ("<p>a</p><b></b><p>b</p>", "a\n\nb"),
        (
            "<a href='/x?a=1&amp;b=2'>there</a>",
            "[there](https://example.com/x?a=1&b=2)",
        ),
        ("<a href=other>t</a>", "[t](https://example.com/docs/other)"),
        ("<a href='#top'>top</a> <a name=x>y</a>", "top y"),
        ("<a href='javascript:x()'>click</a>", "click"),
        ("<a href=/x></a>a", "a"),
        (
            "<a href=/x><div>one</div><div>two</div></a>",
            "[one two](https://example.com/x)",
        ),
        (
            "<a href=/x>one <a href=/y>two</a>",
            "[one](https://example.com/x) [two](https://example.com/y)",
        ),
        (
            "<img alt='A cat' src=cat.png><img src=x>",
            "![A cat](https://example.com/docs/cat.png)",
        ),
        ("<ul><li>a<li>b</ul>c", "- a\n- b\n\nc"),
        ("<ol start=3><li>a</li><li>b</li></ol>", "3. a\n4. b"),
        (
            "<ul><li>a<ul><li>b</li><li>c</li></ul></li><li>d</li></ul>",
            "- a\n  - b\n  - c\n- d",
        ),
        ("<ul><li><p>a</p><p>b</p></li></ul>", "- a\n\n  b"),
        (
            "<blockquote><p>a</p><p>b</p></blockquote>c",
            "> a\n>\n> b\n\nc",
        ),
        ("<blockquote><b>x</b></blockquote>", "> **x**"),
        (
            "<pre>\na\n  b &amp; c\n</pre>d",
            "```\na\n  b & c\n```\n\nd",
        ),
        (
            "<pre><code class='x language-rust'>fn <b>a</b>()</code></pre>",
            "```rust\nfn a()\n```",
        ),
        ("<pre></pre>a", "a"),
        (
            "<ul><li><pre>a\nb</pre></li></ul>",
            "- ```\n  a\n  b\n  ```",
        ),
        (
            "<table><tr><th>a<th>b</tr><tr><td>1</td><td>2</td></tr></table>",
            "a | b\n--- | ---\n1 | 2",
        ),
        (
            "<table><tr><td>1<td>2<tr><td>3<td>4</table>x",
            "1 | 2\n3 | 4\n\nx",
        ),
        ("a<hr>b", "a\n\n---\n\nb"),
        ("<dl><dt>a<dd>b</dl>", "a\nb"),
    ];

    for (html, wanted) in table {
        assert_eq!(text(html), wanted, "{html}");
    }
}

#[test]
fn pages_are_split_as_browsers_do() {
    let table = [
        ("a<!-- <b>no</b> -->b<!doctype x>c<?php no ?>d", "abcd"),
        (
            "a<script>if (a<b) '</p>'</SCRIPT >b<style>x{}</style>c",
            "abc",
        ),
        (
            "a<svg><svg>no</svg>no</svg>b<noscript>no</noscript>c",
            "abc",
        ),
        ("a < b && c > d", "a < b && c > d"),
        ("1 <2 <", "1 <2 <"),
        // As browsers read it, this begins a comment.
        ("1 </ 2 > 3", "1 3"),
        (
            "&lt;b&gt; &copy; &#65;&#x42; &#150; &nope; &amp",
            "<b> © AB – &nope; &",
        ),
        (
            "<a href='?a=1&copy=2'>x</a> &copy=2 &notin; &CounterClockwiseContourIntegral;",
            "[x](https://example.com/docs/page?a=1&copy=2) ©=2 ∉ ∳",
        ),
        ("a<script><!-- <script>no</script> --></script>b", "ab"),
        ("a<title>no</titl><b>no</title>b", "ab"),
        ("a&#27;[31mb\u{7}", "a[31mb"),
        ("<p title='a > b'>x</p>", "x"),
        ("<p title=\"it's\">x</p>", "x"),
        ("<p don't>x</p>", "x"),
        ("</p></ul></div></a></b>x", "x"),
        ("<DIV>A</DIV><Div>B</dIV>", "A\nB"),
        ("x<b", "x"),
        ("x<!-- open", "x"),
    ];

    for (html, wanted) in table {
        assert_eq!(text(html), wanted, "{html}");
    }
}

#[test]
fn the_title_is_told_apart() {
    let html = "<head><title> A &amp;\n B </title></head><body>text<svg><title>no</title></svg>";

    let page = page(html, &base());

    let wanted = WebPage {
        title: "A & B".to_owned(),
        text: "text".to_owned(),
    };
    assert_eq!(page, wanted);
}

#[test]
fn a_main_part_is_the_page_if_it_says_enough() {
    let long = "word ".repeat(60);
    let with = |main: &str| {
        text(&format!(
            "<nav>menu</nav><main>{main}</main><footer>end</footer>"
        ))
    };

    assert_eq!(with(&long), long.trim());
    assert_eq!(with("short"), "menu\n\nshort\n\nend");
}

#[test]
fn nesting_without_end_stays_small() {
    let html = "<blockquote><ul><li><b>".repeat(20_000) + "x" + &"<br>y".repeat(1000);

    let text = text(&html);

    assert!(text.len() < 1_000_000, "{}", text.len());
    assert!(text.ends_with('y') || text.ends_with('*'));
}

#[test]
fn pieces_are_plain_on_one_line() {
    let found = plain("a <strong>b</strong>\n c &amp; d&#7;");

    assert_eq!(found, "a b c & d");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn anything_becomes_a_page(html in "\\PC*") {
        page(&html, &base());
        plain(&html);
    }

    #[test]
    fn any_jumble_of_tags_becomes_a_page(
        parts in prop::collection::vec(
            prop_oneof![
                "</?(a|b|p|ul|ol|li|pre|code|table|tr|td|th|main|title|h2|svg|blockquote|script|br)>",
                "<a href=['\"]?[a-z:/#&;=]{0,6}['\"]?>?",
                "<[!?/ -]{0,3}",
                "[a-zäß&#;x0-9 \\n<>'\"=-]{0,6}",
            ],
            0..40,
        )
    ) {
        let page = page(&parts.concat(), &base());
        prop_assert!(!page.text.contains(|c: char| c.is_control() && c != '\n' && c != '\t'));
    }
}
