//! The attribute as a function from tokens to tokens.

use std::fs;
use std::path::Path;
use std::process::Command;

use proc_macro2::{Delimiter, Group, Ident, Punct, Spacing, Span, TokenStream, TokenTree};
use quote::quote;

use crate::expand_actor;

/// Compares the expansion of `tests/expand/{name}.in.rs` with `{name}.out.rs`.
///
/// `UPDATE=1` writes the expansion as it is; read the difference before it is kept.
fn check_expansion(name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/expand");
    let input = fs::read_to_string(folder.join(name).with_extension("in.rs")).expect("an input");
    let (args, item) = attribute_and_item(input.parse().expect("tokens"));
    let expansion = expand_actor(args, item);

    let output = folder.join(name).with_extension("out.rs");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&output, expansion.to_string()).expect("a writable file");
        let status = Command::new("rustfmt")
            .args(["--edition", "2024"])
            .arg(&output)
            .status();
        // What is not valid Rust, such as a half-typed body, stays as it was printed.
        drop(status);
    }
    let expected = fs::read_to_string(output).expect("an output");
    let expected: TokenStream = expected.parse().expect("tokens");
    let (expansion, expected) = (words(expansion), words(expected));
    let differs = expansion.iter().zip(&expected).position(|(a, b)| a != b);
    let around = differs.unwrap_or_default().saturating_sub(8)..;
    let excerpt = |words: &[String]| {
        words
            .get(around.clone())
            .map(|words| words.iter().take(24).cloned().collect::<Vec<_>>())
    };
    assert!(
        expansion == expected,
        "{name}: expanded to .. {:?} .., expected .. {:?} ..",
        excerpt(&expansion),
        excerpt(&expected),
    );
}

/// Splits `#[actor(args)] item`.
fn attribute_and_item(input: TokenStream) -> (TokenStream, TokenStream) {
    let mut tokens = input.into_iter();
    let args = match (tokens.next(), tokens.next()) {
        (Some(TokenTree::Punct(_)), Some(TokenTree::Group(attribute))) => {
            match attribute.stream().into_iter().nth(1) {
                Some(TokenTree::Group(args)) => args.stream(),
                _ => TokenStream::new(),
            }
        }
        _ => panic!("an input starts with its attribute"),
    };
    (args, tokens.collect())
}

/// Tokens without their spacing, without the commas at the end of a list or of bounds, which
/// rustfmt adds and removes, without the colons before `<`, which it removes in types, and without the braces
/// around the body of an arm, which it adds to a long one.
fn words(tokens: TokenStream) -> Vec<String> {
    let mut words = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                if open == "{" && words.last().is_some_and(|word| word == ",") {
                    words.pop();
                }
                if open == "{" && words.ends_with(&["=".to_owned(), ">".to_owned()]) {
                    words.extend(self::words(group.stream()));
                    words.push(",".to_owned());
                    continue;
                }
                words.push(open.to_owned());
                words.extend(self::words(group.stream()));
                if words.last().is_some_and(|word| word == ",") {
                    words.pop();
                }
                words.push(close.to_owned());
            }
            token => {
                let token = token.to_string();
                while token == "<" && words.last().is_some_and(|word| word == ":") {
                    words.pop();
                }
                if token == "," && words.last().is_some_and(|word| word == ",") {
                    continue;
                }
                if token == ">" && words.last().is_some_and(|word| word == ",") {
                    words.pop();
                }
                words.push(token);
            }
        }
    }
    words
}

#[test]
fn counter_expands_as_reviewed() {
    check_expansion("counter");
}

#[test]
fn generic_actor_expands_as_reviewed() {
    check_expansion("generic");
}

