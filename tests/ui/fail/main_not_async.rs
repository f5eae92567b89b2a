//! A `main` that is no `async fn`.

#![allow(unused)]

#[greenroom::main]
fn main() -> Result<(), greenroom::Error> {
    Ok(())
}
