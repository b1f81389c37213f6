use super::code_blocks;

#[test]
fn code_blocks_are_what_stands_between_fences() {
    let cases: [(&str, &[&str]); 6] = [
        ("none, and `this` is none", &[]),
        ("a\n```rust\nfn a() {}\n\nb\n```\nc", &["fn a() {}\n\nb\n"]),
        ("```\none\n```\n~~~\ntwo\n~~~", &["one\n", "two\n"]),
        ("````md\n```\ninner\n```\n````", &["```\ninner\n```\n"]),
        ("```\ncut off", &["cut off\n"]),
        ("``` not `a` fence\ntext", &[]),
    ];

    for (text, blocks) in cases {
        assert_eq!(code_blocks(text), blocks, "{text}");
    }
}