/// Everything that `parse.rs` knows about, without markers.
fn sample() -> TokenStream {
    quote! {
        impl<K: Clone, const N: usize> path::Cache<K, N> where K: PartialEq {
            #![allow(unused)]
            const LIMIT: usize = { 1 };
            helper!(name);
            /// Adds.
            #[cfg(unix)]
            pub fn add(&mut self, (a, b): (K, [u8; N]), ctx: &mut Ctx<Self>) -> Result<K, ()> {
                self.total += by
            }
            pub(crate) async fn take(&self, by: &str, reply: Reply<u8>) { by. }
            fn helper<'a, T: 'a>(self) -> impl Fn(&'a T) + use<'a, T> { loop {} }
            pub unsafe extern "C" fn call(self: Box<Self>, _: impl Tr, _: id!(Self)) -> ! {}
        }
    }
}

/// Every variant of `tokens` with one tree removed, doubled or replaced, at every depth.
fn damaged(tokens: &TokenStream) -> Vec<TokenStream> {
    let trees: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let with = |position: usize, replacement: Vec<TokenTree>| -> TokenStream {
        let before = trees.iter().take(position).cloned();
        let after = trees.iter().skip(position + 1).cloned();
        before.chain(replacement).chain(after).collect()
    };
    let mut variants = Vec::new();
    for (position, tree) in trees.iter().enumerate() {
        variants.push(with(position, Vec::new()));
        variants.push(with(position, vec![tree.clone(), tree.clone()]));
        for other in [
            TokenTree::Punct(Punct::new('&', Spacing::Alone)),
            TokenTree::Ident(Ident::new("self", Span::call_site())),
            TokenTree::Group(Group::new(Delimiter::Brace, TokenStream::new())),
            TokenTree::Group(Group::new(Delimiter::None, quote!(pub fn))),
        ] {
            variants.push(with(position, vec![other]));
        }
        if let TokenTree::Group(group) = tree {
            for inside in damaged(&group.stream()) {
                let group = Group::new(group.delimiter(), inside);
                variants.push(with(position, vec![TokenTree::Group(group)]));
            }
        }
    }
    variants
}

/// How many tokens `#[allow(..)]` is.
const LINTS: usize = 2;

#[test]
fn every_input_is_in_the_output_token_for_token() {
    let mut variants = damaged(&sample());
    variants.push(sample());
    variants.push(TokenStream::new());
    for variant in variants {
        let input = words(variant.clone());
        let output = expand_actor(TokenStream::new(), variant.clone());
        // The lints that are allowed in the block stand before one that is understood.
        let behind = words(output.clone().into_iter().skip(LINTS).collect());
        let output = words(output);
        let echoed = if output.starts_with(&input) {
            output.as_slice()
        } else {
            behind.as_slice()
        };
        let left_out = words(crate::expand::left_out());
        let echoed = echoed.strip_prefix(left_out.as_slice()).unwrap_or(echoed);
        assert!(echoed.starts_with(&input), "{variant}");
    }
}

/// Every token, groups before what is in them.
fn flat(tokens: TokenStream, found: &mut Vec<TokenTree>) {
    for token in tokens {
        found.push(token.clone());
        if let TokenTree::Group(group) = token {
            flat(group.stream(), found);
        }
    }
}

/// The expansion of `#[actor(args)] item` in a row: of the block, and of what follows it.
fn expanded(args: &str, item: &str) -> (Vec<TokenTree>, Vec<TokenTree>) {
    let args: TokenStream = args.parse().expect("tokens");
    let item: TokenStream = item.parse().expect("tokens");
    let block_end = LINTS + item.clone().into_iter().count();
    let (mut block, mut rest) = (Vec::new(), Vec::new());
    for (position, token) in expand_actor(args, item).into_iter().enumerate() {
        match position {
            _ if position < LINTS => {}
            _ if position < block_end => flat(token.into(), &mut block),
            _ => flat(token.into(), &mut rest),
        }
    }
    (block, rest)
}

const PLACES: &str = "impl Shop {
    #[on(started)]
    fn open(&mut self) {}

    pub async fn buy(&mut self, #[into] name: String, ctx: &mut Ctx<Self>) -> Result<u32, Sold> {
        self.take(name).
    }

    #[message(local)]
    pub fn r#type(&self, (a, b): (u8, Rc<u8>)) -> Rc<u8> { b }

    #[every(5s)]
    pub fn tick(&mut self) {}
}";

#[test]
fn the_block_is_at_its_own_place() {
    let (block, _) = expanded("mailbox = 5, trait = Shopping", PLACES);
    assert!(block.len() > 60, "{}", block.len());
    let at = |token: &TokenTree| token.span().byte_range();
    for token in &block {
        if let TokenTree::Ident(name) = token {
            assert_eq!(PLACES.get(at(token)), Some(name.to_string().as_str()));
        }
    }
    // One after the other, so nothing is there twice, or in another order.
    let starts: Vec<usize> = block.iter().map(|token| at(token).start).collect();
    assert!(starts.is_sorted(), "{starts:?}");
}

#[test]
fn at_the_name_of_a_method_are_only_its_calls_and_its_handler() {
    let (_, rest) = expanded("trait = Shopping", PLACES);
    for (name, found) in [
        // The call, the one of the trait, and the handler.
        ("buy", ["fn", "fn", ":"].as_slice()),
        ("r#type", &["fn", ":"]),
        ("tick", &["fn", "fn", ":"]),
        ("open", &[":"]),
    ] {
        let start = PLACES.find(&format!("fn {name}")).expect("a method") + "fn ".len();
        let place = start..start + name.len();
        let mut before = Vec::new();
        for pair in rest.windows(2) {
            if let TokenTree::Ident(ident) = &pair[1]
                && ident.span().byte_range() == place
            {
                assert_eq!(*ident, name);
                before.push(pair[0].to_string());
            }
        }
        before.sort_unstable_by_key(|token| token == ":");
        assert_eq!(before, found, "{name}");
    }
}

