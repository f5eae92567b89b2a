//! Code without what its comments and literals say.

/// Puts blanks in the place of comments and of the insides of literals. Lines stay lines.
pub(crate) fn blank_text(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let after_word = code.ends_with(|last: char| last.is_alphanumeric() || last == '_');
        let blank = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => block_comment(rest),
            '"' => string(rest),
            'r' if !after_word => raw_string(rest),
            '\'' => character(rest),
            _ => 0,
        };
        let taken = if blank == 0 { first.len_utf8() } else { blank };
        let (text, next) = rest.split_at(taken);
        if blank == 0 {
            code.push_str(text);
        } else {
            code.extend(
                text.chars()
                    .map(|found| if found == '\n' { '\n' } else { ' ' }),
            );
        }
        rest = next;
    }
    code
}

/// The length of the comment that `text` starts with. Comments nest.
fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    at
}

/// The length of the string that `text` starts with.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, found) in text.char_indices().skip(1) {
        match found {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of the raw string that `text` starts with; zero if it starts with something else.
fn raw_string(text: &str) -> usize {
    let hashes = text[1..].len() - text[1..].trim_start_matches('#').len();
    if !text[1 + hashes..].starts_with('"') {
        return 0;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let inside = 2 + hashes;
    text[inside..]
        .find(&end)
        .map_or(text.len(), |at| inside + at + end.len())
}

/// The length of the character that `text` starts with; zero if it starts with a lifetime.
fn character(text: &str) -> usize {
    let mut inside = text[1..].char_indices();
    match (inside.next(), inside.next()) {
        (Some((_, '\\')), Some((at, escaped))) => {
            let from = 1 + at + escaped.len_utf8();
            text[from..]
                .find('\'')
                .map_or(text.len(), |end| from + end + 1)
        }
        (Some(_), Some((at, '\''))) => at + 2,
        _ => 0,
    }
}

#[test]
fn blanks_hide_what_is_no_code() {
    let check = |source: &str, expected: &str| {
        assert_eq!(blank_text(source).trim_end(), expected, "{source}");
    };
    check("a // unsafe", "a");
    check("a /* x /* y */ z */ b", "a                   b");
    check(r#"f("\"unsafe", b)"#, "f(          , b)");
    check(r##"f(r#"un"safe"#, b)"##, "f(            , b)");
    check(r"f('\'', 'x', 'ä')", "f(    ,    ,    )");
    check("fn f<'a>(x: &'a str)", "fn f<'a>(x: &'a str)");
    check("\"a\nb\" c", "  \n   c");
}
