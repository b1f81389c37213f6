use super::{conflicts_in, file_of};

#[test]
fn lines_of_numstat_are_read() {
    let cases = [
        ("3\t1\tsrc/a.rs", ("src/a.rs", Some((3, 1)))),
        ("0\t0\ta\tb", ("a\tb", Some((0, 0)))),
        ("-\t-\tlogo.png", ("logo.png", None)),
    ];

    for (line, (name, lines)) in cases {
        assert_eq!(file_of(line), (name.to_owned(), lines), "{line}");
    }
}

#[test]
fn conflicts_are_listed_once() {
    let output = "error: patch failed: a.txt:1\nerror: a.txt: patch does not apply\n\
                  error: new: it.txt: already exists in working directory\nother\n\
                  error: a.txt: patch does not apply\n";

    assert_eq!(conflicts_in(output.as_bytes()), ["a.txt", "new: it.txt"]);
}