#[test]
fn every_method_of_a_trait_of_calls_is_documented() {
    let item = "impl Shop { pub fn buy(&self) {} /** Sells. */ pub fn sell(&self) {} }";
    let (_, rest) = expanded("trait = Shopping", item);
    let is_text = |token: &&TokenTree| matches!(token, TokenTree::Literal(_));
    let texts = rest.iter().filter(is_text).map(ToString::to_string);
    let texts = texts.collect::<Vec<_>>();
    for expected in ["\"The message `buy`.\"", "\" Sells. \""] {
        assert!(texts.iter().any(|text| text == expected), "{texts:?}");
    }
    assert!(
        !texts.iter().any(|text| text.contains("of `sell`")),
        "{texts:?}"
    );
}

#[test]
fn a_word_that_is_being_typed_stands_behind_the_known_ones() {
    for (args, method, word, known) in [
        ("mail", "#[message] fn f(&self) {}", "mail", "mailbox"),
        (
            "mailbox = 5, overflow = dr",
            "pub fn f(&self) {}",
            "dr",
            "drop_oldest",
        ),
        ("", "#[message(loc)] fn f(&self) {}", "loc", "local"),
        ("", "#[on(st)] fn f(&mut self) {}", "st", "started"),
    ] {
        let (_, rest) = expanded(
            args,
            &format!("impl Shop {{ pub fn g(&self) {{}} {method} }}"),
        );
        let rest: Vec<String> = rest.iter().map(ToString::to_string).collect();
        let behind =
            |words: &[String]| matches!(words, [dot, found] if dot == "." && found == word);
        let place = rest.windows(2).position(behind).expect("the word");
        let field =
            |words: &[String]| matches!(words, [name, colon] if name == known && colon == ":");
        assert!(rest.windows(2).any(field), "{known}: {rest:?}");
        // What an editor tries has another length, so the word is nowhere before.
        let mut before = rest.iter().take(place);
        assert!(
            !before.any(|text| text == word || text.starts_with('"')),
            "{rest:?}"
        );
    }
}

/// Whether the calls of an expansion are those of `names`.
fn has_calls(item: &str, names: &[&str]) -> bool {
    let (_, rest) = expanded("", item);
    names.iter().all(|name| {
        rest.windows(2)
            .any(|pair| pair[0].to_string() == "fn" && pair[1].to_string() == *name)
    })
}

#[test]
fn a_method_that_is_being_typed_leaves_the_others_their_calls() {
    let before = "pub fn first(&self) -> u8 { 0 }";
    for half_typed in [
        "pub",
        "pub(crate)",
        "fn",
        "async",
        "pub async",
        "pub async fn",
        "/// Buys.",
        "#[message()]",
        "#[]",
        "pub fn buy",
        "pub fn buy<T>",
        "pub fn buy()",
        "pub fn buy(&mut self)",
        "pub fn buy(&mut self, x)",
        "pub fn buy(&mut self, x: )",
        "pub fn buy(&mut self, x: , y: u8) {}",
        "pub fn buy(&mut self) ->",
        "pub fn buy(&mut self) -> {}",
        "pub fn buy(&mut self) -> Vec<",
        "pub fn buy(&mut self) { self. }",
        "pub fn buy(&mut self) { let x = ; }",
        "const LIMIT: usize = 5;",
    ] {
        for after in [
            "pub fn second(&self) {}",
            "/// Again.\n pub async fn second(&self) {}",
            "#[message(urgent)] pub(crate) fn second(&self) {}",
            "#[message] async fn second(&self) {}",
        ] {
            let item = format!("impl Shop {{\n{before}\n{half_typed}\n{after}\n}}");
            assert!(has_calls(&item, &["first", "second"]), "{item}");
        }
    }
}

#[test]
fn damaged_options_are_errors_and_not_panics() {
    let options = quote!(mailbox = 1 + 2, name = "name", crate = a::b, other(1) = 3);
    for variant in damaged(&options) {
        drop(expand_actor(variant, sample()));
    }
}

#[test]
fn damaged_markers_are_errors_and_not_panics() {
    let markers = quote! {
        impl Counter {
            #[message(local, plain, result)] #[on(started)] #[skip] #[cfg_attr(unix, message)]
            fn f(&mut self, #[into] #[key] name: String) {}
        }
    };
    for variant in damaged(&markers) {
        drop(expand_actor(TokenStream::new(), variant));
    }
}
