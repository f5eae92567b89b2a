//! What the attribute makes of every supported form, and what it says about every mistake.
//!
//! A case in `ui/fail` is named after the rule it breaks; its text is part of the interface, so
//! read the difference before accepting a new one with `TRYBUILD=overwrite`. The two kinds are
//! separate tests because a run without passing cases checks all files in one go.

#[test]
fn supported_forms_compile_and_run() {
    trybuild::TestCases::new().pass("ui/pass/*.rs");
}

#[test]
fn mistakes_are_explained() {
    trybuild::TestCases::new().compile_fail("ui/fail/*.rs");
}
