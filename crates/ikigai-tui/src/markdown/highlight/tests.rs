use proptest::prelude::*;

use super::*;

/// Highlighted pieces, with a letter for the tone of each.
fn marked(name: &str, code: &str) -> String {
    let mut highlighter = Highlighter::new(name);
    let mut out = Vec::new();
    for line in code.split('\n') {
        let mut text = String::new();
        for span in highlighter.line(line) {
            let letter = match span.look.role {
                Tone::Keyword => 'k',
                Tone::Literal => 's',
                Tone::Comment => 'c',
                Tone::Number => 'n',
                Tone::Name => 'f',
                Tone::Added => '+',
                Tone::Removed => '-',
                _ => {
                    text.push_str(&span.text);
                    continue;
                }
            };
            text.extend([letter, '‹']);
            text.push_str(&span.text);
            text.push('›');
        }
        out.push(text);
    }
    out.join("\n")
}

#[test]
fn every_family_shows_what_is_what() {
    let cases = [
        (
            "rust",
            "fn main() { let x = 'a'; }",
            "k‹fn› f‹main›() { k‹let› x = s‹'a'›; }",
        ),
        (
            "rs",
            "/* a /* b */\nc */ impl<'a> X",
            "c‹/* a /* b */›\nc‹c */› k‹impl›<k‹'a›> X",
        ),
        (
            "rust",
            "r#\"a\" b\n\"# 0x1f",
            "s‹r#\"a\" b›\ns‹\"#› n‹0x1f›",
        ),
        (
            "rust",
            "println!(\"a\\\"b\"); // x",
            "f‹println›!(s‹\"a\\\"b\"›); c‹// x›",
        ),
        (
            "python",
            "def f(x):\n  '''a\n  b''' # c",
            "k‹def› f‹f›(x):\n  s‹'''a›\ns‹  b'''› c‹# c›",
        ),
        ("ts", "const s = `a\nb`", "k‹const› s = s‹`a›\ns‹b`›"),
        (
            "c",
            "#include <x.h>\nint f(void) { return 1; }",
            "k‹#include› <x.h>\nk‹int› f‹f›(k‹void›) { k‹return› n‹1›; }",
        ),
        (
            "go",
            "func f() error { return nil }",
            "k‹func› f‹f›() k‹error› { k‹return› k‹nil› }",
        ),
        (
            "sh",
            "echo \"$HOME\" a#b # c\ncd $X",
            "echo s‹\"$HOME\"› a#b c‹# c›\ncd f‹$X›",
        ),
        (
            "json",
            "{\"a\": \"b\", \"c\": true}",
            "{f‹\"a\"›: s‹\"b\"›, f‹\"c\"›: k‹true›}",
        ),
        (
            "toml",
            "[a]\nkey = \"v\" # c",
            "[a]\nf‹key› = s‹\"v\"› c‹# c›",
        ),
        ("yaml", "a-b: 12", "f‹a-b›: n‹12›"),
        (
            "html",
            "<a href=\"x\">t</a><!-- c\n-->",
            "k‹<a› f‹href›=s‹\"x\"›k‹>›tk‹</a>›c‹<!-- c›\nc‹-->›",
        ),
        ("css", "a { color: red; }", "a { f‹color›: red; }"),
        (
            "sql",
            "SELECT a FROM b -- c",
            "k‹SELECT› a k‹FROM› b c‹-- c›",
        ),
        (
            "diff",
            "@@ -1 +1 @@\n-a\n+b\n c",
            "k‹@@ -1 +1 @@›\n-‹-a›\n+‹+b›\n c",
        ),
        ("klingon", "if 1 \"a\"", "if 1 \"a\""),
        ("rust", "\"open\nstill\" x", "s‹\"open›\ns‹still\"› x"),
        ("c", "\"open\nint", "s‹\"open›\nk‹int›"),
    ];
    for (name, code, expected) in cases {
        assert_eq!(marked(name, code), expected, "{name}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_to_its_end(
        code in "([\"'`#/*<>!=:$\\\\{}()a-z0-9 é日-]|\\PC|\n){0,80}",
        name in prop::sample::select(vec!["rust", "py", "ts", "c", "go", "sh", "json", "yaml", "html", "css", "sql", "diff", "ruby", ""]),
    ) {
        let mut highlighter = Highlighter::new(name);
        for line in code.split('\n') {
            let spans = highlighter.line(line);
            let told: String = spans.iter().map(|span| span.text.as_str()).collect();
            prop_assert_eq!(told, line);
        }
    }
}
