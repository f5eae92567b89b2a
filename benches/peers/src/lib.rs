//! What the servers have in common: the protocol, and where they listen.
//!
//! A client sends lines, `PING` by the look of it, and gets `+PONG` for each. That is as much of the protocol of Redis as
//! `redis-benchmark -t ping_inline` needs, and little enough that the runtime is what is measured.

/// The largest request a server reads at once.
pub const READ_BYTES: usize = 8192;

const PONG: &[u8; 7] = b"+PONG\r\n";

/// As many answers as the lines of the largest request could ask for.
static PONGS: [u8; PONG.len() * READ_BYTES] = {
    let mut pongs = [0; PONG.len() * READ_BYTES];
    let mut at = 0;
    while at < pongs.len() {
        pongs[at] = PONG[at % PONG.len()];
        at += 1;
    }
    pongs
};

/// The answer to a piece of a request: one pong for each line that ends in it.
pub fn answer(request: &[u8]) -> &'static [u8] {
    let lines = request.iter().filter(|&&byte| byte == b'\n').count();
    &PONGS[..lines * PONG.len()]
}

/// The address to listen at, from the first argument of the program: a port.
pub fn address() -> (&'static str, u16) {
    let port = std::env::args().nth(1).and_then(|port| port.parse().ok());
    ("127.0.0.1", port.expect("the first argument is a port"))
}
