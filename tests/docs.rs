//! What the documentation of a crate with actors shows to its reader.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where cargo puts what it builds: this test is in `debug/deps` of it.
fn target() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(3).unwrap().to_owned()
}

/// Documents `docs/actors.rs`, and says where.
fn document() -> PathBuf {
    let cargo = Command::new(env!("CARGO"))
        .args(["doc", "--package", "greenroom-tests", "--example", "actors"])
        .args(["--no-deps", "--offline", "--target-dir"])
        .arg(target())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&cargo.stderr);
    assert!(cargo.status.success(), "{said}");
    target().join("doc/actors")
}

/// What a reader sees of a page besides its menus.
fn page(folder: &Path, name: &str) -> String {
    let html = fs::read_to_string(folder.join(name)).unwrap();
    html.split_once("<main>").unwrap().1.to_owned()
}

/// The text of a piece of a page, in one line.
fn text(html: &str) -> String {
    let parts = html.split('<').enumerate();
    let shown = parts.map(|(position, part)| match part.split_once('>') {
        Some((_, shown)) if position > 0 => shown,
        _ => part,
    });
    let text = shown.collect::<String>();
    let text = text.replace("&lt;", "<").replace("&gt;", ">");
    let text = text
        .replace("&amp;", "&")
        .replace("&quot;", "\"")
        .replace("&#39;", "'");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The headings of implementations up to those that every type has.
fn implementations(html: &str) -> Vec<String> {
    let own = html.split("Auto Trait Implementations").next().unwrap();
    let headings = own.split("<h3 class=\"code-header\">").skip(1);
    let headings = headings.map(|rest| text(rest.split("</h3>").next().unwrap()));
    headings.collect()
}

#[test]
fn the_page_of_an_actor_shows_its_messages() {
    let folder = document();

    let stock = page(&folder, "struct.Stock.html");
    let shown = text(&stock);
    for expected in [
        "pub fn buy(&mut self, count: u32) -> Result<u32, SoldOut>",
        "Buys apples, and tells how many are left.",
        "pub async fn look(&self, name: String, _: &mut Ctx<Self>) -> bool",
        "pub fn label(&self) -> Rc<str>",
        "A label that stays on its shard.",
        "pub fn wait(&mut self, reply: Reply<u32>)",
        "const NAME: &'static str = \"Stock\"",
        "const MAILBOX: usize = 16",
    ] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    assert_eq!(
        implementations(&stock),
        [
            "impl Stock",
            "impl Actor for Stock",
            "impl Debug for Stock",
            "impl HasKeys for Stock"
        ]
    );

    let shelf = page(&folder, "struct.Shelf.html");
    assert!(text(&shelf).contains("pub fn put(&mut self, item: T)"));
    assert_eq!(
        implementations(&shelf),
        [
            "impl<T: Clone + Send + 'static> Shelf<T>",
            "impl<T> Actor for Shelf<T>where T: 'static + Clone + Send,",
            "impl<T: Debug> Debug for Shelf<T>"
        ]
    );

    let shop = text(&page(&folder, "trait.Shop.html"));
    for expected in [
        "fn buy(&self, count: u32) -> DynCallOf<Result<u32, SoldOut>>",
        "fn look(&self, name: String) -> DynCall<bool>",
        "fn wait(&self) -> DynCall<u32>",
        "Buys apples, and tells how many are left.",
    ] {
        assert!(shop.contains(expected), "{expected}: {shop}");
    }

    assert!(!shop.contains("fn rot"), "{shop}");

    // Nothing generated has a name here, and nothing has a page that its writer did not ask for.
    for (name, shown) in [("Stock", &shown), ("Shelf", &text(&shelf)), ("Shop", &shop)] {
        assert!(!shown.contains("__"), "{name}: {shown}");
        assert!(!shown.contains("Suits"), "{name}: {shown}");
    }
    let pages = fs::read_dir(&folder).unwrap();
    let mut pages: Vec<String> = pages
        .map(|page| page.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains('.') && name.ends_with(".html"))
        .filter(|name| !["all.html", "index.html"].contains(&name.as_str()))
        .collect();
    pages.sort_unstable();
    assert_eq!(
        pages,
        [
            "struct.Shelf.html",
            "struct.SoldOut.html",
            "struct.Stock.html",
            "trait.Shop.html"
        ]
    );
}
