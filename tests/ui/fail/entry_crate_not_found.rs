//! The crate of an entry is missed once, whatever is taken from it.

#[greenroom::main(crate = crate::nowhere, shards = 1, backend = epoll)]
async fn main() -> Result<(), String> {
    Ok(())
}
