//! No lint that can be turned on finds anything in generated code.

#![deny(
    warnings,
    unused,
    unused_results,
    unused_qualifications,
    unreachable_pub,
    single_use_lifetimes,
    unused_lifetimes,
    let_underscore_drop,
    variant_size_differences,
    keyword_idents,
    missing_debug_implementations,
    missing_copy_implementations,
    elided_lifetimes_in_paths,
    explicit_outlives_requirements,
    trivial_casts,
    redundant_lifetimes,
    redundant_imports,
    unit_bindings,
    unnameable_types,
    meta_variable_misuse,
    closure_returning_async_block,
    absolute_paths_not_starting_with_crate,
    unsafe_code,
    ambiguous_negative_literals,
    impl_trait_redundant_captures,
    tail_expr_drop_order,
    if_let_rescope,
    non_ascii_idents,
    rust_2024_compatibility,
    rust_2021_compatibility,
    future_incompatible,
    nonstandard_style,
    let_underscore,
    refining_impl_trait
)]
use greenroom::prelude::*;
use std::fmt;

/// A
#[derive(Debug)]
pub struct A {
    v: Vec<u8>,
}

/// Not must use
#[derive(Debug)]
pub struct Guard(Vec<u8>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.clear();
    }
}

#[actor(trait = AApi, max_message = 4096)]
impl A {
    /// unit
    pub fn unit(&mut self) {
        self.v.clear();
    }

    /// unit arg
    pub fn unit_arg(&self, a: ()) {
        a
    }

    /// big
    pub fn big(&self, a: [u8; 2000]) -> [u8; 2000] {
        a
    }

    /// drop
    pub fn gd(&self, g: Guard) -> Guard {
        g
    }

    /// drop
    pub async fn gd2(&self, g: Guard) -> Result<Guard, Guard> {
        Ok(g)
    }

    /// drop
    #[message(concurrent)]
    pub async fn gd3(&self, _: Guard, _: u8) -> Option<Guard> {
        None
    }

    /// drop
    #[message(batch)]
    pub fn gd4(&mut self, b: greenroom::Batch<Guard>) -> Result<(), String> {
        self.v.push(u8::try_from(b.len()).unwrap_or(0));
        Ok(())
    }

    /// drop
    #[message(local)]
    pub fn gd5(&mut self, g: std::rc::Rc<Guard>) -> std::rc::Rc<Guard> {
        g
    }

    /// drop
    #[message(boxed)]
    pub fn gd6(&mut self, _: Guard) {}
    /// fn
    pub fn fnp(&self, f: fn(&A) -> &u8) -> u8 {
        *f(self)
    }

    /// static
    pub fn st(&self, f: &'static str) -> &'static str {
        f
    }

    /// life
    pub fn fmtt(&self, f: for<'a> fn(&'a A, &mut fmt::Formatter<'a>) -> fmt::Result) -> usize {
        size_of_val(&f)
    }

    /// never
    pub fn never(&self) {
        panic!()
    }

    /// tmr
    #[every(100s)]
    pub fn tmr(&mut self) -> u8 {
        1
    }

    /// tmr
    #[every(100s)]
    pub async fn tmr2(&mut self) -> Result<Guard, String> {
        Err(String::new())
    }

    #[on(started)]
    async fn s(&mut self, _: &mut Ctx<Self>) -> Result<(), String> {
        Ok(())
    }

    #[on(stopping)]
    fn p(&mut self) {}
    #[on(down)]
    fn d(&mut self, _: greenroom::Down) {}
    #[on(child_exit)]
    fn c(&mut self, _: greenroom::ChildExit) {}
    #[on(error)]
    fn e(&mut self, _: greenroom::ToldError) {}
}

fn main() {}
