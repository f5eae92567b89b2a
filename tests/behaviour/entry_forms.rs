//! Forms of functions under `#[greenroom::test]`: what they return, take and are marked with.

#![expect(
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    clippy::ignore_without_reason,
    clippy::should_panic_without_expect,
    reason = "attributes are tested in each of their forms"
)]

use std::process::ExitCode;

use greenroom::Handle;

#[greenroom::test]
async fn returns_nothing() {}

#[greenroom::test()]
async fn returns_unit() -> () {}

#[greenroom::test]
async fn returns_a_result() -> Result<(), String> {
    Ok(())
}

#[greenroom::test]
async fn returns_a_boxed_error() -> Result<(), Box<dyn std::error::Error>> {
    Ok(())
}

#[greenroom::test]
async fn returns_a_code() -> ExitCode {
    ExitCode::SUCCESS
}

#[greenroom::test]
async fn returns_a_code_or_an_error() -> Result<ExitCode, String> {
    Ok(ExitCode::SUCCESS)
}

#[greenroom::test]
#[should_panic]
async fn panics() {
    panic!("x")
}

#[greenroom::test]
#[should_panic(expected = "xyz")]
async fn panics_as_expected() {
    panic!("xyz")
}

#[should_panic(expected = "xyz")]
#[greenroom::test]
async fn panics_as_expected_by_an_earlier_attribute() {
    panic!("xyz")
}

#[greenroom::test]
#[ignore]
async fn is_ignored() {
    panic!()
}

#[greenroom::test]
#[ignore = "why"]
async fn is_ignored_for_a_reason() {
    panic!()
}

#[greenroom::test]
#[cfg(any())]
async fn is_not_there() -> Missing {}

#[greenroom::test]
#[cfg_attr(all(), should_panic)]
async fn panics_on_a_condition() {
    panic!()
}

#[greenroom::test]
#[allow(unused_variables)]
async fn allows_a_lint() {
    let x = 1;
}

#[greenroom::test]
#[expect(unused_variables)]
async fn expects_a_lint() {
    let x = 1;
}

/// Documented.
#[greenroom::test]
async fn is_documented() {}

#[greenroom::test(shards = 2)]
async fn takes_its_system(h: Handle) {
    let _ = h;
}

#[greenroom::test(shards = 2)]
async fn takes_its_system_and_does_not_name_it(_: Handle) {}

#[greenroom::test(shards = 2)]
async fn takes_its_system_and_changes_it(mut h: Handle) {
    h = h.clone();
    let _ = h;
}

#[greenroom::test(shards = N + 1, grace = std::time::Duration::from_millis(5))]
async fn computes_its_options() {}

const N: usize = 1;

#[greenroom::test(backend = "epoll")]
async fn names_its_backend_in_quotes() {}

#[greenroom::test(backend = epoll,)]
async fn names_its_backend() {}

#[greenroom::test(crate = ::greenroom)]
async fn names_the_crate() {}

#[greenroom::test]
async fn returns_early() -> Result<(), String> {
    if true {
        return Ok(());
    }
    Err("x".into())
}

#[greenroom::test]
async fn asks() -> Result<(), std::num::ParseIntError> {
    let x: u8 = "1".parse()?;
    assert_eq!(x, 1);
    Ok(())
}

#[greenroom::test]
async fn keeps_what_is_not_send() {
    let r = std::rc::Rc::new(1);
    std::future::ready(()).await;
    drop(r);
}

#[greenroom::test]
pub(crate) async fn is_visible() {}

#[greenroom::test]
async fn r#match() {}

#[greenroom::test]
async fn test() {}

#[greenroom::test]
async fn main() {}

#[greenroom::test]
async fn has_items_of_its_own() {
    #[derive(Debug)]
    struct A;
    fn f() -> u8 {
        1
    }
    assert_eq!(f(), 1);
    let _ = A;
    #[greenroom::actor]
    impl A {
        pub(crate) fn x(&self) -> u8 {
            3
        }
    }
    assert_eq!(greenroom::spawn(A).x().await.unwrap(), 3);
}

#[greenroom::test]
async fn returns_an_alias() -> R {
    Ok(())
}

type R = Result<(), String>;

#[greenroom::test]
async fn returns_a_result_without_types() -> std::fmt::Result {
    Ok(())
}

macro_rules! with_parts {
    ($name:ident, $body:block, $shards:expr, $returned:ty) => {
        #[greenroom::test(shards = $shards)]
        async fn $name() -> $returned $body
    };
}

with_parts!(is_made_of_parts, { Ok(()) }, 2, Result<(), String>);

macro_rules! with_items {
    ($($item:item)*) => {
        $(#[greenroom::test] $item)*
    };
}

with_items! {
    async fn is_made_as_an_item() {}
    async fn is_made_as_another_item() -> Result<(), String> { Ok(()) }
}

macro_rules! with_tokens {
    ($(#[$meta:meta])* $vis:vis async fn $name:ident($system:ident: $handle:ty) $($body:tt)*) => {
        $(#[$meta])*
        #[greenroom::test]
        $vis async fn $name($system: $handle) $($body)*
    };
}

with_tokens! {
    #[should_panic]
    pub(crate) async fn is_made_with_its_attributes(system: Handle) {
        let _ = system;
        panic!()
    }
}
